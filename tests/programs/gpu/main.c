/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * checks: examines a driver and gpushare on it, step by step (run-checks.sh starts it).
 *
 *   checks run --library LIBCUDA [--driver WORD] [--results FOLDER] [--budget SECONDS]
 *              (--first | --rest | --all | --only STEP...)
 *   checks list                     the steps
 *   checks step NAME LIBCUDA        one step, in this process
 *   checks part PART ARGUMENT LIBCUDA   a process of a step's own
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cuda/driver_environment.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/report.h"
#include "tests/programs/gpu/runner.h"
#include "tests/programs/gpu/step.h"

/* A call on the GPU machine may last 600 s: what is read and copied afterwards needs some. */
enum { BUDGET_S = 540, ONLY_MAX = 64, SHORT_LIMIT_S = 6, STATUS_USAGE = 2, STATUS_NO_FOLDER = 5 };
/* No step can say anything in less. */
static const double step_min_s = 2;

struct options {
    const char *library, *driver, *results;
    double budget_s; /* 0: none */
    bool first, rest;
    const char *only[ONLY_MAX];
    size_t only_count;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- what steps find around them --------------------------------------------------------- */

/* Scrubs the environment as the supervisor does for its workers, so that steps see the same driver.
 * Variables of gpushare's and systemd's go too: a step starts its own servers. */
static bool set_environment(const struct options *options)
{
    char **scrubbed = driver_environment_copy(environ, NULL);
    if (!scrubbed)
        return false;
    environ = scrubbed;
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0);
    setenv("BUILD", probe_folder, 1);
    setenv("TEST_DRIVER", options->driver ? options->driver : options->library, 1);
    return true;
}

static const char *find_folder(void)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return ".";
    path[length] = 0;
    /* FOLDER/gpu/checks */
    for (int i = 0; i < 2; i++)
        if (strrchr(path, '/'))
            *strrchr(path, '/') = 0;
    return path;
}

/* ---- running ------------------------------------------------------------------------------- */
/* A step that was killed may end well another time. */
static bool is_done(const struct result *result)
{
    return result->json && result->outcome != OUTCOME_UNKNOWN &&
           result->outcome != OUTCOME_NOT_RUN &&
           json_is_null(json_object_get(result->json, "ended"));
}

static bool is_wanted(const struct options *options, struct report *report, const struct step *step)
{
    for (size_t i = 0; i < options->only_count; i++)
        if (step_is_meant(step, options->only[i]))
            return true;
    if (options->only_count)
        return false;
    if (options->first && step->set == STEP_FIRST)
        return true;
    /* Resumable: what has its verdict is not asked again. */
    return options->rest && !is_done(report_result(report, step));
}

static bool is_a_step(const char *name)
{
    for (size_t i = 0; i < step_count; i++)
        if (step_is_meant(&step_table[i], name))
            return true;
    return false;
}

static void print_result(const struct result *result)
{
    printf("%-8s %s (%.1f s): %s\n", outcome_name(result->outcome), result->step->name,
           json_real_value(json_object_get(result->json, "seconds")), result_verdict(result));
    for (size_t i = 0; i < step_assumption_count; i++)
        if (!strcmp(step_assumptions[i].step, result->step->name))
            printf("         %s: stands on it: %s; if false: %s\n", step_assumptions[i].name,
                   step_assumptions[i].depends, step_assumptions[i].if_false);
    fflush(stdout);
}

/* A call that several steps make may hang: after two that were killed in the same call, a step
 * gets little time until one ends by itself. */
struct patience {
    char call[80];
    unsigned killed;
};

static double limit_of(const struct step *step, const struct patience *patience)
{
    return patience->killed >= 2 && step->limit_s > SHORT_LIMIT_S ? SHORT_LIMIT_S : step->limit_s;
}

static void note_end(struct patience *patience, enum runner_end end, const struct result *result)
{
    if (end != RUNNER_OVERDUE)
        patience->killed = 0;
    else if (patience->killed && strcmp(patience->call, result->call) != 0)
        patience->killed = 1;
    else
        patience->killed++;
    snprintf(patience->call, sizeof patience->call, "%s", result->call);
}

/* A result that can't be written to the folder must not be lost with it. */
static void save(struct report *report, const struct step *step)
{
    if (report_save(report, step) == 0)
        return;
    json_dumpf(report_result(report, step)->json, stdout, JSON_COMPACT);
    printf("\n");
    fflush(stdout);
}

static void run_step(const struct options *options, struct report *report, const struct step *step,
                     double end_s, struct patience *patience)
{
    struct result *result = report_result(report, step);
    double limit_s = limit_of(step, patience);
    double left = options->budget_s > 0 ? end_s - now_s() : limit_s;
    if (runner_stopped()) {
        result_not_run(result, step, "stopped from outside before it began");
    } else if (left < step_min_s) {
        result_not_run(result, step, "the budget of time was used up");
    } else {
        FILE *log = report_open_log(report, step);
        enum runner_end end =
            runner_run(step, options->library, left < limit_s ? left : limit_s, log, result);
        note_end(patience, end, result);
        if (log)
            fclose(log);
    }
    print_result(result);
    save(report, step);
}

static int run_steps(const struct options *options, struct report *report)
{
    unsigned counts[OUTCOMES] = {0}, ran = 0;
    struct patience patience = {0};
    double end_s = now_s() + options->budget_s;
    for (size_t i = 0; i < step_count; i++) {
        if (!is_wanted(options, report, &step_table[i]))
            continue;
        run_step(options, report, &step_table[i], end_s, &patience);
        counts[report_result(report, &step_table[i])->outcome]++;
        ran++;
    }
    printf("%u steps:", ran);
    for (int i = 0; i < OUTCOMES; i++)
        if (counts[i])
            printf(" %u %s", counts[i], outcome_name((enum outcome)i));
    printf("; %s/page.md\n", report->folder);
    return result_exit_status(counts);
}

/* Without persistence mode the last process that closes the GPU also shuts it down, and each step
 * would start it again, for seconds. So the runner holds its nodes open; that changes no setting.
 */
static void hold_device_nodes(void)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (open(nodes[i], O_RDWR | O_CLOEXEC) < 0 && errno != ENOENT)
            fprintf(stderr, "checks: %s: %s\n", nodes[i], strerror(errno));
}

/* Each step's sockets and files go there; the path is short, for a socket's name is. */
static const char *make_temporary(const struct report *report)
{
    static char folder[PATH_MAX];
    const char *const places[] = {"/tmp", "/dev/shm", "/run", "/var/tmp", report->folder};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(folder, sizeof folder, "%s/gpushare-checks-XXXXXX", places[i]);
        if (!mkdtemp(folder))
            continue;
        char *absolute = realpath(folder, NULL);
        setenv("TMPDIR", absolute ? absolute : folder, 1);
        /* The driver keeps compiled PTX there and not in somebody's home. */
        setenv("CUDA_CACHE_PATH", absolute ? absolute : folder, 1);
        free(absolute);
        return folder;
    }
    fprintf(stderr, "checks: no folder for temporary files: neither /tmp nor the results\n");
    return NULL;
}

static void remove_temporary(const char *folder)
{
    char command[PATH_MAX + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "checks: %s could not be removed\n", folder);
}

static int run(const struct options *options)
{
    struct report report;
    if (!set_environment(options)) {
        fprintf(stderr, "checks: out of memory\n");
        return STATUS_NO_FOLDER;
    }
    bool resume = options->rest || options->only_count;
    int status = STATUS_NO_FOLDER;
    const char *temporary = NULL;
    if (report_open(&report, options->results, resume, options->library) == 0)
        temporary = make_temporary(&report);
    if (temporary) {
        runner_open();
        hold_device_nodes();
        status = run_steps(options, &report);
        remove_temporary(temporary);
    }
    report_close(&report);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */
static int list_steps(void)
{
    for (size_t i = 0; i < step_count; i++)
        printf("%-6s %-32s %3u s  %s\n", step_table[i].set == STEP_FIRST ? "first" : "rest",
               step_table[i].name, step_table[i].limit_s, step_table[i].title);
    return 0;
}

static int refuse_usage(const char *why)
{
    fprintf(stderr,
            "checks: %s\nusage: run-checks.sh [--driver nvidia|softgpu|/path/of/libcuda.so.1] "
            "[--results FOLDER] [--budget SECONDS]\n"
            "                     [--first | --rest | --only STEP... | --list]\n",
            why);
    return STATUS_USAGE;
}

static int run_command(int argc, char **argv)
{
    static const struct option longs[] = {
        {"library", required_argument, NULL, 'l'}, {"driver", required_argument, NULL, 'd'},
        {"results", required_argument, NULL, 'r'}, {"budget", required_argument, NULL, 'b'},
        {"first", no_argument, NULL, 'f'},         {"rest", no_argument, NULL, 'R'},
        {"only", required_argument, NULL, 'o'},    {NULL, 0, NULL, 0},
    };
    struct options options = {0};
    char *end = NULL;
    double budget = -1;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == 'l')
            options.library = optarg;
        else if (c == 'd')
            options.driver = optarg;
        else if (c == 'r')
            options.results = optarg;
        else if (c == 'f')
            options.first = true;
        else if (c == 'R')
            options.rest = true;
        else if (c == 'b')
            budget = strtod(optarg, &end);
        else if (c == 'o' && options.only_count < ONLY_MAX)
            options.only[options.only_count++] = optarg;
        else
            return refuse_usage("what is meant?");
    }
    if (end && (*end || budget <= 0))
        return refuse_usage("--budget takes a number of seconds above 0");
    if (optind != argc || !options.library)
        return refuse_usage("too many words, or no --library");
    if (options.first + options.rest + (options.only_count > 0) > 1)
        return refuse_usage("--first, --rest and --only exclude each other");
    for (size_t i = 0; i < options.only_count; i++)
        if (!is_a_step(options.only[i])) {
            fprintf(stderr, "checks: there is no step '%s'; --list shows them\n", options.only[i]);
            return STATUS_USAGE;
        }
    if (!options.first && !options.rest && !options.only_count)
        options.first = options.rest = true;
    options.budget_s = end ? budget : options.first && !options.rest ? BUDGET_S : 0;
    return run(&options);
}

static int run_part(const char *name, const char *argument)
{
    int socket = fcntl(3, F_GETFD) < 0 ? -1 : 3;
    for (size_t i = 0; i < step_part_count; i++)
        if (!strcmp(step_parts[i].name, name))
            return step_parts[i].run(argument, socket);
    return refuse_usage("no such part");
}

int main(int argc, char **argv)
{
    probe_folder = find_folder();
    if (argc == 2 && !strcmp(argv[1], "list"))
        return list_steps();
    if (argc == 5 && !strcmp(argv[1], "part")) {
        probe_library = argv[4];
        return run_part(argv[2], argv[3]);
    }
    if (argc == 4 && !strcmp(argv[1], "step")) {
        const struct step *step = step_find(argv[2]);
        if (!step)
            return refuse_usage("no such step");
        probe_library = argv[3];
        step->run(step->argument);
        probe_end(0);
    }
    if (argc >= 2 && !strcmp(argv[1], "run"))
        return run_command(argc - 1, argv + 1);
    return refuse_usage("a command is missing");
}
