/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * timed: clients of a whole worker on the software GPU, whose kernels take a time of the device's
 * clock and count in words.
 */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_TIMED_H
#define GPUSHARE_TESTS_UNIT_WORKER_TIMED_H

#include "common/clock.h"
#include "common/error.h"
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

static struct peer *peers[PEERS];
static uint32_t functions[PEERS];
static uint64_t words[PEERS], hosts[PEERS];

static inline int start(void **state)
{
    char path[512];
    struct error why = {0};
    const char *build = getenv("BUILD");
    fake_reset();
    snprintf(path, sizeof path, "%s/lib/softgpu/libcuda.so.1", build ? build : "build");
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return -1;
    uint32_t error = cuda_driver_open(&harness.driver, absolute, &why);
    free(absolute);
    if (error)
        return -1;
    return harness_start_with(state, &harness.driver);
}

static inline int stop(void **state)
{
    for (int i = 0; i < PEERS; i++)
        if (peers[i])
            peer_detach(peers[i]);
    memset(peers, 0, sizeof peers);
    int result = harness_stop(state);
    cuda_driver_close(&harness.driver);
    return result;
}

static inline void arrive_with(uint32_t i, uint32_t threads)
{
    peers[i] = peer_attach_with(i + 1, threads, 0);
    words[i] = peer_map(peers[i], 0, GRANULE);
    hosts[i] = peer_host_map(peers[i], 0, 4096);
    peer_load_text(peers[i], 1, kernel, 0);
    functions[i] = peer_function(peers[i], 1, "kernel");
    struct proto_command_fill fill = {
        .opcode = PROTO_COMMAND_FILL, .destination = words[i], .count = 16, .width = 4};
    assert_int_equal(peer_wait(peers[i], 0, peer_push(peers[i], 0, &fill)), 0);
}

static inline void arrive(uint32_t i)
{
    arrive_with(i, PROTO_PERCENT_WHOLE);
}

static inline uint64_t queued(uint32_t i)
{
    return peers[i]->producers[0].value - peer_completed(peers[i], 0);
}

/* Keeps the first clients backlogged with kernels of so long. Returns the kernels done. */
static inline uint64_t keep_busy(uint32_t count, uint64_t kernel_ns, uint64_t ns)
{
    uint64_t before = 0, after = 0, end = clock_now() + ns;
    for (uint32_t i = 0; i < count; i++)
        before += peer_completed(peers[i], 0);
    while (clock_now() < end) {
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

static inline void finish(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(peer_wait(peers[i], 0, peers[i]->producers[0].value), 0);
}

static inline uint32_t word(uint32_t i)
{
    struct proto_command_copy copy = {
        .opcode = PROTO_COMMAND_COPY, .destination = hosts[i], .source = words[i], .count = 4};
    assert_int_equal(peer_wait(peers[i], 0, peer_push(peers[i], 0, &copy)), 0);
    /* An answer over the socket tells ThreadSanitizer the order that shared memory does not. */
    harness_ask(PROTO_WORKER_QUIESCE, i + 1, NULL, PROTO_DONE);
    return *(const uint32_t *)(uintptr_t)hosts[i];
}

#endif
