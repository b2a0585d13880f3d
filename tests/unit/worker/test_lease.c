/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Leases of a whole worker on the software GPU, counted by words that the kernels write. */
#include "tests/unit/worker/harness.h"

enum { PEERS = 4, GRANULE = 2 << 20, MS = 1000000 };

/* Sleeps for so many nanoseconds of the device's time, then counts. */
static const char kernel[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                             ".visible .entry kernel(.param .u64 word, .param .u64 ns)\n"
                             "{\n"
                             "\t.reg .b64 %rd<4>;\n\t.reg .b32 %r<4>;\n"
                             "\tld.param.u64 %rd1, [word];\n"
                             "\tld.param.u64 %rd2, [ns];\n"
                             "\tcvt.u32.u64 %r1, %rd2;\n"
                             "\tnanosleep.u32 %r1;\n"
                             "\tcvta.to.global.u64 %rd1, %rd1;\n"
                             "\tred.global.add.u32 [%rd1], 1;\n"
                             "\tret;\n}\n";

#ifdef ARENA_THREAD_SANITIZER
#define KEPT_LEAST 0.1 /* the worker itself takes its time */
#else
#define KEPT_LEAST 0.9
#endif

static struct peer *peers[PEERS];
static uint32_t functions[PEERS];
static uint64_t words[PEERS], hosts[PEERS];

static int start(void **state)
{
    char path[512], why[300];
    const char *build = getenv("BUILD");
    fake_reset();
    snprintf(path, sizeof path, "%s/lib/softgpu/libcuda.so.1", build ? build : "build");
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return -1;
    int opened = cuda_driver_open(&harness.driver, absolute, why, sizeof why);
    free(absolute);
    if (opened < 0)
        return -1;
    return harness_start_with(state, &harness.driver);
}

static int stop(void **state)
{
    for (int i = 0; i < PEERS; i++)
        if (peers[i])
            peer_detach(peers[i]);
    memset(peers, 0, sizeof peers);
    int result = harness_stop(state);
    cuda_driver_close(&harness.driver);
    return result;
}

static void arrive(uint32_t i)
{
    peers[i] = peer_attach(i + 1);
    words[i] = peer_map(peers[i], 0, GRANULE);
    hosts[i] = peer_host_map(peers[i], 0, 4096);
    peer_load_text(peers[i], 1, kernel, 0);
    functions[i] = peer_function(peers[i], 1, "kernel");
    struct proto_command_fill fill = {
        .opcode = PROTO_COMMAND_FILL, .destination = words[i], .count = 16, .width = 4};
    assert_int_equal(peer_wait(peers[i], 0, peer_push(peers[i], 0, &fill)), 0);
}

static void set_mode(enum scheduler_mode mode, uint64_t lease)
{
    struct proto_worker_schedule wanted = {
        .mode = mode, .precision = 500, .lease = lease, .quantum = lease};
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
}

static uint64_t queued(uint32_t i)
{
    return peers[i]->producers[0].value - peer_completed(peers[i], 0);
}

/* Keeps the first clients backlogged with kernels of so long. Returns the kernels done. */
static uint64_t keep_busy(uint32_t count, uint64_t kernel_ns, uint64_t ns)
{
    uint64_t before = 0, after = 0, end = timeline_now() + ns;
    for (uint32_t i = 0; i < count; i++)
        before += peer_completed(peers[i], 0);
    while (timeline_now() < end) {
        for (uint32_t i = 0; i < count; i++) {
            struct proto_command_launch launch = peer_launch(functions[i]);
            uint64_t parameters[2] = {words[i], kernel_ns};
            memcpy(launch.inline_parameters, parameters, sizeof parameters);
            launch.grid[0] = launch.grid[1] = launch.block[0] = launch.block[1] = 1;
            while (queued(i) < 150)
                peer_push(peers[i], 0, &launch);
        }
        struct timespec pause = {.tv_nsec = MS};
        nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < count; i++)
        after += peer_completed(peers[i], 0);
    return after - before;
}

static void finish(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(peer_wait(peers[i], 0, peers[i]->producers[0].value), 0);
}

static uint32_t word(uint32_t i)
{
    struct proto_command_copy copy = {
        .opcode = PROTO_COMMAND_COPY, .destination = hosts[i], .source = words[i], .count = 4};
    assert_int_equal(peer_wait(peers[i], 0, peer_push(peers[i], 0, &copy)), 0);
    /* An answer over the socket tells ThreadSanitizer the order that shared memory does not. */
    harness_ask(PROTO_WORKER_QUIESCE, i + 1, NULL, PROTO_DONE);
    return *(const uint32_t *)(uintptr_t)hosts[i];
}

/* Four clients with 5 ms each, of kernels of 100 us, beside one that has the device alone. What
 * else the machine does takes part, so the best of some rounds counts. */
static void short_leases_keep_the_device_busy(void **state)
{
    (void)state;
    double kept = 0;
    for (uint32_t i = 0; i < PEERS; i++)
        arrive(i);
    set_mode(SCHEDULER_FAIR, 5 * MS);
    for (int round = 0; round < 8 && kept < KEPT_LEAST; round++) {
        keep_busy(1, 100000, 30 * MS);
        uint64_t alone = keep_busy(1, 100000, 200 * MS);
        finish(1);
        keep_busy(PEERS, 100000, 30 * MS);
        uint64_t start = timeline_now();
        uint64_t together = keep_busy(PEERS, 100000, 200 * MS);
        uint64_t most = (timeline_now() - start) / 100000;
        finish(PEERS);
        print_message("alone %lu kernels, four with leases of 5 ms %lu\n", alone, together);
        /* Kernels of one block would fit beside each other: that they never did. */
        assert_true(together <= most + most / 50 + 8);
        if ((double)together / (double)alone > kept)
            kept = (double)together / (double)alone;
    }
    assert_true(kept >= KEPT_LEAST);
    for (uint32_t i = 0; i < PEERS; i++) {
        uint64_t launched = peers[i]->producers[0].value - 1;
        assert_int_equal(word(i), launched);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_leases_keep_the_device_busy, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
