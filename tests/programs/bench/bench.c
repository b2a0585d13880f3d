/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/bench.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__asm__(".section .rodata\n.balign 16\n.globl bench_ptx\nbench_ptx:\n.incbin "
        "\"tests/programs/bench/kernels/bench.ptx\"\n.byte 0\n.previous\n");

bool bench_short;

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_sleep_until(double seconds)
{
    struct timespec until = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "bench: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

void bench_check(gpushare_error error, const char *call)
{
    if (error != GPUSHARE_SUCCESS)
        bench_die("%s: %s: %s", call, gpushare_error_name(error), gpushare_error_text());
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void bench_pairs(struct bench_result *result, double *values, double *yardsticks, size_t count)
{
    double *ratios = calloc(count, sizeof *ratios);
    if (!ratios)
        bench_die("out of memory");
    for (size_t i = 0; i < count; i++)
        ratios[i] = values[i] / yardsticks[i];
    result->ratio = bench_median(ratios, count);
    result->spread = (ratios[count * 3 / 4] - ratios[count / 4]) / result->ratio;
    result->value = bench_median(values, count);
    result->yardstick = bench_median(yardsticks, count);
    free(ratios);
}

/* The servers that end with this program. waitpid tells which of them are still its children: the
 * pid of a server that has ended may be another process's. */
static struct {
    pid_t owner;
    size_t count;
    pid_t pids[256];
} adopted;

static void end_adopted(void)
{
    if (getpid() != adopted.owner)
        return;
    for (size_t i = 0; i < adopted.count; i++)
        if (waitpid(adopted.pids[i], NULL, WNOHANG) == 0)
            kill(adopted.pids[i], SIGTERM);
}

struct server *bench_adopt(struct server *server)
{
    if (!adopted.owner && atexit(end_adopted))
        bench_die("out of memory");
    adopted.owner = getpid();
    if (adopted.count < sizeof adopted.pids / sizeof adopted.pids[0])
        adopted.pids[adopted.count++] = server_pid(server);
    return server;
}

struct server *bench_server_null(const char *counters)
{
    char path[600], counter[300];
    server_build_path("tests/programs/bench/null/libcuda.so.1", path, sizeof path);
    snprintf(counter, sizeof counter, "NULL_DRIVER_COUNTERS=%s", counters ? counters : "");
    const char *args[] = {"--driver", path, NULL};
    const char *env[] = {counters ? counter : NULL, NULL};
    return bench_adopt(server_start(args, env));
}

struct server *bench_server_soft(const char *const env[])
{
    /* Instructions cost next to nothing, so that modelled time is what the kernels sleep. */
    const char *settings[16] = {"SOFTGPU_PRIVATE_QUEUES=1", "SOFTGPU_SCATTER=0",
                                "SOFTGPU_ARRIVAL_NS=0", "SOFTGPU_INSTRUCTION_PS=1"};
    size_t n = 4;
    for (size_t i = 0; env && env[i] && n < 15; i++)
        settings[n++] = env[i];
    /* Rows set shares and modes, so the user who runs the bench has to be an administrator. */
    char uid[16];
    snprintf(uid, sizeof uid, "%u", (unsigned)getuid());
    const char *args[] = {"--admin-uid", uid, NULL};
    return bench_adopt(server_start(args, settings));
}

static cpu_set_t one_cpu(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0)
        CPU_SET(cpu, &set);
    for (int i = 0; cpu < 0 && i < CPU_SETSIZE; i++)
        CPU_SET(i, &set);
    return set;
}

void bench_pin_self(int cpu)
{
    cpu_set_t set = one_cpu(cpu);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        bench_die("can't run on CPU %d: the launch rows need two", cpu);
}

void bench_pin_process(pid_t pid, int cpu)
{
    char path[64];
    cpu_set_t set = one_cpu(cpu);
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        bench_die("%s can't be read", path);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            sched_setaffinity((pid_t)strtol(entry->d_name, NULL, 10), sizeof set, &set);
    closedir(folder);
}

gpushare_connection *bench_connect(const struct server *server, double percentage)
{
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(server),
                                       .name = "bench",
                                       .thread_percentage = percentage};
    gpushare_connection *gpu;
    BENCH_CHECK(gpushare_connect(&options, &gpu));
    return gpu;
}

uint32_t bench_multiprocessors(const struct server *server)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    struct gpushare_device device = {.size = sizeof device};
    BENCH_CHECK(gpushare_device_query(&options, &device));
    return device.multiprocessors;
}

gpushare_function *bench_function(gpushare_connection *gpu, const char *name)
{
    gpushare_module *module;
    gpushare_function *function;
    BENCH_CHECK(gpushare_module_load(gpu, bench_ptx, 0, &module));
    BENCH_CHECK(gpushare_module_function(module, name, &function));
    return function;
}
