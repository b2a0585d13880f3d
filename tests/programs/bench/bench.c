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
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/bench/company.h"

__asm__(".section .rodata\n.balign 16\n.globl bench_ptx\nbench_ptx:\n.incbin "
        "\"tests/programs/bench/kernels/bench.ptx\"\n.byte 0\n.previous\n");

bool bench_short;
uint64_t bench_seed;
int bench_scene = -1;

uint64_t bench_draw(uint64_t *state, uint64_t from, uint64_t to)
{
    if (from > to)
        bench_die("nothing lies between %llu and %llu", (unsigned long long)from,
                  (unsigned long long)to);
    /* splitmix64 */
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return from + (word ^ word >> 31) % (to - from + 1);
}

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

void bench_doubt(struct bench_result *result, const char *format, ...)
{
    va_list arguments;
    if (result->fault[0])
        return;
    va_start(arguments, format);
    vsnprintf(result->fault, sizeof result->fault, format, arguments);
    va_end(arguments);
}

static void (*keep_sentence)(const char *sentence);

void bench_on_death(void (*keep)(const char *sentence))
{
    keep_sentence = keep;
}

void bench_die(const char *format, ...)
{
    char sentence[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "bench: %s\n", sentence);
    if (keep_sentence)
        keep_sentence(sentence);
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

/* ---- servers ---- */

enum { SERVICE_NICE = -10 };

static char *switches;

void bench_note_switches_in(char *text)
{
    switches = text;
}

/* A row's line that lost some of its switches would be of another device than it says. */
static void append_words(char *text, const char *words)
{
    size_t used = strlen(text), length = strlen(words);
    if (length >= BENCH_SWITCHES_MAX - used)
        bench_die("the switches of a row don't fit into its line");
    memcpy(text + used, words, length + 1);
}

void bench_note_switches(const char *const settings[])
{
    char text[BENCH_SWITCHES_MAX] = "";
    if (!switches)
        return;
    for (size_t i = 0; settings[i]; i++) {
        if (strchr(settings[i], '/')) /* a temporary file changes nothing */
            continue;
        append_words(text, text[0] ? " " : "");
        append_words(text, settings[i]);
    }
    if (strstr(switches, text))
        return;
    append_words(switches, switches[0] ? " | " : "");
    append_words(switches, text);
}

static struct server *start(const char *const args[], const char *const env[],
                            struct server *(*begin)(const char *const args[],
                                                    const char *const env[]))
{
    enum { ARGS_MAX = 8 };
    const char *all[ARGS_MAX + 1] = {NULL};
    const char *const *more = company_server_args();
    size_t count = 0;
    for (; args[count]; count++)
        all[count] = args[count];
    for (size_t i = 0; more[i] && count < ARGS_MAX; i++)
        all[count++] = more[i];
    return bench_adopt(begin(all, env));
}

static struct server *start_null(const char *counters, const char *option, const char *value)
{
    static const char *const words[] = {"null driver: on a GPU each enqueue takes 3000 ns more",
                                        NULL};
    char path[600], counter[300];
    server_build_path("tests/programs/bench/null/libcuda.so.1", path, sizeof path);
    snprintf(counter, sizeof counter, "NULL_DRIVER_COUNTERS=%s", counters ? counters : "");
    const char *args[] = {"--driver", path, option, value, NULL};
    const char *env[] = {counters ? counter : NULL, NULL};
    bench_note_switches(words);
    struct server *server = start(args, env, server_start);
    company_begin(server);
    return server;
}

/* Of two settings of one name the first counts. */
static size_t add_settings(const char **settings, size_t count, size_t most,
                           const char *const more[])
{
    for (size_t i = 0; more && more[i]; i++) {
        size_t name = strcspn(more[i], "=") + 1;
        bool there = false;
        for (size_t n = 0; n < count; n++)
            there |= !strncmp(settings[n], more[i], name);
        if (!there && count < most)
            settings[count++] = more[i];
    }
    return count;
}

/* As systemd/gpushared.service.in does. Without the right to it, the rows run all the same.
 * Returns the value of before, for the same call after the server's start. */
static int set_nice(int value)
{
    int before = getpriority(PRIO_PROCESS, 0);
    (void)setpriority(PRIO_PROCESS, 0, value);
    return before;
}

static struct server *server_soft(const char *const env[], const char *const device[],
                                  struct server *(*begin)(const char *const args[],
                                                          const char *const env[]))
{
    enum { SETTINGS_MAX = 24 };
    /* Instructions cost next to nothing, so that modelled time is what the kernels sleep. The
     * engine's threads are the hardware, which waits for no other program. */
    static const char *const usual[] = {"SOFTGPU_STRICT=1", "SOFTGPU_INSTRUCTION_PS=1",
                                        "SOFTGPU_REALTIME=1", NULL};
    char seed[48], uid[16];
    snprintf(seed, sizeof seed, "SOFTGPU_SEED=%llu", (unsigned long long)bench_seed);
    const char *const seeded[] = {seed, NULL};
    const char *settings[SETTINGS_MAX + 1] = {NULL};
    size_t count = add_settings(settings, 0, SETTINGS_MAX, env);
    count = add_settings(settings, count, SETTINGS_MAX, device);
    count = add_settings(settings, count, SETTINGS_MAX, seeded);
    count = add_settings(settings, count, SETTINGS_MAX, usual);
    settings[count] = NULL;
    bench_note_switches(settings);
    /* Rows set shares and modes, so the user who runs the bench has to be an administrator. */
    snprintf(uid, sizeof uid, "%u", (unsigned)getuid());
    const char *args[] = {"--admin-uid", uid, NULL};
    int nice_value = set_nice(SERVICE_NICE);
    struct server *server = start(args, settings, begin);
    (void)set_nice(nice_value);
    company_begin(server);
    return server;
}

struct server *bench_server_null(const char *counters)
{
    return start_null(counters, NULL, NULL);
}

struct server *bench_server_unjournaled(const char *counters)
{
    char path[600];
    server_build_path("tests/programs/bench/unjournaled/gpushare-worker", path, sizeof path);
    return start_null(counters, "--worker", path);
}

struct server *bench_server_null_configured(const char *counters, const char *config)
{
    return start_null(counters, "--config", config);
}

struct server *bench_server_soft(const char *const env[])
{
    return server_soft(env, NULL, server_start);
}

struct server *bench_server_kept(const char *const env[])
{
    return server_soft(env, NULL, server_start_kept);
}

void bench_server_replace(struct server *server, int signal)
{
    for (size_t i = 0; i < adopted.count; i++)
        if (adopted.pids[i] == server_pid(server))
            adopted.pids[i] = adopted.pids[--adopted.count];
    int nice_value = set_nice(SERVICE_NICE);
    (void)server_replace(server, signal);
    (void)set_nice(nice_value);
    bench_adopt(server);
}

struct server *bench_server_steady(const char *const env[])
{
    static const char *const steady[] = {"SOFTGPU_CONTENTION_PERCENT=0",
                                         "SOFTGPU_VARIATION_PERCENT=0", NULL};
    return server_soft(env, steady, server_start);
}

void bench_server_stop(struct server *server)
{
    company_end(server);
    if (server_stop(server))
        bench_die("the server did not end well");
}

/* ---- CPUs ---- */

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
