/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Divergence, barriers, lanes together, budget and sleep. */
#include "tests/unit/softgpu/kernel.h"

#define PARAMS "(.param .u64 out, .param .u64 lock, .param .u32 n)\n"
#define REGS                                                                                       \
    "{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<20>;\n"                                \
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [lock];\nld.param.u32 %r1, [n];\n"              \
    "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd3, %r2, 4;\nadd.s64 %rd4, %rd1, %rd3;\n"

struct params {
    void *out, *lock;
    uint32_t n;
};

static uint32_t out[1024], lock_word[4];

static enum block_state run(const char *text, struct kernel_launch *l, uint32_t n, struct fault *f)
{
    kernel_forget();
    kernel_allow(out, sizeof(out), MEMORY_READ | MEMORY_WRITE);
    kernel_allow(lock_word, sizeof(lock_word), MEMORY_READ | MEMORY_WRITE);
    memset(out, 0, sizeof(out));
    memset(lock_word, 0, sizeof(lock_word));
    struct params p = {out, lock_word, n};
    struct module *m = kernel_module(text);
    l->name = "k";
    l->params = &p;
    enum block_state state = kernel_run(m, l, f);
    l->params = NULL;
    module_destroy(m);
    kernel_free();
    return state;
}

static const char loop_text[] = PTX_HEAD
    ".entry k" PARAMS REGS "mov.u32 %r3, 0;\nmov.u32 %r4, 0;\n"
    "L:\nadd.u32 %r4, %r4, %r3;\nadd.u32 %r3, %r3, 1;\nsetp.le.u32 %p1, %r3, %r2;\n@%p1 bra L;\n"
    "activemask.b32 %r5;\nshl.b32 %r4, %r4, 1;\nst.global.u32 [%rd4], %r4;\n"
    "st.global.u32 [%rd4+512], %r5;\nret;\n}\n";

static void lanes_leave_a_loop_one_by_one_and_meet_behind_it(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 1, .threads = 48};
    assert_int_equal(run(loop_text, &l, 0, NULL), BLOCK_DONE);
    for (uint32_t i = 0; i < 48; i++) {
        assert_int_equal(out[i], i * (i + 1));
        assert_int_equal(out[128 + i], i < 32 ? 0xffffffffu : 0xffffu);
    }
}

static void a_block_stops_at_its_budget_and_goes_on(void **state)
{
    (void)state;
    for (uint64_t budget = 1; budget < 100; budget += 7) {
        struct kernel_launch l = {.grid = 1, .threads = 48, .budget = budget};
        assert_int_equal(run(loop_text, &l, 0, NULL), BLOCK_DONE);
        assert_in_range(l.runs, 300 / budget, 1000);
        for (uint32_t i = 0; i < 48; i++)
            assert_int_equal(out[i], i * (i + 1));
    }
}

/* Blocks of all shapes, also where a warp has threads of several rows or layers. A block's memory
 * is used again, by one of the same shape and by one of another. */
static void threads_are_numbered_row_by_row(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {{32, 4, 2}, {64, 3, 5},  {48, 5, 1},
                                         {1, 1, 64}, {3, 7, 11},  {16, 16, 4},
                                         {33, 2, 2}, {256, 1, 1}, {1, 64, 2}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        const uint32_t *shape = shapes[i / 2];
        struct kernel_launch l = {.grid = 1, .threads = shape[0], .y = shape[1], .z = shape[2]};
        assert_int_equal(run(PTX_HEAD
                             ".entry k" PARAMS REGS
                             "mov.u32 %r3, %tid.y;\nmov.u32 %r4, %tid.z;\nmov.u32 %r5, %ntid.x;\n"
                             "mov.u32 %r6, %ntid.y;\nmad.lo.u32 %r7, %r4, %r6, %r3;\n"
                             "mad.lo.u32 %r7, %r7, %r5, %r2;\nmul.wide.u32 %rd3, %r7, 4;\n"
                             "add.s64 %rd4, %rd1, %rd3;\nshl.b32 %r4, %r4, 20;\n"
                             "shl.b32 %r3, %r3, 10;\nadd.u32 %r2, %r2, %r3;\n"
                             "add.u32 %r2, %r2, %r4;\nadd.u32 %r2, %r2, 1;\n"
                             "st.global.u32 [%rd4], %r2;\nret;\n}\n",
                             &l, 0, NULL),
                         BLOCK_DONE);
        uint32_t *at = out;
        for (uint32_t z = 0; z < shape[2]; z++)
            for (uint32_t y = 0; y < shape[1]; y++)
                for (uint32_t x = 0; x < shape[0]; x++)
                    assert_int_equal(*at++, (z << 20) + (y << 10) + x + 1);
    }
}

/* A block's memory is used again: nothing of the earlier block is to be found in its registers. */
static void registers_begin_as_zeros(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct kernel_launch l = {.grid = 3, .threads = 96};
        assert_int_equal(run(PTX_HEAD ".entry k" PARAMS REGS
                                      "add.u32 %r9, %r9, 7;\nadd.u32 %r10, %r10, %r9;\n"
                                      "st.global.u32 [%rd4], %r10;\nret;\n}\n",
                             &l, 0, NULL),
                         BLOCK_DONE);
        for (uint32_t i = 0; i < 96; i++)
            assert_int_equal(out[i], 7);
    }
}

#define SHUFFLE_BEHIND(leave)                                                                      \
    PTX_HEAD ".entry k" PARAMS REGS "add.u32 %r4, %r2, 1000;\nsetp.lt.u32 %p1, %r2, %r1;\n" leave  \
             "activemask.b32 %r3;\nshfl.sync.down.b32 %r5|%p2, %r4, 3, 31, %r3;\n"                 \
             "st.global.u32 [%rd4], %r5;\nOTHER:\nret;\n}\n"

/* As an H100 does. The lanes from n on have left the kernel, or are behind a branch. */
static void a_lane_that_takes_no_part_gives_zero(void **state)
{
    (void)state;
    static const char *const texts[] = {SHUFFLE_BEHIND("@!%p1 ret;\n"),
                                        SHUFFLE_BEHIND("@!%p1 bra OTHER;\n")};
    for (size_t i = 0; i < 2; i++)
        for (uint32_t n = 1; n <= 32; n++) {
            struct kernel_launch l = {.grid = 1, .threads = 32};
            assert_int_equal(run(texts[i], &l, n, NULL), BLOCK_DONE);
            for (uint32_t lane = 0; lane < n; lane++)
                assert_int_equal(out[lane], lane + 3 >= 32 ? lane + 1000
                                            : lane + 3 < n ? lane + 3 + 1000
                                                           : 0);
        }
}

static void an_endless_kernel_gives_control_back(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 1, .threads = 32, .budget = 100};
    assert_int_equal(run(PTX_HEAD ".entry k" PARAMS REGS "L: bra L;\n}\n", &l, 0, NULL),
                     BLOCK_READY);
    assert_int_equal(l.runs, 100000);
}

/* Both forms of a lock between the lanes of one warp: with the critical section
 * inside the loop, and behind it, which needs the winner to run ahead of the rest. */
static void lanes_of_a_warp_can_share_a_spin_lock(void **state)
{
    (void)state;
    static const char behind[] = PTX_HEAD
        ".entry k" PARAMS REGS
        "L:\natom.global.cas.b32 %r3, [%rd2], 0, 1;\nsetp.ne.s32 %p1, %r3, 0;\n@%p1 bra L;\n"
        "ld.volatile.global.u32 %r4, [%rd1];\nadd.u32 %r4, %r4, 1;\nst.volatile.global.u32 [%rd1], "
        "%r4;\n"
        "membar.gl;\natom.global.exch.b32 %r3, [%rd2], 0;\nret;\n}\n";
    static const char inside[] = PTX_HEAD
        ".entry k" PARAMS REGS
        "L:\natom.global.cas.b32 %r3, [%rd2], 0, 1;\nsetp.ne.s32 %p1, %r3, 0;\n@%p1 bra M;\n"
        "ld.volatile.global.u32 %r4, [%rd1];\nadd.u32 %r4, %r4, 1;\nst.volatile.global.u32 [%rd1], "
        "%r4;\n"
        "membar.gl;\natom.global.exch.b32 %r5, [%rd2], 0;\nM:\n@%p1 bra L;\nret;\n}\n";
    const char *texts[] = {behind, inside};
    for (int i = 0; i < 2; i++) {
        struct kernel_launch l = {.grid = 1, .threads = 96};
        assert_int_equal(run(texts[i], &l, 0, NULL), BLOCK_DONE);
        assert_int_equal(out[0], 96);
    }
}

static void a_barrier_orders_shared_memory_between_warps(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 2, .threads = 256};
    assert_int_equal(
        run(PTX_HEAD ".entry k" PARAMS "{\n.shared .align 4 .b8 s[1024];\n.reg .b64 %x<2>;\n" REGS
                     "mov.u64 %x1, s;\nadd.s64 %rd5, %x1, %rd3;\nst.shared.u32 [%rd5], %r2;\n"
                     "bar.sync 0;\nmov.u32 %r3, 255;\nsub.u32 %r3, %r3, %r2;\n"
                     "mul.wide.u32 %rd6, %r3, 4;\nadd.s64 %rd6, %x1, %rd6;\n"
                     "ld.shared.u32 %r4, [%rd6];\nst.global.u32 [%rd4], %r4;\nret;\n}\n}\n",
            &l, 0, NULL),
        BLOCK_DONE);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], 255 - i);
}

static void barriers_count_and_reduce(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 1, .threads = 80};
    assert_int_equal(run(PTX_HEAD ".entry k" PARAMS REGS
                                  "setp.lt.u32 %p1, %r2, 33;\nbar.red.popc.u32 %r3, 2, %p1;\n"
                                  "bar.red.and.pred %p2, 0, %p1;\nbar.red.or.pred %p3, 0, %p1;\n"
                                  "selp.u32 %r4, 10, 20, %p2;\nselp.u32 %r5, 1, 2, %p3;\n"
                                  "add.u32 %r4, %r4, %r5;\nmad.lo.u32 %r3, %r3, 100, %r4;\n"
                                  "st.global.u32 [%rd4], %r3;\nret;\n}\n",
                         &l, 0, NULL),
                     BLOCK_DONE);
    for (uint32_t i = 0; i < 80; i++)
        assert_int_equal(out[i], 3321);
}

static void a_named_barrier_joins_the_warps_that_it_counts(void **state)
{
    (void)state;
    /* Warp 0 arrives and goes on; warp 1 waits for it; warp 2 takes no part. */
    struct kernel_launch l = {.grid = 1, .threads = 96};
    assert_int_equal(
        run(PTX_HEAD ".entry k" PARAMS REGS
                     "setp.lt.u32 %p1, %r2, 32;\nsetp.gt.u32 %p2, %r2, 63;\n@%p2 bra E;\n"
                     "@%p1 bra A;\nbar.sync 3, 64;\nld.volatile.global.u32 %r3, [%rd2];\n"
                     "st.global.u32 [%rd4], %r3;\nbra E;\n"
                     "A:\nmov.u32 %r4, 7;\nst.volatile.global.u32 [%rd2], %r4;\nbar.arrive 3, 64;\n"
                     "E:\nret;\n}\n",
            &l, 0, NULL),
        BLOCK_DONE);
    for (uint32_t i = 32; i < 64; i++)
        assert_int_equal(out[i], 7);
}

static void a_barrier_that_cannot_complete_is_a_fault(void **state)
{
    (void)state;
    struct fault f;
    struct kernel_launch l = {.grid = 1, .threads = 64};
    assert_int_equal(run(PTX_HEAD
                         ".entry k" PARAMS REGS
                         "setp.lt.u32 %p1, %r2, 32;\n@%p1 bra E;\nbar.sync 1, 96;\nE: ret;\n}\n",
                         &l, 0, &f),
                     BLOCK_FAULTED);
    assert_int_equal(f.kind, FAULT_TRAP);
    assert_non_null(strstr(f.text, "barrier"));
}

static void divergent_lanes_meet_at_a_shuffle(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 1, .threads = 32};
    assert_int_equal(run(PTX_HEAD
                         ".entry k" PARAMS REGS
                         "and.b32 %r3, %r2, 1;\nsetp.eq.u32 %p1, %r3, 0;\nmov.u32 %r4, %r2;\n"
                         "@%p1 bra A;\nadd.u32 %r4, %r4, 100;\nbra S;\nA:\nadd.u32 %r4, %r4, 200;\n"
                         "S:\nshfl.sync.bfly.b32 %r5|%p2, %r4, 1, 31, -1;\n"
                         "vote.sync.ballot.b32 %r6, %p1, -1;\nxor.b32 %r5, %r5, %r6;\n"
                         "st.global.u32 [%rd4], %r5;\nret;\n}\n",
                         &l, 0, NULL),
                     BLOCK_DONE);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], ((i ^ 1) + ((i ^ 1) & 1 ? 100 : 200)) ^ 0x55555555u);
}

static void sleep_moves_the_modelled_clock_alone(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 1, .threads = 64, .clock_ns = 5000};
    assert_int_equal(run(PTX_HEAD ".entry k" PARAMS REGS
                                  "mov.u64 %rd5, %globaltimer;\nsetp.lt.u32 %p1, %r2, 32;\n"
                                  "@%p1 nanosleep.u32 100000;\nmov.u64 %rd6, %globaltimer;\n"
                                  "sub.s64 %rd6, %rd6, %rd5;\ncvt.u32.u64 %r3, %rd6;\n"
                                  "st.global.u32 [%rd4], %r3;\nret;\n}\n",
                         &l, 0, NULL),
                     BLOCK_DONE);
    assert_int_equal(l.clock_ns, 105000);
    assert_int_equal(out[0], 100000);
    assert_int_equal(out[40], 0);
}

static void recursion_works_by_lane(void **state)
{
    (void)state;
    static const char text[] =
        PTX_HEAD ".func (.param .b32 r) fib (.param .b32 a);\n"
                 ".func (.param .b32 r) fib (.param .b32 a)\n{\n.reg .pred %p;\n.reg .b32 %r<9>;\n"
                 "ld.param.u32 %r1, [a];\nsetp.lt.u32 %p, %r1, 2;\nmov.u32 %r4, %r1;\n@%p bra E;\n"
                 "add.u32 %r2, %r1, -1;\n{ .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r2;\n"
                 "call.uni (y), fib, (x);\nld.param.b32 %r3, [y]; }\n"
                 "add.u32 %r2, %r1, -2;\n{ .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r2;\n"
                 "call.uni (y), fib, (x);\nld.param.b32 %r5, [y]; }\nadd.u32 %r4, %r3, %r5;\n"
                 "E:\nst.param.b32 [r], %r4;\nret;\n}\n"
                 ".entry k" PARAMS REGS "rem.u32 %r3, %r2, 12;\n{ .param .b32 x; .param .b32 y;\n"
                 "st.param.b32 [x], %r3;\ncall (y), fib, (x);\nld.param.b32 %r4, [y]; }\n"
                 "st.global.u32 [%rd4], %r4;\nret;\n}\n";
    struct kernel_launch l = {.grid = 1, .threads = 40};
    assert_int_equal(run(text, &l, 0, NULL), BLOCK_DONE);
    static const uint32_t fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(out[i], fib[i % 12]);
}

/* %r3 is written under a guard in the first round only, %r5 before it is read in each. */
static void values_that_a_guard_skips_keep_their_register(void **state)
{
    (void)state;
    struct kernel_launch l = {.grid = 1, .threads = 32};
    assert_int_equal(run(PTX_HEAD ".entry k" PARAMS REGS "mov.u32 %r10, 0;\nmov.u32 %r11, 0;\nL:\n"
                                  "setp.eq.u32 %p1, %r10, 0;\n@%p1 add.u32 %r3, %r2, 1000;\n"
                                  "add.u32 %r5, %r10, 7;\nmul.lo.u32 %r6, %r5, 3;\n"
                                  "add.u32 %r7, %r6, %r10;\nxor.b32 %r8, %r7, %r5;\n"
                                  "add.u32 %r11, %r11, %r3;\nadd.u32 %r11, %r11, %r8;\n"
                                  "add.u32 %r10, %r10, 1;\nsetp.lt.u32 %p2, %r10, 5;\n@%p2 bra L;\n"
                                  "st.global.u32 [%rd4], %r11;\nret;\n}\n",
                         &l, 0, NULL),
                     BLOCK_DONE);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 5; k++)
            sum += i + 1000 + (((k + 7) * 3 + k) ^ (k + 7));
        assert_int_equal(out[i], sum);
    }
}

/* Each lane is at an instruction of its own when the first one waits for the others. Behind
 * the lanes' places lies the list of the memory that the warp may use. */
static void lanes_wait_for_each_other_from_as_many_places(void **state)
{
    (void)state;
    static uint32_t forbidden = 7;
    struct params p = {out, &forbidden, 0};
    struct kernel_launch l = {.name = "k", .grid = 1, .threads = 32, .params = &p};
    struct fault fault = {0};
    char text[4096], targets[256] = "T0", places[1024] = "";
    for (int i = 1; i < 32; i++) {
        snprintf(targets + strlen(targets), sizeof targets - strlen(targets), ", T%d", i);
        snprintf(places + strlen(places), sizeof places - strlen(places), "T%d:\nbra T0;\n", i);
    }
    snprintf(text, sizeof text,
             PTX_HEAD ".entry k%s%sst.global.u32 [%%rd4], %%r2;\nTS: .branchtargets %s;\n"
                      "brx.idx %%r2, TS;\nT0:\nbar.warp.sync 0xffffffff;\nactivemask.b32 %%r5;\n"
                      "st.global.u32 [%%rd4], %%r5;\nld.global.u32 %%r6, [%%rd2];\nret;\n%s}\n",
             PARAMS, REGS, targets, places);
    kernel_forget();
    kernel_allow(out, sizeof out, MEMORY_READ | MEMORY_WRITE);
    struct module *m = kernel_module(text);
    assert_int_equal(kernel_run(m, &l, &fault), BLOCK_FAULTED);
    assert_int_equal(fault.kind, FAULT_ILLEGAL_ADDRESS);
    assert_int_equal(fault.address, (uint64_t)(uintptr_t)&forbidden);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 0xffffffffu);
    module_destroy(m);
    kernel_free();
}

static void a_warp_that_waits_for_another_leaves_it_its_turn(void **state)
{
    (void)state;
    static const char text[] =
        PTX_HEAD ".entry k" PARAMS REGS "setp.lt.u32 %p1, %r2, 32;\n@%p1 bra W;\n"
                 "mov.u32 %r3, 1;\nst.volatile.global.u32 [%rd2], %r3;\nret;\n"
                 "W:\nld.volatile.global.u32 %r3, [%rd2];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra W;\n"
                 "st.global.u32 [%rd4], %r3;\nret;\n}\n";
    for (uint64_t budget = 1; budget < 100; budget += 7) {
        struct kernel_launch l = {.grid = 1, .threads = 64, .budget = budget};
        assert_int_equal(run(text, &l, 0, NULL), BLOCK_DONE);
        assert_int_equal(out[31], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_leave_a_loop_one_by_one_and_meet_behind_it),
        cmocka_unit_test(a_block_stops_at_its_budget_and_goes_on),
        cmocka_unit_test(a_warp_that_waits_for_another_leaves_it_its_turn),
        cmocka_unit_test(threads_are_numbered_row_by_row),
        cmocka_unit_test(registers_begin_as_zeros),
        cmocka_unit_test(a_lane_that_takes_no_part_gives_zero),
        cmocka_unit_test(an_endless_kernel_gives_control_back),
        cmocka_unit_test(lanes_of_a_warp_can_share_a_spin_lock),
        cmocka_unit_test(a_barrier_orders_shared_memory_between_warps),
        cmocka_unit_test(barriers_count_and_reduce),
        cmocka_unit_test(a_named_barrier_joins_the_warps_that_it_counts),
        cmocka_unit_test(a_barrier_that_cannot_complete_is_a_fault),
        cmocka_unit_test(divergent_lanes_meet_at_a_shuffle),
        cmocka_unit_test(sleep_moves_the_modelled_clock_alone),
        cmocka_unit_test(recursion_works_by_lane),
        cmocka_unit_test(values_that_a_guard_skips_keep_their_register),
        cmocka_unit_test(lanes_wait_for_each_other_from_as_many_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
