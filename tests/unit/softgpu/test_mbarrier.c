/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Barriers in shared memory (PTX ISA, "mbarrier"), and bulk copies that report to them. */
#include "tests/unit/softgpu/kernel.h"

#define BEGIN                                                                                      \
    PTX_HEAD ".visible .entry k(.param .u64 out, .param .u64 in)\n"                                \
             "{\n.reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n"                        \
             ".shared .align 8 .b64 bar;\n.shared .align 16 .b8 buf[4096];\n"                      \
             "ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\nmov.u32 %r1, %tid.x;\n"           \
             "mov.u32 %r2, %ntid.x;\nmul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d1, %d3;\n"          \
             "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r3, bar;\nmov.u32 %r4, buf;\n"

static uint32_t out[1024], in[1024];

static enum block_state run(const char *text, uint32_t threads, uint64_t budget)
{
    struct {
        void *out, *in;
    } params = {out, in};
    kernel_forget();
    kernel_allow(out, sizeof out, MEMORY_READ | MEMORY_WRITE);
    kernel_allow(in, sizeof in, MEMORY_READ | MEMORY_WRITE);
    memset(out, 0xff, sizeof out);
    struct module *m = kernel_module(text);
    struct kernel_launch l = {
        .name = "k", .grid = 1, .threads = threads, .params = &params, .budget = budget};
    enum block_state state = kernel_run(m, &l, NULL);
    module_destroy(m);
    kernel_free();
    return state;
}

/* Each thread hands a number to its neighbour, five phases long; each waits by the state that its
 * arrival gave, and by the parity of the phase. */
static void threads_meet_in_each_phase(void **state)
{
    (void)state;
    for (int by_parity = 0; by_parity < 2; by_parity++)
        for (uint32_t threads = 1; threads <= 512; threads = threads * 3 + 7) {
            char text[4096];
            snprintf(
                text, sizeof text,
                "%s@%%p1 mbarrier.init.shared.b64 [%%r3], %%r2;\nbar.sync 0;\n"
                "mov.u32 %%r5, 0;\nmov.u32 %%r6, %%r1;\nshl.b32 %%r7, %%r1, 2;\n"
                "add.u32 %%r7, %%r7, %%r4;\nadd.u32 %%r8, %%r1, 1;\n"
                "rem.u32 %%r8, %%r8, %%r2;\nshl.b32 %%r8, %%r8, 2;\nadd.u32 %%r8, %%r8, %%r4;\n"
                "L:\nst.shared.u32 [%%r7], %%r6;\n"
                "mbarrier.arrive.shared::cta.b64 %%d5, [bar];\n"
                "and.b32 %%r9, %%r5, 1;\nW:\n%s\n@!%%p2 bra W;\n"
                "ld.shared.u32 %%r6, [%%r8];\nadd.u32 %%r6, %%r6, 1;\nbar.sync 0;\n"
                "add.u32 %%r5, %%r5, 1;\nsetp.lt.u32 %%p3, %%r5, 10;\n@%%p3 bra L;\n"
                "st.global.u32 [%%d4], %%r6;\nret;\n}\n",
                BEGIN,
                by_parity ? "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], %r9, 1000;"
                          : "mbarrier.test_wait.acquire.cta.shared.b64 %p2, [%r3], %d5;");
            if (run(text, threads, threads < 40 ? 5003 : 0) != BLOCK_DONE)
                fail_msg("%u threads, by parity %d", threads, by_parity);
            for (uint32_t i = 0; i < threads; i++)
                assert_int_equal(out[i], (i + 10) % threads + 10);
        }
}

/* Without the barrier's wait the reader would find what was there before: one thread works for
 * long, and arrives last. */
static void nobody_passes_before_the_last_one(void **state)
{
    (void)state;
    assert_int_equal(run(BEGIN
                         "@%p1 mbarrier.init.shared::cta.b64 [bar], 96;\nbar.sync 0;\n"
                         "setp.ne.u32 %p2, %r1, 95;\n@%p2 bra A;\nmov.u32 %r5, 0;\n"
                         "B:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, 5000;\n@%p3 bra B;\n"
                         "st.shared.u32 [buf], %r5;\n"
                         "A:\nmbarrier.arrive.release.cta.shared.b64 %d5, [bar];\n"
                         "W:\nmbarrier.try_wait.shared.b64 %p4, [bar], %d5;\n@!%p4 bra W;\n"
                         "ld.shared.u32 %r6, [buf];\nst.global.u32 [%d4], %r6;\nret;\n}\n",
                         96, 0),
                     BLOCK_DONE);
    for (uint32_t i = 0; i < 96; i++)
        assert_int_equal(out[i], 5000);
}

/* Counts, threads that leave, and the state's pending count. */
static void counts_are_kept(void **state)
{
    (void)state;
    assert_int_equal(
        run(BEGIN "mbarrier.init.shared.b64 [bar], 10;\n"
                  "mbarrier.arrive.noComplete.shared.b64 %d5, [bar], 3;\n"
                  "mbarrier.pending_count.b64 %r5, %d5;\nst.global.u32 [%d1], %r5;\n"
                  "mbarrier.arrive_drop.shared.b64 %d6, [bar], 4;\n"
                  "mbarrier.pending_count.b64 %r5, %d6;\nst.global.u32 [%d1+4], %r5;\n"
                  "mbarrier.test_wait.shared.b64 %p2, [bar], %d6;\nselp.u32 %r5, 1, 0, %p2;\n"
                  "st.global.u32 [%d1+8], %r5;\n"
                  "mbarrier.arrive.shared.b64 _, [bar], 3;\n"
                  "mbarrier.test_wait.shared.b64 %p2, [bar], %d6;\nselp.u32 %r5, 1, 0, %p2;\n"
                  "st.global.u32 [%d1+12], %r5;\n"
                  "mbarrier.arrive.shared.b64 %d7, [bar];\n"
                  "mbarrier.pending_count.b64 %r5, %d7;\nst.global.u32 [%d1+16], %r5;\n"
                  "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n"
                  "selp.u32 %r5, 1, 0, %p2;\nst.global.u32 [%d1+20], %r5;\n"
                  "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;\n"
                  "selp.u32 %r5, 1, 0, %p2;\nst.global.u32 [%d1+24], %r5;\n"
                  "mbarrier.inval.shared.b64 [bar];\nret;\n}\n",
            1, 0),
        BLOCK_DONE);
    /* 10 are expected; 3 come, 4 leave, 3 come: the next phase expects 6. */
    static const uint32_t expected[] = {10, 7, 0, 1, 6, 1, 0};
    assert_memory_equal(out, expected, sizeof expected);
}

/* A bulk copy and its bytes are a part of the phase, in whatever order they are announced. */
static void bytes_complete_a_phase(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1024; i++)
        in[i] = i * 2654435761u;
    assert_int_equal(
        run(BEGIN "@%p1 mbarrier.init.shared.b64 [bar], 1;\n"
                  "fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n"
                  "bar.sync 0;\n@!%p1 bra W;\n"
                  "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d5, [bar], 4096;\n"
                  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%d2], "
                  "1024, [bar];\nmbarrier.test_wait.shared.b64 %p2, [bar], %d5;\n"
                  "@%p2 trap;\n"
                  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf+1024], "
                  "[%d2+1024], 3072, [bar];\n"
                  "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n@!%p2 bra W;\n"
                  "shl.b32 %r5, %r1, 2;\nadd.u32 %r5, %r5, %r4;\nld.shared.u32 %r6, [%r5];\n"
                  "not.b32 %r6, %r6;\nst.shared.u32 [%r5], %r6;\n"
                  "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                  "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%d1], [buf], 4096;\n"
                  "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n"
                  "ret;\n}\n",
            1024, 0),
        BLOCK_DONE);
    for (uint32_t i = 0; i < 1024; i++)
        assert_int_equal(out[i], ~in[i]);
}

/* The copies of cp.async arrive for their thread. */
static void asynchronous_copies_arrive(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        in[i] = i + 100;
    for (int counted = 0; counted < 2; counted++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "%s@%%p1 mbarrier.init.shared.b64 [bar], 64;\nbar.sync 0;\n"
                 "shl.b32 %%r5, %%r1, 2;\nadd.u32 %%r6, %%r5, %%r4;\nadd.s64 %%d6, %%d2, %%d3;\n"
                 "cp.async.ca.shared.global [%%r6], [%%d6], 4;\n%s\n"
                 "W:\nmbarrier.try_wait.parity.shared.b64 %%p2, [bar], 0;\n@!%%p2 bra W;\n"
                 "xor.b32 %%r6, %%r6, 4;\nld.shared.u32 %%r7, [%%r6];\n"
                 "st.global.u32 [%%d4], %%r7;\nret;\n}\n",
                 BEGIN,
                 counted ? "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];"
                         : "cp.async.mbarrier.arrive.shared.b64 [bar];\n"
                           "mbarrier.arrive.shared.b64 %d5, [bar];");
        assert_int_equal(run(text, 64, 0), BLOCK_DONE);
        for (uint32_t i = 0; i < 64; i++)
            assert_int_equal(out[i], (i ^ 1) + 100);
    }
}

static void what_is_wrong_is_a_fault_or_refused(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "mbarrier.init.shared.b64 [%r3+4], 1;",
        "mov.u32 %r5, 0x7fffff00;\nmbarrier.init.shared.b64 [%r5], 1;",
        "mbarrier.init.shared.b64 [bar], 1;\ncp.async.bulk.shared::cluster.global.mbarrier::"
        "complete_tx::bytes [buf], [%d2], 8, [bar];",
        "mbarrier.init.shared.b64 [bar], 1;\ncp.async.bulk.shared::cluster.global.mbarrier::"
        "complete_tx::bytes [buf+8], [%d2], 16, [bar];",
        "mbarrier.init.shared.b64 [bar], 1;\ncp.async.bulk.shared::cluster.global.mbarrier::"
        "complete_tx::bytes [buf], [%d2], 8192, [bar];",
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char text[4096];
        struct fault fault;
        struct {
            void *out, *in;
        } params = {out, in};
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", BEGIN, faults[i]);
        kernel_forget();
        kernel_allow(in, sizeof in, MEMORY_READ);
        struct module *m = kernel_module(text);
        struct kernel_launch l = {.name = "k", .grid = 1, .threads = 1, .params = &params};
        if (kernel_run(m, &l, &fault) != BLOCK_FAULTED)
            fail_msg("no fault: %s", faults[i]);
        module_destroy(m);
        kernel_free();
    }
    static const char *const refused[] = {
        "mbarrier.shared.b64 [bar], 1;",
        "mbarrier.init.global.b64 [bar], 1;",
        "cp.async.bulk.global.global.bulk_group [%d1], [%d2], 16;",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%d2];",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[4096];
        struct module *m = NULL;
        struct error why;
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", BEGIN, refused[i]);
        if (!module_load(text, strlen(text), &m, &why))
            fail_msg("not refused: %s", refused[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_meet_in_each_phase),
        cmocka_unit_test(nobody_passes_before_the_last_one),
        cmocka_unit_test(counts_are_kept),
        cmocka_unit_test(bytes_complete_a_phase),
        cmocka_unit_test(asynchronous_copies_arrive),
        cmocka_unit_test(what_is_wrong_is_a_fault_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
