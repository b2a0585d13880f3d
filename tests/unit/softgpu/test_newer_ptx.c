/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Instructions for compute capability 7.2 and later that programs write by hand or have from CUDA's
 * headers. Results of cvt are what another project's tests (ZLUDA, cvt_pack and
 * cvt_relu_f16x2_f32) expect of NVIDIA's driver.
 */
#include "tests/unit/softgpu/kernel.h"

enum { THREADS = 64 };

/* A kernel that gets results, one number a thread, and memory to work on. */
static void run(const char *body, void *out, size_t out_bytes, void *memory, size_t bytes,
                uint32_t threads)
{
    static char text[4096];
    struct {
        void *out, *memory;
    } params = {out, memory};
    struct kernel_launch launch = {.name = "k", .grid = 1, .threads = threads, .params = &params};
    struct fault fault = {0};
    snprintf(text, sizeof text,
             PTX_HEAD ".shared .align 16 .b8 sh[16];\n"
                      ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
                      ".reg .b16 %%h<8>;\n.reg .b32 %%r<8>;\n.reg .f32 %%f<8>;\n"
                      ".reg .b64 %%x<8>, %%o, %%m;\nld.param.u64 %%o, [p];\n"
                      "ld.param.u64 %%m, [q];\nmov.u32 %%r7, %%tid.x;\n"
                      "mad.wide.u32 %%o, %%r7, 4, %%o;\n%s\nret;\n}\n",
             body);
    struct module *module = kernel_module(text);
    kernel_allow(out, out_bytes, MEMORY_READ | MEMORY_WRITE);
    kernel_allow(memory, bytes, MEMORY_READ | MEMORY_WRITE);
    assert_int_equal(kernel_run(module, &launch, &fault), BLOCK_DONE);
    module_destroy(module);
    kernel_free();
    kernel_forget();
}

static uint32_t one_number(const char *body, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t out = 0, in[4] = {a, b, c, 0x600df00d};
    run(body, &out, sizeof out, in, sizeof in, 1);
    return out;
}

static void a_cache_policy_changes_no_value(void **state)
{
    (void)state;
    assert_int_equal(one_number("createpolicy.fractional.L2::evict_first.b64 %x1, 1.0;\n"
                                "ld.global.L2::cache_hint.u32 %r1, [%m+12], %x1;\n"
                                "st.global.L2::cache_hint.u32 [%o], %r1, %x1;",
                                0, 0, 0),
                     0x600df00d);
    assert_int_equal(
        one_number("createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %x1, [%m], "
                   "64, 128;\napplypriority.global.L2::evict_normal [%m], 128;\n"
                   "cp.async.cg.shared.global.L2::cache_hint [sh], [%m], 16, %x1;\n"
                   "cp.async.wait_all;\nld.shared.u32 %r1, [sh+12];\nst.global.u32 [%o], %r1;",
                   0, 0, 0),
        0x600df00d);
    /* Of 16 bytes only 8 are read; the rest becomes zero. */
    assert_int_equal(
        one_number("createpolicy.fractional.L2::evict_first.b64 %x1;\nmov.u32 %r2, 8;\n"
                   "cp.async.cg.shared.global.L2::cache_hint [sh], [%m], 16, %r2, %x1;\n"
                   "cp.async.wait_all;\nld.shared.u32 %r1, [sh+12];\nld.shared.u32 %r2, [sh+4];\n"
                   "add.u32 %r1, %r1, %r2;\nst.global.u32 [%o], %r1;",
                   1, 2, 3),
        2);
}

static void each_element_of_a_vector_is_added(void **state)
{
    float sums[4] = {0, 0, 0, 0}, olds[THREADS];
    bool seen[THREADS] = {false};
    (void)state;
    /* The result %f1 is the second element's source as well. */
    run("mov.f32 %f1, 2.0;\nmov.f32 %f2, 1.0;\n"
        "atom.global.add.v2.f32 {%f1, %f2}, [%m], {%f2, %f1};\nst.global.f32 [%o], %f1;",
        olds, sizeof olds, sums, sizeof sums, THREADS);
    assert_true(sums[0] == THREADS && sums[1] == 2 * THREADS && sums[2] == 0);
    for (int i = 0; i < THREADS; i++) {
        assert_true(olds[i] >= 0);
        size_t old = (size_t)olds[i];
        assert_true(old < THREADS && !seen[old]);
        seen[old] = true;
    }
    run("mov.f32 %f1, 1.0;\nmov.f32 %f2, 0.5;\n"
        "red.relaxed.gpu.global.add.v4.f32 [%m], {%f1, %f2, %f1, %f2};",
        olds, sizeof olds, sums, sizeof sums, THREADS);
    assert_true(sums[0] == 2 * THREADS && sums[1] == 2.5f * THREADS && sums[2] == THREADS &&
                sums[3] == 0.5f * THREADS);
    /* Halves: 1 and 2 in one word, 0.5 and 4 in the other. */
    uint32_t halves[2] = {0, 0};
    run("mov.b32 %r1, 0x40003c00;\nmov.b32 %r2, 0x44003800;\n"
        "red.global.add.noftz.v2.f16x2 [%m], {%r1, %r2};",
        olds, sizeof olds, halves, sizeof halves, THREADS);
    assert_int_equal(halves[0], 0x58005400); /* 128, 64 */
    assert_int_equal(halves[1], 0x5c005000); /* 256, 32 */
}

static void cvt_packs_and_stops_at_zero(void **state)
{
#define LOAD  "ld.global.u32 %r1, [%m];\nld.global.u32 %r2, [%m+4];\nld.global.u32 %r3, [%m+8];\n"
#define STORE ";\nst.global.u32 [%o], %r4;"
    const uint32_t a = (uint32_t)-257, b = 257, c = (uint32_t)-130436883;
    const uint32_t minus = 0xbf800000, one = 0x3f800000, pi = 0x4048f5c3, least = 0xff800000;
    (void)state;
    assert_int_equal(one_number(LOAD "cvt.pack.sat.u8.s32.b32 %r4, %r1, %r2, %r3" STORE, a, b, c),
                     2968322303);
    assert_int_equal(one_number(LOAD "cvt.pack.sat.s8.s32.b32 %r4, %r1, %r2, %r3" STORE, a, b, c),
                     2968354943);
    /* From the PTX ISA's description: a is the high half. */
    assert_int_equal(
        one_number(LOAD "cvt.pack.sat.s16.s32 %r4, %r1, %r2" STORE, 0x12345, (uint32_t)-5, c),
        0x7ffffffb);
    assert_int_equal(
        one_number(LOAD "cvt.pack.sat.u16.s32 %r4, %r1, %r2" STORE, 0x12345, (uint32_t)-5, c),
        0xffff0000);
    assert_int_equal(one_number(LOAD "cvt.rn.relu.f16x2.f32 %r4, %r1, %r2" STORE, minus, one, 0),
                     15360);
    assert_int_equal(one_number(LOAD "cvt.rn.relu.f16x2.f32 %r4, %r1, %r2" STORE, pi, least, 0),
                     1112014848);
    assert_int_equal(one_number(LOAD "cvt.rn.relu.bf16.f32 %h1, %r1;\ncvt.rn.relu.bf16.f32 %h2, "
                                     "%r2;\nmov.b32 %r4, {%h1, %h2}" STORE,
                                minus, one, 0),
                     0x3f800000);
}

/* Subnormal halves, which .ftz takes and gives as zeros of their sign. */
static void halves_are_flushed(void **state)
{
    (void)state;
    assert_int_equal(one_number(LOAD "add.f16x2 %r4, %r1, %r2" STORE, 0x80010001, 0x80010001, 0),
                     0x80020002);
    assert_int_equal(
        one_number(LOAD "add.ftz.f16x2 %r4, %r1, %r2" STORE, 0x80010001, 0x80010001, 0),
        0x80000000);
    /* 2^-14 * 0.5 is subnormal. */
    assert_int_equal(one_number(LOAD "mov.b32 {%h1, %h2}, %r1;\nmul.ftz.f16 %h3, %h1, %h2;\n"
                                     "mul.f16 %h4, %h1, %h2;\nmov.b32 %r4, {%h3, %h4}" STORE,
                                0x38000400, 0, 0),
                     0x02000000);
    /* 2 to the power of a subnormal number is 1 either way; that of -0 as well. */
    assert_int_equal(one_number(LOAD "ex2.approx.ftz.bf16x2 %r4, %r1" STORE, 0x80010001, 0, 0),
                     0x3f803f80);
}

/* Each thread's blocks are apart from each other, from the kernel's own variables and from those of
 * a function that is called meanwhile. */
static const char stack_text[] = PTX_HEAD
    ".func (.reg .b32 %y) other(.reg .b32 %v)\n{\n.local .align 8 .b8 own[64];\n.reg .b64 %b;\n"
    "st.local.u32 [own], 0xbad;\nst.local.u32 [own+60], 0xbad;\nmov.u64 %b, 24;\n"
    "alloca.u64 %b, %b;\nst.local.u32 [%b+20], 0xbad;\nadd.u32 %y, %v, 0;\nret;\n}\n"
    ".visible .entry k(.param .u64 p, .param .u64 size)\n{\n.local .align 8 .b8 mine[16];\n"
    ".reg .b32 %t, %r<8>;\n.reg .b64 %o, %n, %b, %c, %g;\n.reg .pred %q;\n"
    "ld.param.u64 %o, [p];\nld.param.u64 %n, [size];\nmov.u32 %t, %tid.x;\n"
    "mad.wide.u32 %o, %t, 4, %o;\nst.local.u32 [mine+12], %t;\n"
    "mad.wide.u32 %n, %t, 16, %n;\nalloca.u64 %b, %n, 16;\n"
    "cvta.local.u64 %g, %b;\nst.u32 [%g], %t;\nadd.u64 %g, %g, %n;\nst.u32 [%g+-4], %t;\n"
    /* Odd threads take a second block. */
    "and.b32 %r1, %t, 1;\nsetp.eq.u32 %q, %r1, 0;\nmov.u64 %c, %b;\n@%q bra EVEN;\n"
    "mov.u64 %c, 100;\nalloca.u64 %c, %c, 64;\nadd.u32 %r2, %t, 1000;\n"
    "st.local.u32 [%c+96], %r2;\nst.local.u32 [%c], %t;\nEVEN:\n"
    "call (%r3), other, (%t);\n"
    "ld.local.u32 %r4, [%b];\nld.u32 %r5, [%g+-4];\nld.local.u32 %r6, [%c];\n"
    "ld.local.u32 %r7, [mine+12];\nadd.u32 %r3, %r3, %r4;\nadd.u32 %r3, %r3, %r5;\n"
    "add.u32 %r3, %r3, %r6;\nadd.u32 %r3, %r3, %r7;\n"
    "@%q bra DONE;\nld.local.u32 %r4, [%c+96];\nadd.u32 %r3, %r3, %r4;\n"
    "cvt.u32.u64 %r5, %c;\nand.b32 %r5, %r5, 63;\nadd.u32 %r3, %r3, %r5;\nDONE:\n"
    "st.global.u32 [%o], %r3;\nret;\n}\n";

static enum block_state run_stack(uint64_t size, uint32_t *out, struct fault *fault)
{
    struct {
        void *out;
        uint64_t size;
    } params = {out, size};
    struct kernel_launch launch = {.name = "k", .grid = 1, .threads = THREADS, .params = &params};
    struct module *module = kernel_module(stack_text);
    kernel_allow(out, THREADS * sizeof *out, MEMORY_READ | MEMORY_WRITE);
    enum block_state state = kernel_run(module, &launch, fault);
    module_destroy(module);
    kernel_free();
    kernel_forget();
    return state;
}

static void blocks_on_the_stack_are_apart(void **state)
{
    uint32_t out[THREADS];
    struct fault fault = {0};
    (void)state;
    assert_int_equal(run_stack(16, out, &fault), BLOCK_DONE);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i & 1 ? 6 * i + 1000 : 5 * i);
    assert_int_equal(run_stack(UINT64_C(1) << 40, out, &fault), BLOCK_FAULTED);
    assert_int_equal(fault.kind, FAULT_STACK);
}

static void counters_that_are_undefined_can_be_read(void **state)
{
    (void)state;
    one_number("mov.u32 %r1, %pm0;\nmov.u64 %x1, %pm7_64;", 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_policy_changes_no_value),
        cmocka_unit_test(each_element_of_a_vector_is_added),
        cmocka_unit_test(cvt_packs_and_stops_at_zero),
        cmocka_unit_test(halves_are_flushed),
        cmocka_unit_test(blocks_on_the_stack_are_apart),
        cmocka_unit_test(counters_that_are_undefined_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
