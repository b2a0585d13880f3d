/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushare itself on the driver under examination: each step with a private server of its own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/programs/gpu/own_server.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/program.h"
#include "tests/programs/gpu/step.h"
#include "tests/support/server.h"

#define OK(call) check_ok((call), #call)

static void check_ok(gpushare_error error, const char *call)
{
    if (error == GPUSHARE_SUCCESS)
        return;
    probe_failed("%s: %s: %s", call, gpushare_error_name(error), gpushare_error_text());
    probe_end(1);
}

/* ---- examples and the demo's six ------------------------------------------------------ */
static const struct example {
    const char *name;
    const char *words[8]; /* %F: the bundle's folder, %T: the temporary one */
} examples[] = {
    {"vector-add", {"%F/examples/vector-add"}},
    {"sgemm", {"%F/examples/sgemm"}},
    {"histogram", {"%F/examples/histogram", "%F/bin/gpushared", "%F/bin/gpushare"}},
    {"kmeans", {"%F/examples/kmeans", "-k", "3", "%F/examples/data/iris.csv"}},
    {"nbody", {"%F/examples/nbody"}},
    {"mandelbrot", {"%F/examples/mandelbrot", "-o", "%T/set.png"}},
};

void step_example(const char *argument)
{
    const struct example *example = NULL;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (!strcmp(examples[i].name, argument))
            example = &examples[i];
    if (!example)
        probe_die("no such example: %s", argument);
    struct server *server = own_server_start(NULL, NULL);
    uint64_t began = probe_ns();
    struct program program;
    program_start(&program, example->words, NULL);
    int status = program_wait(&program);
    probe_measure("seconds", (double)(probe_ns() - began) / 1e9, "s");
    program_print(&program);
    if (status == 0)
        probe_passed("%s", program.last);
    else
        probe_failed("exit status %d: %s", status, program.last);
    own_server_stop(server);
}

enum expected { VERIFIED, REFUSED, KILLED };

static const struct six {
    const char *words[8];
    const char *env[4];
    enum expected expected;
} six[] = {
    {{"%F/examples/vector-add", "-n", "262144", "-r", "150"},
     {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=25", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=64M"},
     VERIFIED},
    {{"%F/examples/sgemm", "-n", "192", "-r", "20"},
     {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=256M"},
     VERIFIED},
    {{"%F/examples/kmeans", "-k", "3", "-r", "120", "%F/examples/data/iris.csv"},
     {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=10", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=32M",
      "GPUSHARE_CLIENT_PRIORITY=1"},
     VERIFIED},
    {{"%F/examples/mandelbrot", "-s", "480x320", "-r", "20", "-o", "%T/set.png"},
     {"GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=128M"},
     VERIFIED},
    {{"%F/examples/vector-add", "-n", "16777216"},
     {"GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=48M"},
     REFUSED},
    {{"%F/examples/sgemm", "-n", "192", "-r", "1000000"}, /* it is killed long before */
     {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=30", "GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=64M"},
     KILLED},
};

static bool as_expected(struct program *program, enum expected expected)
{
    int status = program_wait(program);
    program_print(program);
    if (expected == KILLED)
        return status == 128 + SIGKILL;
    if (expected == REFUSED)
        return status != 0 && program_said(program, "out_of_memory");
    return status == 0 && program_said(program, "verified");
}

void step_six_clients(const char *argument)
{
    (void)argument;
    enum { SIX = sizeof six / sizeof *six };
    struct program programs[SIX];
    struct server *server = own_server_start(NULL, NULL);
    for (size_t i = 0; i < SIX; i++)
        program_start(&programs[i], six[i].words, six[i].env);
    program_read_until(&programs[SIX - 1], "round 8 ");
    kill(programs[SIX - 1].pid, SIGKILL);
    unsigned good = 0;
    for (size_t i = 0; i < SIX; i++)
        good += as_expected(&programs[i], six[i].expected);
    struct program seventh;
    const char *const words[8] = {"%F/examples/nbody", "-d", "60", "-s", "0.5"};
    program_start(&seventh, words, NULL);
    bool served = as_expected(&seventh, VERIFIED);
    if (good == SIX && served)
        probe_passed("four verified, one refused at its limit, one killed; a seventh was served");
    else
        probe_failed("%u of %d of the six did as they should; a seventh %s", good, SIX,
                     served ? "was served" : "was NOT served");
    own_server_stop(server);
}

/* ---- clients in processes of their own --------------------------------------------------- */
enum { SPANS_MAX = 1 << 17, IN_FLIGHT = 8 };

struct span {
    uint64_t begin, end; /* of the device's clock, ns */
    uint32_t sm, pad;
};

struct summary {
    uint32_t blocks; /* that ran, those without room for their span too */
    uint32_t spans;
    double seconds;
};

/* argument: "SECONDS BLOCKS KERNEL_NS". Sends a byte when ready, waits for one, runs, sends its
 * summary and its spans. */
int step_client_part(const char *argument, int socket)
{
    double seconds;
    unsigned blocks;
    unsigned long long kernel_ns;
    if (sscanf(argument, "%lf %u %llu", &seconds, &blocks, &kernel_ns) != 3)
        probe_die("client: '%s'?", argument);
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *function;
    gpushare_event *events[IN_FLIGHT];
    gpushare_address spans, counter;
    uint32_t room = SPANS_MAX, count = 0;
    struct gpushare_dim grid = {blocks, 1, 1}, block = {32, 1, 1};
    char byte = 'r';
    OK(gpushare_connect(NULL, &gpu));
    OK(gpushare_module_load(gpu, probe_ptx(), 0, &module));
    OK(gpushare_module_function(module, "spans", &function));
    OK(gpushare_memory_alloc(gpu, room * sizeof(struct span), &spans));
    OK(gpushare_memory_alloc(gpu, 4, &counter));
    OK(gpushare_fill(gpu, counter, 0, 4, 1));
    for (int i = 0; i < IN_FLIGHT; i++)
        OK(gpushare_event_create(gpu, 0, &events[i]));
    void *parameters[] = {&spans, &counter, &room, &kernel_ns};
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1)
        return 1;
    uint64_t began = probe_ns();
    for (unsigned i = 0; (double)(probe_ns() - began) < seconds * 1e9; i++) {
        if (i >= IN_FLIGHT)
            OK(gpushare_event_synchronize(events[i % IN_FLIGHT]));
        OK(gpushare_launch(function, grid, block, 0, NULL, parameters));
        OK(gpushare_event_record(events[i % IN_FLIGHT], NULL));
    }
    OK(gpushare_synchronize(gpu));
    struct summary summary = {.seconds = (double)(probe_ns() - began) / 1e9};
    OK(gpushare_copy_from_device(gpu, &summary.blocks, counter, sizeof summary.blocks));
    summary.spans = count = summary.blocks < room ? summary.blocks : room;
    struct span *got = malloc((size_t)count * sizeof *got + 1);
    if (!got)
        probe_die("no memory");
    OK(gpushare_copy_from_device(gpu, got, spans, (uint64_t)count * sizeof *got));
    size_t left = (size_t)count * sizeof *got;
    if (write(socket, &summary, sizeof summary) != (ssize_t)sizeof summary)
        return 1;
    for (const char *at = (const char *)got; left;) {
        ssize_t sent = write(socket, at, left);
        if (sent <= 0)
            return 1;
        at += sent;
        left -= (size_t)sent;
    }
    gpushare_close(&gpu);
    return 0;
}

struct client {
    int pid, socket;
    struct span *spans;
    uint32_t count;
    double blocks_a_second;
};

static void start_client(struct client *client, const char *const env[], const char *work)
{
    for (size_t i = 0; env[i]; i++)
        putenv((char *)(uintptr_t)env[i]);
    client->pid = probe_spawn("client", work, &client->socket);
    for (size_t i = 0; env[i]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(env[i], "="), env[i]);
        unsetenv(name);
    }
    char byte;
    if (read(client->socket, &byte, 1) != 1)
        probe_die("a client ended before it was ready");
}

static void release_client(struct client *client)
{
    if (write(client->socket, "g", 1) != 1)
        probe_die("a client ended before it began");
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void collect_client(struct client *client)
{
    int status;
    struct summary summary;
    if (recv(client->socket, &summary, sizeof summary, MSG_WAITALL) != (ssize_t)sizeof summary)
        probe_die("a client ended without its result");
    client->count = summary.spans;
    client->blocks_a_second = summary.blocks / summary.seconds;
    size_t bytes = (size_t)client->count * sizeof *client->spans;
    client->spans = malloc(bytes + 1);
    if (!client->spans ||
        (bytes && recv(client->socket, client->spans, bytes, MSG_WAITALL) != (ssize_t)bytes))
        probe_die("a client's result is incomplete");
    close(client->socket);
    waitpid(client->pid, &status, 0);
    if (status)
        probe_failed("a client ended with status 0x%x", (unsigned)status);
    qsort(client->spans, client->count, sizeof *client->spans, compare_spans);
}

/* How much of [from, to) some kernel of this client ran: its spans are sorted. */
static uint64_t busy_ns(const struct client *client, uint64_t from, uint64_t to)
{
    uint64_t busy = 0, at = from;
    for (uint32_t i = 0; i < client->count; i++) {
        uint64_t begin = client->spans[i].begin < at ? at : client->spans[i].begin;
        uint64_t end = client->spans[i].end > to ? to : client->spans[i].end;
        if (end > begin) {
            busy += end - begin;
            at = end;
        }
    }
    return busy;
}

static unsigned count_sms(const struct client *client, bool *used)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < client->count; i++)
        if (client->spans[i].sm < 1024 && !used[client->spans[i].sm]) {
            used[client->spans[i].sm] = true;
            count++;
        }
    return count;
}

void step_halves(const char *argument)
{
    (void)argument;
    static bool used[2][1024];
    static const char *const env[] = {"GPUSHARE_THREADS_REQUEST=50%", "GPUSHARE_THREADS_LIMIT=50%",
                                      NULL};
    struct client alone, both[2];
    unsigned sms[2], shared = 0;
    struct server *server = own_server_start(NULL, NULL);
    start_client(&alone, env, "2 512 1000000");
    release_client(&alone);
    collect_client(&alone);
    for (int i = 0; i < 2; i++)
        start_client(&both[i], env, "2 512 1000000");
    for (int i = 0; i < 2; i++)
        release_client(&both[i]);
    for (int i = 0; i < 2; i++) {
        collect_client(&both[i]);
        sms[i] = count_sms(&both[i], used[i]);
    }
    for (int i = 0; i < 1024; i++)
        shared += used[0][i] && used[1][i];
    double kept = (both[0].blocks_a_second + both[1].blocks_a_second) / 2 /
                  (alone.blocks_a_second > 0 ? alone.blocks_a_second : 1);
    probe_measure("blocks_a_second_alone", alone.blocks_a_second, "1/s");
    probe_measure("kept_beside_the_other", kept, "-");
    if (shared == 0 && sms[0] && sms[1] && kept >= 0.9)
        probe_passed(
            "they used %u and %u multiprocessors, none of them both, and each kept %.0f %% "
            "of what it does alone",
            sms[0], sms[1], kept * 100);
    else if (shared == 0 && sms[0] && sms[1])
        probe_not_met("each kept %.0f %% of what it does alone, 90 %% is wanted; they used %u and "
                      "%u multiprocessors, none of them both",
                      kept * 100, sms[0], sms[1]);
    else
        probe_failed("they used %u and %u multiprocessors, %u of them both", sms[0], sms[1],
                     shared);
    own_server_stop(server);
}

void step_strict(const char *argument)
{
    (void)argument;
    static const char *const env[2][3] = {
        {"GPUSHARE_TIME_REQUEST=30%", "GPUSHARE_TIME_LIMIT=30%", NULL},
        {"GPUSHARE_TIME_REQUEST=70%", "GPUSHARE_TIME_LIMIT=70%", NULL}};
    static const double wanted[] = {30, 70};
    struct client clients[2];
    double got[2], error = 0;
    struct server *server = own_server_start("GPUSHARE_MODE=strict", "GPUSHARE_LEASE=20ms");
    for (int i = 0; i < 2; i++)
        start_client(&clients[i], env[i], "11 1 1000000");
    for (int i = 0; i < 2; i++)
        release_client(&clients[i]);
    for (int i = 0; i < 2; i++)
        collect_client(&clients[i]);
    if (!clients[0].count || !clients[1].count) {
        probe_failed("a client ran no kernel");
        own_server_stop(server);
        return;
    }
    /* Both must have begun; the first half second is the plans' own. */
    uint64_t from = clients[0].spans[0].begin > clients[1].spans[0].begin
                        ? clients[0].spans[0].begin
                        : clients[1].spans[0].begin;
    from += 500000000;
    uint64_t to = from + UINT64_C(10) * 1000000000;
    for (int i = 0; i < 2; i++) {
        uint64_t last = clients[i].spans[clients[i].count - 1].end;
        to = last < to ? last : to;
    }
    for (int i = 0; i < 2; i++) {
        got[i] = 100.0 * (double)busy_ns(&clients[i], from, to) / (double)(to - from);
        double off = got[i] > wanted[i] ? got[i] - wanted[i] : wanted[i] - got[i];
        error = off > error ? off : error;
    }
    probe_measure("got_30", got[0], "%");
    probe_measure("got_70", got[1], "%");
    /* Leases of 20 ms in plans of 400 ms: kernels of 1 ms and the drain at each end cost some. */
    if (error <= 2)
        probe_passed("in %.1f s they had %.2f and %.2f %% of the time", (double)(to - from) / 1e9,
                     got[0], got[1]);
    else
        probe_not_met(
            "in %.1f s they had %.2f and %.2f %% of the time; 2 points at most are wanted",
            (double)(to - from) / 1e9, got[0], got[1]);
    own_server_stop(server);
}

/* ---- faults -------------------------------------------------------------------------------- */
struct guest {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *function;
};

/* Asks again while a new worker starts; the error that remained after ten seconds. */
static gpushare_error connect_guest(struct guest *guest, const char *function)
{
    gpushare_error error = GPUSHARE_ERROR_DEVICE_NOT_READY;
    for (int i = 0; i < 10000 && error == GPUSHARE_ERROR_DEVICE_NOT_READY; i++) {
        error = gpushare_connect(NULL, &guest->gpu);
        if (error == GPUSHARE_ERROR_DEVICE_NOT_READY)
            usleep(1000);
    }
    if (error != GPUSHARE_SUCCESS)
        return error;
    OK(gpushare_module_load(guest->gpu, probe_ptx(), 0, &guest->module));
    OK(gpushare_module_function(guest->module, function, &guest->function));
    return error;
}

static gpushare_error run_guest(struct guest *guest, void **parameters)
{
    struct gpushare_dim one = {1, 1, 1};
    gpushare_error error = gpushare_launch(guest->function, one, one, 0, NULL, parameters);
    return error != GPUSHARE_SUCCESS ? error : gpushare_synchronize(guest->gpu);
}

/* The milliseconds until a new client's kernel has run; negative: none could. */
static double serve_next(void)
{
    struct guest next;
    uint64_t began = probe_ns();
    if (connect_guest(&next, "nothing") != GPUSHARE_SUCCESS ||
        run_guest(&next, NULL) != GPUSHARE_SUCCESS) {
        printf("the next client: %s\n", gpushare_error_text());
        return -1;
    }
    double ms = (double)(probe_ns() - began) / 1e6;
    gpushare_close(&next.gpu);
    return ms;
}

static void judge_end(gpushare_error wanted, gpushare_error innocent, double ms)
{
    probe_measure("next_client_ms", ms, "ms");
    if (innocent == wanted && ms >= 0)
        probe_passed("the neighbour was told '%s'; the next client's kernel had run %.0f ms after",
                     gpushare_error_name(innocent), ms);
    else
        probe_failed("the neighbour was told '%s', not '%s'; the next client was %s",
                     gpushare_error_name(innocent), gpushare_error_name(wanted),
                     ms >= 0 ? "served" : "NOT served");
}

void step_fault(const char *argument)
{
    (void)argument;
    struct guest innocent, guilty;
    gpushare_address nowhere = 0x7000000000;
    void *parameters[] = {&nowhere};
    struct server *server = own_server_start(NULL, NULL);
    OK(connect_guest(&innocent, "nothing"));
    OK(run_guest(&innocent, NULL));
    OK(connect_guest(&guilty, "stray"));
    gpushare_error told = run_guest(&guilty, parameters);
    printf("the one that faulted was told '%s'\n", gpushare_error_name(told));
    gpushare_error innocent_told = run_guest(&innocent, NULL);
    judge_end(GPUSHARE_SUCCESS, innocent_told, serve_next());
    if (told != GPUSHARE_ERROR_ILLEGAL_ADDRESS)
        probe_failed("the one that faulted was told '%s', not illegal_address",
                     gpushare_error_name(told));
    gpushare_close(&guilty.gpu);
    gpushare_close(&innocent.gpu);
    own_server_stop(server);
}

/* argument: "idle", or "endless": with a kernel that never ends. */
void step_worker_end(const char *argument)
{
    struct guest guest;
    gpushare_address word;
    pid_t workers[4];
    struct server *server = own_server_start(NULL, NULL);
    bool endless = !strcmp(argument, "endless");
    OK(connect_guest(&guest, endless ? "endless" : "nothing"));
    if (endless) {
        struct gpushare_dim one = {1, 1, 1};
        OK(gpushare_memory_alloc(guest.gpu, 64, &word));
        void *parameters[] = {&word};
        OK(gpushare_launch(guest.function, one, one, 0, NULL, parameters));
        probe_sleep_ms(200);
    } else {
        OK(run_guest(&guest, NULL));
    }
    size_t count = server_workers(server, workers, 4);
    if (count != 1)
        probe_die("the server has %zu workers", count);
    kill(workers[0], SIGKILL);
    judge_end(endless ? GPUSHARE_ERROR_INTERRUPTED : GPUSHARE_SUCCESS,
              gpushare_synchronize(guest.gpu), serve_next());
    gpushare_close(&guest.gpu);
    own_server_stop(server);
}

/* ---- two clients side by side, and without gpushare ---------------------------------------- */

/* Two processes with contexts of their own, which the driver gives turns: how long 2,000 kernels
 * of 100 us take the two of them. */
int step_side_part(const char *argument, int socket)
{
    char byte = 'r';
    (void)argument;
    probe_open();
    probe_context();
    cuda_stream stream;
    CU(cu.cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    probe_launch_last(stream, 1000);
    CU(cu.cuStreamSynchronize(stream));
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1)
        return 1;
    unsigned long long ns = 100000;
    void *parameters[] = {&ns};
    for (int i = 0; i < 2000; i++) {
        CU_QUIET(cu.cuLaunchKernel(probe_function("last"), 1, 1, 1, 32, 1, 1, 0, stream, parameters,
                                   NULL));
        if (i % 100 == 99)
            CU_QUIET(cu.cuStreamSynchronize(stream));
    }
    return write(socket, &byte, 1) == 1 ? 0 : 1;
}

static double run_side_by_side(unsigned processes)
{
    int sockets[2], children[2];
    char byte;
    for (unsigned i = 0; i < processes; i++) {
        children[i] = probe_spawn("side", "", &sockets[i]);
        if (read(sockets[i], &byte, 1) != 1)
            probe_die("a process ended before it was ready");
    }
    uint64_t began = probe_ns();
    for (unsigned i = 0; i < processes; i++)
        if (write(sockets[i], "g", 1) != 1)
            probe_die("a process ended before it began");
    for (unsigned i = 0; i < processes; i++) {
        if (read(sockets[i], &byte, 1) != 1)
            probe_die("a process ended without its result");
        waitpid(children[i], NULL, 0);
        close(sockets[i]);
    }
    return (double)(probe_ns() - began) / 1e6;
}

void step_side_by_side(const char *argument)
{
    (void)argument;
    double alone = run_side_by_side(1), both = run_side_by_side(2);
    probe_measure("alone_ms", alone, "ms");
    probe_measure("both_ms", both, "ms");
    probe_note("without gpushare two processes with 2,000 kernels of 100 us each take %.2f of the "
               "time that one takes (%.0f and %.0f ms)",
               both / alone, both, alone);
}

/* ---- programs of the bundle ------------------------------------------------------------------ */
/* late: the exit status of a program that ran out of its own time. */
static void judge_program(const char *const words[8], int late)
{
    struct program program;
    program_start(&program, words, NULL);
    int status = program_wait(&program);
    program_print(&program);
    if (status == 0)
        probe_passed("%s", program.last);
    else if (status == 77)
        probe_not_run("it skipped itself: %s", program.last);
    else if (status == late)
        probe_not_run("%s", program.last);
    else
        probe_failed("exit status %d: %s", status, program.last);
}

void step_corpus(const char *argument)
{
    const char *const words[8] = {"%F/tests/corpus/corpus",
                                  "--oracle",
                                  "%F/tests/corpus/liboracle.so",
                                  "--ptx",
                                  "%F/tests/corpus",
                                  "--driver",
                                  probe_library,
                                  argument};
    judge_program(words, 3);
}

void step_program(const char *argument)
{
    const char *const words[8] = {argument};
    judge_program(words, -1);
}

void step_bench_row(const char *argument)
{
    const char *const words[8] = {"%F/bench/bench", "--alone", "%T/bench.json", argument};
    struct program program;
    program_start(&program, words, NULL);
    int status = program_wait(&program);
    program_print(&program);
    if (program_said(&program, "NOT MET"))
        probe_not_met("%s", program_line(&program, "NOT MET"));
    else if (status != 0)
        probe_failed("exit status %d: %s", status, program.last);
    else if (program_said(&program, "only on the software GPU"))
        probe_not_run("only on the software GPU");
    else
        probe_passed("%s", program_line(&program, argument));
}
