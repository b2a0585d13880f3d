/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Programs that know only CUDA, executed by `gpushare run` as clients of a server on the driver
 * under examination. */
#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/gpu/own_server.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/program.h"
#include "tests/programs/gpu/step.h"

#define RUN "%F/bin/gpushare", "run"

/* The line with which the client library names the caller of cuGetExportTable, once a process:
 * tables that NVIDIA does not document, and gpushare does not have. */
static void note_caller(struct program *program)
{
    const char *line = program_line(program, "cuGetExportTable");
    if (*line)
        printf("asked for an export table: %s: %s\n", program->name, line);
}

static int end_program(struct program *program)
{
    int status = program_wait(program);
    program_print(program);
    note_caller(program);
    return status;
}

static int run_program(struct program *program, const char *const words[PROGRAM_WORDS])
{
    program_start(program, words, NULL);
    return end_program(program);
}

/* ---- the test programs of the runtime and of the driver API -------------------------------- */
void step_dropin_programs(const char *argument)
{
    (void)argument;
    static const char *const programs[][PROGRAM_WORDS] = {
        {RUN, "%F/tests/dropin/program_12"},
        {RUN, "%F/tests/dropin/program_13"},
        {RUN, "%F/tests/dropin/program", "calls"},
    };
    enum { COUNT = sizeof programs / sizeof *programs };
    unsigned right = 0;
    struct server *server = own_server_start(NULL, NULL);
    for (int i = 0; i < COUNT; i++) {
        struct program program;
        int status = run_program(&program, programs[i]);
        if (status == 0)
            right++;
        else
            probe_failed("%s: exit status %d: %s", programs[i][2] + 2, status, program.last);
    }
    if (right == COUNT)
        probe_passed("each call of the runtime (12 and 13) and of the driver did what CUDA's does");
    own_server_stop(server);
}

/* ---- three processes of one program, one of which faults ------------------------------------ */
enum { HEATS = 3, SERVED_AGAIN_S = 30 };

/* The server lets the user of a program that faulted wait before it serves the next one. */
static bool is_served_again(const char *const words[PROGRAM_WORDS])
{
    uint64_t end = probe_ns() + SERVED_AGAIN_S * UINT64_C(1000000000);
    for (;;) {
        struct program program;
        if (run_program(&program, words) == 0)
            return program_said(&program, "verified");
        if (probe_ns() > end || !(program_said(&program, "cudaErrorMpsServerNotReady") ||
                                  program_said(&program, "CUDA_ERROR_MPS_SERVER_NOT_READY")))
            return false;
        probe_sleep_ms(100);
    }
}

/* argument: "heat" or "heat.py". Two pause after half of their steps while the third faults: a
 * program with work on the device at that moment may lose it, and CUDA has no way to take it up
 * again. */
void step_dropin_heat(const char *argument)
{
    static const char *const limits[HEATS][3] = {
        {"GPUSHARE_THREADS_LIMIT=50%", "GPUSHARE_MEMORY_LIMIT=1G"},
        {"GPUSHARE_THREADS_LIMIT=25%", "GPUSHARE_MEMORY_LIMIT=2G"},
        {"GPUSHARE_MEMORY_LIMIT=1G"}};
    bool python = !strcmp(argument, "heat.py");
    const char *steps = python ? "40" : "4000", *stray = python ? "20" : "2000";
    char path[64], pausing[32];
    struct program programs[HEATS], *third = &programs[HEATS - 1];
    unsigned verified = 0;
    snprintf(path, sizeof path, "%%F/examples/unmodified/%s", argument);
    snprintf(pausing, sizeof pausing, "%s: half of", argument);
    struct server *server = own_server_start(NULL, NULL);
    for (int i = 0; i < HEATS - 1; i++)
        program_start_with_input(&programs[i],
                                 (const char *const[PROGRAM_WORDS]){RUN, path, steps, "0", "pause"},
                                 limits[i]);
    for (int i = 0; i < HEATS - 1; i++)
        program_read_until(&programs[i], pausing);
    program_start(third, (const char *const[PROGRAM_WORDS]){RUN, path, steps, stray},
                  limits[HEATS - 1]);
    bool faulted = end_program(third) == 1 && (program_said(third, "cudaErrorIllegalAddress") ||
                                               program_said(third, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    for (int i = 0; i < HEATS - 1; i++)
        program_end_input(&programs[i]);
    for (int i = 0; i < HEATS - 1; i++)
        verified += end_program(&programs[i]) == 0 && program_said(&programs[i], "verified");
    bool again = is_served_again((const char *const[PROGRAM_WORDS]){RUN, path, steps});
    if (faulted && again && verified == HEATS - 1)
        probe_passed("one had its illegal address; two beside it verified, and the next one");
    else
        probe_failed("the one that faulted was told: %s; beside it %u of 2 verified; the next one "
                     "%s",
                     third->last, verified, again ? "verified" : "did NOT verify");
    own_server_stop(server);
}

/* ---- Python's packages ------------------------------------------------------------------------
 */
/* argument: the script's name. Status 77: its package is not installed. */
void step_dropin_python(const char *argument)
{
    char path[64];
    struct program program;
    snprintf(path, sizeof path, "%%F/tests/dropin/%s.py", argument);
    struct server *server = own_server_start(NULL, NULL);
    int status = run_program(&program, (const char *const[PROGRAM_WORDS]){RUN, "python3", path});
    if (status == 0)
        probe_passed("%s", program.last);
    else if (status == 77 || status == 127)
        probe_not_run("%s", program.last);
    else
        probe_failed("exit status %d: %s", status, program.last);
    own_server_stop(server);
}

/* ---- what the calls cost, as a client and straight on the driver ------------------------------
 */
/* The first number that it printed; negative: it failed, and the step with it. */
static double run_pace(const char *const words[PROGRAM_WORDS], const char *const env[])
{
    struct program program;
    program_start(&program, words, env);
    int status = end_program(&program);
    char *end;
    double value = strtod(program.last, &end);
    if (status == 0 && end != program.last)
        return value;
    probe_failed("%s %s: exit status %d: %s", env ? "straight" : "as a client", program.name,
                 status, program.last);
    return -1;
}

void step_dropin_pace(const char *argument)
{
    (void)argument;
    static const struct {
        const char *mode, *unit;
    } paces[] = {{"launch", "ns"},  {"sync", "us"},     {"pinned", "s"},
                 {"pageable", "s"}, {"allocate", "ms"}, {"start", "ms"}};
    enum { COUNT = sizeof paces / sizeof *paces };
    const char *inherited = getenv("LD_LIBRARY_PATH");
    char driver[900], libraries[4000], name[64];
    unsigned measured = 0;
    snprintf(driver, sizeof driver, "%s", probe_library);
    snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s/lib/runtime:%s:%s", probe_folder,
             dirname(driver), inherited ? inherited : "");
    const char *const straight[] = {libraries, NULL};
    struct server *server = own_server_start(NULL, NULL);
    for (int i = 0; i < COUNT; i++) {
        const char *mode = paces[i].mode;
        double client =
            run_pace((const char *const[PROGRAM_WORDS]){RUN, "%F/tests/dropin/pace", mode}, NULL);
        double alone =
            run_pace((const char *const[PROGRAM_WORDS]){"%F/tests/dropin/pace", mode}, straight);
        snprintf(name, sizeof name, "%s_client", mode);
        probe_measure(name, client, paces[i].unit);
        snprintf(name, sizeof name, "%s_straight", mode);
        probe_measure(name, alone, paces[i].unit);
        measured += client >= 0 && alone >= 0;
    }
    if (measured == COUNT)
        probe_passed("%u kinds of call measured both ways", measured);
    own_server_stop(server);
}

/* ---- programs of somebody else ------------------------------------------------------------------
 */
enum { WAIVED = 2, TIMED_OUT = 124 };

static int is_program(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Each executable of the bundle's folder `samples`, which make gpu-bundle fills from
 * SAMPLES=FOLDER. An exit status is not a verdict (some end with 0 whatever they found), so the
 * last lines stand in the log. */
void step_dropin_samples(const char *argument)
{
    (void)argument;
    char folder[900], path[1200];
    struct dirent **entries;
    unsigned right = 0, waived = 0, late = 0, other = 0;
    snprintf(folder, sizeof folder, "%s/samples", probe_folder);
    int count = scandir(folder, &entries, is_program, alphasort);
    if (count <= 0) {
        probe_not_run("the bundle has no samples: make gpu-bundle SAMPLES=FOLDER puts them in");
        return;
    }
    struct server *server = own_server_start(NULL, NULL);
    for (int i = 0; i < count; i++) {
        struct program program;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        int status = run_program(
            &program, (const char *const[PROGRAM_WORDS]){"/usr/bin/timeout", "30", RUN, path});
        right += status == 0;
        waived += status == WAIVED;
        late += status == TIMED_OUT;
        other += status != 0 && status != WAIVED && status != TIMED_OUT;
        printf("sample %s: exit status %d: %s\n", entries[i]->d_name, status, program.last);
        free(entries[i]);
    }
    free(entries);
    probe_measure("status_0", right, "programs");
    probe_measure("waived", waived, "programs");
    probe_measure("over_30_s", late, "programs");
    probe_measure("other_status", other, "programs");
    if (late + other == 0)
        probe_passed("%u of %d ended with 0, %u waived", right, count, waived);
    else
        probe_not_met("%u of %d ended with 0, %u waived, %u took over 30 s, %u ended otherwise",
                      right, count, waived, late, other);
    own_server_stop(server);
}
