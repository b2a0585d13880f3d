/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/remains.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/admin_answer.h"

enum { PROCESSES_MAX = 64, LOOK_US = 20000 };

/* Counts nothing of a process that has ended. One that lives and can't be looked at would pass for
 * one that has nothing. */
static void die_if_alive(struct crew *crew, pid_t pid, const char *path)
{
    if (pid > 0 && kill(pid, 0) == 0)
        crew_die(crew, "%s can't be read: %s", path, strerror(errno));
}

/* Descriptors of a process whose targets begin with this; "": all. */
static size_t count_descriptors(struct crew *crew, pid_t pid, const char *beginning)
{
    char path[64], name[352], target[256];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        die_if_alive(crew, pid, path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        count += !strncmp(target, beginning, strlen(beginning));
    }
    if (folder)
        closedir(folder);
    return count;
}

static size_t count_shared(struct crew *crew, pid_t pid)
{
    char path[64], line[512], modes[8];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        die_if_alive(crew, pid, path);
    while (file && fgets(line, sizeof line, file))
        count += sscanf(line, "%*s %7s", modes) == 1 && modes[3] == 's';
    if (file)
        fclose(file);
    return count;
}

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static struct remains look(struct crew *crew)
{
    struct remains found = {0};
    pid_t supervisor = server_pid(crew->server);
    json_t *status = admin_answer(crew->server, "status");
    const json_t *device = json_array_get(json_object_get(status, "devices"), 0);
    const char *state = json_string_value(json_object_get(device, "state"));
    pid_t pids[2] = {supervisor, (pid_t)number(device, "worker_pid")};
    found.served = state && !strcmp(state, "ready") && number(status, "clients") == 0;
    found.memory = number(device, "memory_used_bytes");
    found.host_memory = number(status, "host_memory_used_bytes");
    found.charged_descriptors = number(status, "descriptors");
    json_decref(status);
    for (int i = 0; i < 2; i++) {
        found.descriptors[i] = count_descriptors(crew, pids[i], "");
        found.memfds[i] = count_descriptors(crew, pids[i], "/memfd:");
        found.shared[i] = count_shared(crew, pids[i]);
    }
    /* A worker is a child of the server that started it, or of this process. */
    pid_t found_pids[PROCESSES_MAX];
    found.processes = server_workers(crew->server, found_pids, PROCESSES_MAX) +
                      server_children(pids[1], NULL, found_pids, PROCESSES_MAX);
    return found;
}

/* Nobody is charged, as far as the server has told. Descriptors and mappings go later. */
static bool is_at_rest(const struct remains *found)
{
    return found->served && !found->memory && !found->host_memory && !found->charged_descriptors;
}

static bool is_same(const struct remains *one, const struct remains *other)
{
    bool same = one->processes == other->processes;
    for (int i = 0; i < 2; i++)
        same &= one->descriptors[i] == other->descriptors[i] &&
                one->memfds[i] == other->memfds[i] && one->shared[i] == other->shared[i];
    return same;
}

struct remains remains_take(struct crew *crew)
{
    double end = crew_now() + crew_patience();
    struct remains last, now = look(crew);
    do {
        if (crew_now() > end)
            crew_die(crew, "the server does not come to rest when its clients have left");
        last = now;
        usleep(LOOK_US);
        now = look(crew);
    } while (!is_at_rest(&last) || !is_at_rest(&now) || !is_same(&last, &now));
    return now;
}

static bool is_no_more(const struct remains *now, const struct remains *before)
{
    bool good = is_at_rest(now) && now->processes <= before->processes;
    for (int i = 0; i < 2; i++)
        good &= now->descriptors[i] <= before->descriptors[i] &&
                now->memfds[i] <= before->memfds[i] && now->shared[i] <= before->shared[i];
    return good;
}

void remains_compare(struct crew *crew, const struct remains *before)
{
    double end = crew_now() + crew_patience();
    struct remains now = look(crew);
    while (!is_no_more(&now, before) && crew_now() < end) {
        usleep(LOOK_US);
        now = look(crew);
    }
    if (!is_no_more(&now, before))
        crew_die(
            crew,
            "something remains: supervisor and worker have %zu and %zu descriptors (%zu and "
            "%zu before), %zu and %zu memory files (%zu and %zu), %zu and %zu shared mappings "
            "(%zu and %zu), %zu processes (%zu); charged are %llu bytes of device memory, %llu "
            "of host memory, %llu descriptors",
            now.descriptors[0], now.descriptors[1], before->descriptors[0], before->descriptors[1],
            now.memfds[0], now.memfds[1], before->memfds[0], before->memfds[1], now.shared[0],
            now.shared[1], before->shared[0], before->shared[1], now.processes, before->processes,
            (unsigned long long)now.memory, (unsigned long long)now.host_memory,
            (unsigned long long)now.charged_descriptors);
}
