/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A whole worker on the software GPU: what the recording driver can't judge. */
#include "server/worker/image/rewrite.h"
#include "tests/unit/worker/harness.h"

#include "common/error.h"

enum { GRANULE = 2 << 20 };

/* Tries to use moved variables in every way that nvcc's output does. */
static const char kernel[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                             ".global .align 4 .u32 counter = 5;\n"
                             ".global .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
                             ".global .align 8 .u64 pointer = generic(counter);\n"
                             ".global .align 8 .u64 inside = table+8;\n"
                             ".const .align 4 .u32 scale = 3;\n"
                             ".global .align 4 .u32 zero[256];\n"
                             ".visible .entry kernel(.param .u64 out)\n"
                             "{\n"
                             "\t.reg .b64 %rd<8>;\n\t.reg .b32 %r<12>;\n\t.reg .pred %p;\n"
                             "\tld.param.u64 %rd1, [out];\n"
                             "\tcvta.to.global.u64 %rd1, %rd1;\n"
                             "\tmov.u32 %r1, %tid.x;\n"
                             "\tatom.global.add.u32 %r2, [counter], 1;\n"
                             "\tmov.u64 %rd2, table;\n"
                             "\tld.global.u32 %r3, [%rd2+4];\n"
                             "\tld.global.u32 %r4, [table+12];\n"
                             "\tld.global.u64 %rd3, [inside];\n"
                             "\tld.global.u32 %r5, [%rd3];\n"
                             "\tld.const.u32 %r6, [scale];\n"
                             "\tsetp.eq.u32 %p, %r1, 0;\n"
                             "\t@%p st.global.u32 [zero+16], 77;\n"
                             "\tld.global.u64 %rd4, [pointer];\n"
                             "\tmul.wide.u32 %rd5, %r1, 16;\n"
                             "\tadd.s64 %rd5, %rd1, %rd5;\n"
                             "\tst.global.u32 [%rd5], %r3;\n"
                             "\tst.global.u32 [%rd5+4], %r4;\n"
                             "\tst.global.u32 [%rd5+8], %r5;\n"
                             "\tst.global.u32 [%rd5+12], %r6;\n"
                             "\tsetp.ne.u64 %p, %rd4, 0;\n"
                             "\t@%p red.add.u32 [%rd4], 100;\n"
                             "\tret;\n}\n";

static int start(void **state)
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

static int stop(void **state)
{
    int result = harness_stop(state);
    cuda_driver_close(&harness.driver);
    return result;
}

static uint64_t copy_out(struct peer *peer, uint64_t host, uint64_t from, uint64_t count)
{
    struct proto_command_copy copy = {
        .opcode = PROTO_COMMAND_COPY, .destination = host, .source = from, .count = count};
    return peer_push(peer, 0, &copy);
}

static void load(struct peer *peer, uint64_t base)
{
    struct shm shm;
    size_t length = sizeof kernel - 1;
    assert_int_equal(shm_create(&shm, "image", length), 0);
    memcpy(shm.base, kernel, length);
    struct proto_worker_module_inspect inspect = {.module = 1, .count = length};
    harness_send(PROTO_WORKER_MODULE_INSPECT, peer->number, &inspect, NULL, 0, &shm.fd, 1);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    const struct proto_worker_module_needs *needs = harness.message.body;
    /* The twin of scale begins behind the variables that move. */
    assert_int_equal(needs->global_bytes, 3 * REWRITE_ALIGN + 4);
    assert_int_equal(needs->unsaved, PROTO_UNSAVED_NOTHING);
    shm_release(&shm);
    struct proto_worker_module_load place = {.module = 1, .global_base = base};
    const struct proto_module_loaded *loaded =
        harness_ask(PROTO_WORKER_MODULE_LOAD, peer->number, &place, PROTO_MODULE_LOADED);
    assert_int_equal(loaded->functions, 1);
}

static uint64_t global(struct peer *peer, const char *name, uint64_t bytes)
{
    struct proto_global_get get = {.module = 1};
    harness_send(PROTO_GLOBAL_GET, peer->number, &get, name, strlen(name), NULL, 0);
    assert_int_equal(harness_receive(), PROTO_GLOBAL_INFO);
    const struct proto_global_info *info = harness.message.body;
    assert_int_equal(info->count, bytes);
    return info->address;
}

static void moved_variables_work(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    uint64_t memory = peer_map(peer, 0, GRANULE), host = peer_host_map(peer, 0, 8192);
    /* The memory is not fresh: zeroes and initial values must be written. */
    struct proto_command_fill fill = {.opcode = PROTO_COMMAND_FILL,
                                      .value = 0xdededede,
                                      .destination = memory,
                                      .count = GRANULE / 4,
                                      .width = 4};
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &fill)), 0);
    load(peer, memory + 512);
    uint64_t counter = global(peer, "counter", 4), zero = global(peer, "zero", 1024);
    assert_int_equal(global(peer, "scale", 4), memory + 512 + 3 * REWRITE_ALIGN);
    assert_true(counter >= memory + 512 && counter < memory + 512 + 1064);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    uint64_t out = memory + 65536;
    launch.grid[0] = 2;
    launch.grid[1] = 1;
    launch.block[0] = 64;
    launch.block[1] = 1;
    launch.parameter_bytes = 8;
    memcpy(launch.inline_parameters, &out, 8);
    peer_push(peer, 0, &launch);
    copy_out(peer, host, out, 64 * 16);
    copy_out(peer, host + 2048, counter, 4);
    assert_int_equal(peer_wait(peer, 0, copy_out(peer, host + 4096, zero, 1024)), 0);
    assert_int_equal(peer->producers[0].ring.status->error_count, 0);
    /* An answer over the socket tells ThreadSanitizer the order that shared memory does not. */
    harness_ask(PROTO_WORKER_QUIESCE, 1, NULL, PROTO_DONE);
    const uint32_t *results = (const uint32_t *)(uintptr_t)host;
    for (int i = 0; i < 64; i++) {
        assert_int_equal(results[4 * i], 20);
        assert_int_equal(results[4 * i + 1], 40);
        assert_int_equal(results[4 * i + 2], 30);
        assert_int_equal(results[4 * i + 3], 3);
    }
    assert_int_equal(results[512], 5 + 128 + 128 * 100);
    for (int i = 0; i < 256; i++)
        assert_int_equal(results[1024 + i], i == 4 ? 77 : 0);
    peer_detach(peer);
}

static void bad_ptx_is_refused_with_its_line(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry kernel()\n{\n\tfrobnicate.u32 %r1, 5;\n\tret;\n}\n";
    struct shm shm;
    assert_int_equal(shm_create(&shm, "image", sizeof text - 1), 0);
    memcpy(shm.base, text, sizeof text - 1);
    struct proto_worker_module_inspect inspect = {.module = 1, .count = sizeof text - 1};
    harness_send(PROTO_WORKER_MODULE_INSPECT, 1, &inspect, NULL, 0, &shm.fd, 1);
    uint16_t answered = harness_receive();
    if (answered == PROTO_WORKER_MODULE_NEEDS) {
        struct proto_worker_module_load place = {.module = 1};
        harness_ask(PROTO_WORKER_MODULE_LOAD, 1, &place, PROTO_FAILED);
    }
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_PTX);
    const struct proto_failed *failed = harness.message.body;
    if (!strstr(failed->text, "6"))
        print_message("%s\n", failed->text);
    assert_non_null(strstr(failed->text, "6"));
    shm_release(&shm);
    peer_detach(peer);
}

static void gpu_time_is_counted(void **state)
{
    (void)state;
    static const char sleeper[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                  ".visible .entry kernel()\n{\n\tnanosleep.u32 1000000;\n\tret;\n}"
                                  "\n";
    struct peer *peer = peer_attach(1);
    peer_load_text(peer, 1, sleeper, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    launch.grid[0] = launch.grid[1] = 1;
    launch.block[0] = launch.block[1] = 1;
    launch.parameter_bytes = 0;
    uint64_t value = 0;
    for (int i = 0; i < 10; i++)
        value = peer_push(peer, 0, &launch);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    const struct proto_worker_usage *usage =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->launches, 10);
    /* Modelled time: ten sleeps of one millisecond, one after another. */
    if (usage->gpu_nanoseconds < 9900000)
        print_message("%llu ns\n", (unsigned long long)usage->gpu_nanoseconds);
    assert_true(usage->gpu_nanoseconds >= 9900000);
    peer_detach(peer);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(moved_variables_work),
        T(bad_ptx_is_refused_with_its_line),
        T(gpu_time_is_counted),
    };
    char path[512];
    const char *build = getenv("BUILD");
    /* A sleep that is counted lasts as long as it says. */
    setenv("SOFTGPU_VARIATION_PERCENT", "0", 1);
    snprintf(path, sizeof path, "%s/lib/softgpu/libcuda.so.1", build ? build : "build");
    if (access(path, R_OK) < 0) {
        fprintf(stderr, "%s is not built\n", path);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
