/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * How the host learns that work is done: by a word that the device writes after it, by an event,
 * by a host function; on a green context's stream, with the primary context current.
 *
 * Host and device clocks differ. So each kernel writes a word of its own as its last act, and
 * "late" is the time between the host's sight of that word and of the sign under test.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/ipc/shm.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

enum { SAMPLES_MAX = 500, KERNEL_NS = 20000, FIRST_SAMPLES = 200, WORDS_BYTES = 4096 };
static const uint64_t patience_ns = UINT64_C(5) * 1000000000;

enum way { MEMOP, BATCH, EVENT, HOST_FUNCTION, WAYS };
static const char *const way_names[] = {"memop", "batch-memop", "event", "host-function"};

struct words {
    _Atomic uint64_t kernel; /* written by the kernel */
    char apart[120];         /* another cache line */
    _Atomic uint64_t sign;   /* written by the memory operation or the host function */
    char apart_too[120];
    _Atomic uint64_t shadow; /* the second word of a batch */
};

static struct words *words;
static cuda_device_ptr device_words;
static struct probe_partition partitions[2];
static cuda_event event;
static bool green;
static _Atomic uint64_t expected;

struct lateness {
    double late_us[SAMPLES_MAX], enqueue_us[SAMPLES_MAX];
    unsigned count, early;
};

static void write_from_host(void *user)
{
    (void)user;
    atomic_store(&words->sign, expected);
}

static cuda_result give_sign(enum way way, uint64_t value)
{
    cuda_device_ptr sign = device_words + offsetof(struct words, sign);
    cuda_mem_op_params operations[2] = {0};
    cuda_stream stream = partitions[0].stream;
    switch (way) {
    case MEMOP:
        return cu.cuStreamWriteValue64(stream, sign, value, CUDA_STREAM_WRITE_VALUE_DEFAULT);
    case BATCH:
        for (int i = 0; i < 2; i++) {
            operations[i].write_value.operation = CUDA_MEM_OP_WRITE_VALUE_64;
            operations[i].write_value.address =
                i ? sign : device_words + offsetof(struct words, shadow);
            operations[i].write_value.value64 = value;
        }
        return cu.cuStreamBatchMemOp(stream, 2, operations, 0);
    case EVENT:
        return cu.cuEventRecord(event, stream);
    default:
        return cu.cuLaunchHostFunc(stream, write_from_host, NULL);
    }
}

static bool sign_seen(enum way way, uint64_t value)
{
    if (way == EVENT) {
        cuda_result result = cu.cuEventQuery(event);
        if (result != CUDA_OK && result != CUDA_ERR_NOT_READY)
            probe_die("cuEventQuery: %s", probe_error(result));
        return result == CUDA_OK;
    }
    return atomic_load(&words->sign) == value;
}

static void sample(enum way way, struct lateness *all)
{
    uint64_t value = ++expected;
    cuda_device_ptr kernel_word = device_words + offsetof(struct words, kernel);
    unsigned long long duration = KERNEL_NS;
    void *parameters[] = {&kernel_word, &value, &duration};
    CU_QUIET(cu.cuLaunchKernel(probe_function("flag"), 1, 1, 1, 1, 1, 1, 0, partitions[0].stream,
                               parameters, NULL));
    uint64_t began = probe_ns();
    cuda_result result = give_sign(way, value);
    uint64_t enqueued = probe_ns(), kernel_seen = 0;
    if (result != CUDA_OK)
        probe_die("%s on a green context's stream: %s", way_names[way], probe_error(result));
    for (;;) {
        /* The sign first: if it is there, the kernel's word, which came before, must be too. */
        bool signed_off = sign_seen(way, value);
        bool kernel_done = atomic_load(&words->kernel) == value;
        uint64_t now = probe_ns();
        all->early += signed_off && !kernel_done;
        if (kernel_done && !kernel_seen)
            kernel_seen = now;
        if (signed_off) {
            all->late_us[all->count] = kernel_seen ? (double)(now - kernel_seen) / 1e3 : 0;
            all->enqueue_us[all->count++] = (double)(enqueued - began) / 1e3;
            return;
        }
        if (now - began > patience_ns)
            probe_die("%s: nothing was seen within 5 s (the kernel's own word %s)", way_names[way],
                      kernel_done ? "came" : "did not come either");
    }
}

/* Words as the server has them: in a sealed memfd that is registered. */
static struct words *register_words(cuda_device_ptr *device)
{
    struct shm shm;
    int error = shm_create(&shm, "gpushare-check", WORDS_BYTES);
    if (error < 0)
        probe_die("no sealed memfd: %s", strerror(-error));
    CU(cu.cuMemHostRegister(shm.base, WORDS_BYTES,
                            CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP));
    CU(cu.cuMemHostGetDevicePointer(device, shm.base, 0));
    return shm.base;
}

static void open_device(void)
{
    probe_open();
    probe_context();
    green = probe_partitions(partitions, 2, 8);
    words = register_words(&device_words);
    CU(cu.cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
    probe_launch_last(partitions[0].stream, 1000);
    CU(cu.cuCtxSynchronize());
}

static void report(enum way way, struct lateness *all)
{
    char name[64];
    double late_p99 = probe_quantile(all->late_us, all->count, 0.99);
    double enqueue_p99 = probe_quantile(all->enqueue_us, all->count, 0.99);
    snprintf(name, sizeof name, "%s_late_p50_us", way_names[way]);
    probe_measure(name, probe_quantile(all->late_us, all->count, 0.5), "us");
    snprintf(name, sizeof name, "%s_late_p99_us", way_names[way]);
    probe_measure(name, late_p99, "us");
    snprintf(name, sizeof name, "%s_enqueue_p50_us", way_names[way]);
    probe_measure(name, probe_quantile(all->enqueue_us, all->count, 0.5), "us");
    snprintf(name, sizeof name, "%s_enqueue_p99_us", way_names[way]);
    probe_measure(name, enqueue_p99, "us");
}

static void measure(enum way way, unsigned samples, struct lateness *all)
{
    memset(all, 0, sizeof *all);
    probe_call(way_names[way]);
    for (unsigned i = 0; i < samples; i++)
        sample(way, all);
    CU(cu.cuCtxSynchronize());
    report(way, all);
}

/* Order between partitions: a stream of the second waits for an event of the first. */
static void judge_event_order(void)
{
    unsigned early = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t value = ++expected;
        cuda_device_ptr first = device_words + offsetof(struct words, kernel),
                        second = device_words + offsetof(struct words, sign);
        unsigned long long slow = 1000000, fast = 0;
        void *slow_parameters[] = {&first, &value, &slow},
             *fast_parameters[] = {&second, &value, &fast};
        CU_QUIET(cu.cuLaunchKernel(probe_function("flag"), 1, 1, 1, 1, 1, 1, 0,
                                   partitions[0].stream, slow_parameters, NULL));
        CU_QUIET(cu.cuEventRecord(event, partitions[0].stream));
        CU_QUIET(cu.cuStreamWaitEvent(partitions[1].stream, event, 0));
        CU_QUIET(cu.cuLaunchKernel(probe_function("flag"), 1, 1, 1, 1, 1, 1, 0,
                                   partitions[1].stream, fast_parameters, NULL));
        uint64_t began = probe_ns();
        while (atomic_load(&words->sign) != value)
            if (probe_ns() - began > patience_ns)
                probe_die("a stream that waits for another partition's event never went on");
        early += atomic_load(&words->kernel) != value;
    }
    probe_judge(
        early == 0, "event-orders-partitions",
        "a stream of one partition waited for an event of another's, 20 times: %u began too "
        "early",
        early);
}

void step_completion(const char *argument)
{
    static struct lateness all;
    char assumption[64];
    enum way way = MEMOP;
    while (way < WAYS && strcmp(way_names[way], argument) != 0)
        way++;
    open_device();
    measure(way, FIRST_SAMPLES, &all);
    snprintf(assumption, sizeof assumption, "%s-on-green-stream", way_names[way]);
    double late = probe_quantile(all.late_us, all.count, 0.5),
           late_p99 = probe_quantile(all.late_us, all.count, 0.99),
           enqueue = probe_quantile(all.enqueue_us, all.count, 0.5);
    if (!green && all.early == 0) {
        probe_unknown(assumption,
                      "this driver has no green contexts; on a plain stream it works, seen %.1f us "
                      "after the kernel's own word (median)",
                      late);
        return;
    }
    probe_judge(all.early == 0, assumption,
                "works with the primary context current; %u of %u came before the kernel's own "
                "word; seen %.1f us after it (median), %.1f us at the 99th percentile; enqueued in "
                "%.1f us",
                all.early, all.count, late, late_p99, enqueue);
    if (way == EVENT)
        judge_event_order();
}

void step_latency(const char *argument)
{
    (void)argument;
    static const enum way ways[] = {MEMOP, EVENT, HOST_FUNCTION};
    static struct lateness all[WAYS];
    enum { COUNT = sizeof ways / sizeof *ways };
    open_device();
    /* In turns, so that a machine which others use is as busy for each of them. */
    for (unsigned i = 0; i < COUNT * SAMPLES_MAX; i++) {
        if (i < COUNT)
            probe_call(way_names[ways[i]]);
        sample(ways[i % COUNT], &all[ways[i % COUNT]]);
    }
    CU(cu.cuCtxSynchronize());
    /* Of the quick ones: a host that was not running sees the word of the kernel together with any
     * sign, which is then no later at all. */
    const double quick = 0.25;
    double late[WAYS], cost[WAYS];
    for (int i = 0; i < WAYS; i++) {
        late[i] = probe_quantile(all[i].late_us, all[i].count, quick);
        cost[i] = probe_quantile(all[i].enqueue_us, all[i].count, 0.5);
    }
    for (size_t i = 0; i < COUNT; i++)
        report(ways[i], &all[ways[i]]);
    probe_judge(late[MEMOP] <= late[EVENT] + 5 && late[MEMOP] <= late[HOST_FUNCTION] + 5,
                "word-is-as-quick",
                "seen after the kernel's own word, the first quartile: by word %.1f us, by "
                "event %.1f us, by host function %.1f us; enqueued in %.1f, "
                "%.1f and %.1f us (medians)",
                late[MEMOP], late[EVENT], late[HOST_FUNCTION], cost[MEMOP], cost[EVENT],
                cost[HOST_FUNCTION]);
}
