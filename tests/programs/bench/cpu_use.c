/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/cpu_use.h"

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

struct process {
    pid_t pid, parent;
    double seconds; /* its own, with its children's that it waited for */
    bool below;
};

static cpu_set_t own_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        bench_die("the CPUs of the bench are not known");
    return set;
}

unsigned cpu_use_cpus(void)
{
    cpu_set_t set = own_cpus();
    return (unsigned)CPU_COUNT(&set);
}

double cpu_use_all(void)
{
    const cpu_set_t set = own_cpus();
    char line[512];
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file && fgets(line, sizeof line, file)) {
        unsigned cpu;
        unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice,
                   &system, &idle, &iowait, &irq, &softirq, &steal) == 9 &&
            cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set))
            ticks += user + nice + system + irq + softirq + steal;
    }
    if (!file || !ticks)
        bench_die("/proc/stat does not say what the CPUs did");
    fclose(file);
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Returns whether there is such a process. */
static bool read_process(struct process *process)
{
    char path[64], text[1024];
    unsigned long user, system;
    long children_user, children_system;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    /* The name is in brackets, and may have brackets itself. */
    const char *after = strrchr(text, ')');
    if (!after || sscanf(after + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld",
                         &process->parent, &user, &system, &children_user, &children_system) != 5)
        return false;
    process->seconds =
        ((double)user + (double)system + (double)children_user + (double)children_system) /
        (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* All processes, for the caller to free. Not every kernel lists a process's children, so their
 * parents are read. */
static struct process *read_all(size_t *count)
{
    struct process *all = NULL;
    DIR *folder = opendir("/proc");
    *count = 0;
    if (!folder)
        bench_die("/proc can't be read");
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct process one = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (one.pid <= 0 || !read_process(&one))
            continue;
        all = reallocarray(all, *count + 1, sizeof *all);
        if (!all)
            bench_die("out of memory");
        all[(*count)++] = one;
    }
    closedir(folder);
    return all;
}

/* Whether one more was found: numbers are used again, so a parent may come after its children. */
static bool mark_children(struct process *all, size_t count)
{
    bool more = false;
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < count && !all[i].below; n++)
            if (all[n].below && all[n].pid == all[i].parent)
                more = all[i].below = true;
    return more;
}

double cpu_use_below(pid_t pid)
{
    size_t count;
    double seconds = 0;
    struct process *all = read_all(&count);
    for (size_t i = 0; i < count; i++)
        all[i].below = all[i].pid == pid;
    while (mark_children(all, count))
        ;
    for (size_t i = 0; i < count; i++)
        seconds += all[i].below ? all[i].seconds : 0;
    free(all);
    return seconds;
}

void cpu_use_threads(pid_t pid, const char *file, cpu_use_line *line, void *context)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        bench_die("%s can't be read", path);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char name[352];
        snprintf(name, sizeof name, "%s/%s/%s", path, entry->d_name, file);
        FILE *of_thread = fopen(name, "re");
        while (of_thread && fgets(text, sizeof text, of_thread))
            line(context, text);
        if (of_thread)
            fclose(of_thread);
    }
    closedir(folder);
}

/* The file has one line, which begins with the nanoseconds. */
static void add_seconds(void *context, const char *line)
{
    *(double *)context += strtod(line, NULL) / 1e9;
}

double cpu_use_of(pid_t pid)
{
    double total = 0;
    cpu_use_threads(pid, "schedstat", add_seconds, &total);
    return total;
}
