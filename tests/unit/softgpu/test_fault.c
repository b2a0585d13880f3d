/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Faults of kernels, and how precisely each is told. */
#include "tests/unit/softgpu/kernel.h"

#include "server/softgpu/exec/exec.h"

struct params {
    uint64_t address;
    void *out;
};

/* With a gap, so that what follows one is not the other. */
static struct {
    _Alignas(16) uint32_t data[64];
    uint32_t gap[64];
    uint32_t out[64];
} memory;
#define data memory.data
#define out  memory.out
static const uint32_t constant_words[16];

/* Body: line 4 on. %rd1 the address, %rd2 the output, %r1 the thread. */
#define KERNEL(body)                                                                               \
    PTX_HEAD ".extern .shared .align 16 .b8 dyn[]; .const .u32 cst = 5; .global .u32 glob = 6; "   \
             ".entry k(.param .u64 a, .param .u64 o) {.reg .pred %p<4>; .reg .b16 %h<4>; "         \
             ".reg .b32 %r<9>; .reg .b64 %rd<9>; .local .align 8 .b8 loc[32]; "                    \
             "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [o]; mov.u32 %r1, %tid.x; "               \
             "cvt.u64.u32 %rd3, %r1;\n" body "\nret; }\n"

static enum block_state run(const char *text, uint64_t address, struct fault *f)
{
    kernel_forget();
    kernel_allow(data, sizeof(data), MEMORY_READ | MEMORY_WRITE);
    kernel_allow(out, sizeof(out), MEMORY_READ | MEMORY_WRITE);
    kernel_allow(constant_words, sizeof(constant_words), MEMORY_READ);
    struct module *m = kernel_module(text);
    struct params p = {address, out};
    struct kernel_launch l = {.name = "k", .grid = 2, .threads = 33, .shared = 64, .params = &p};
    memset(f, 0, sizeof(*f));
    enum block_state state = kernel_run(m, &l, f);
    module_destroy(m);
    kernel_free();
    return state;
}

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void address_faults_name_thread_address_and_line(void **state)
{
    (void)state;
    struct fault f;
    /* Thread 20 is the first beyond 64 words, counting from word 44. */
    static const char text[] = KERNEL("shl.b64 %rd4, %rd3, 2;\nadd.s64 %rd4, %rd4, %rd1;\n"
                                      "st.global.u32 [%rd4], %r1;");
    assert_int_equal(run(text, at(&data[44]), &f), BLOCK_FAULTED);
    assert_int_equal(f.kind, FAULT_ILLEGAL_ADDRESS);
    assert_int_equal(f.address, at(&data[64]));
    assert_int_equal(f.size, 4);
    assert_int_equal(f.line, 7);
    assert_int_equal(f.thread[0], 20);
    assert_int_equal(f.block[0], 0);
    assert_string_equal(f.kernel, "k");
    assert_non_null(strstr(f.text, "PTX line 7"));
    assert_int_equal(fault_result(f.kind), 700);
}

static void each_bad_access_has_its_kind(void **state)
{
    (void)state;
    uint64_t mid = at(&data[1]);
    const struct {
        const char *text;
        uint64_t address;
        enum fault_kind kind;
    } cases[] = {
        {KERNEL("ld.global.u32 %r2, [%rd1];"), 0, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.u32 %r2, [%rd1];"), 8, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.global.u32 %r2, [%rd1+-4];"), 0, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.global.u32 %r2, [%rd1];"), UINT64_MAX - 3, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.global.u8 %r2, [%rd1];"), UINT64_MAX, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.global.u32 %r2, [%rd1];"), mid + 2, FAULT_MISALIGNED_ADDRESS},
        {KERNEL("ld.global.v2.u32 {%r2, %r3}, [%rd1];"), (at(data) & ~UINT64_C(7)) + 12,
         FAULT_MISALIGNED_ADDRESS},
        {KERNEL("st.global.u16 [%rd1], %h1;"), mid + 1, FAULT_MISALIGNED_ADDRESS},
        {KERNEL("atom.global.add.u32 %r2, [%rd1], 1;"), mid + 1, FAULT_MISALIGNED_ADDRESS},
        {KERNEL("atom.global.add.u32 %r2, [%rd1], 1;"), 64, FAULT_ILLEGAL_ADDRESS},
        /* The last word holds no 8 bytes. */
        {KERNEL("ld.global.u64 %rd4, [%rd1];"), at(&data[64]) & ~UINT64_C(7),
         FAULT_ILLEGAL_ADDRESS},
        /* Memory that kernels may only read. */
        {KERNEL("st.global.u32 [%rd1], %r1;"), at(constant_words), FAULT_ILLEGAL_ADDRESS},
        {KERNEL("red.global.add.u32 [%rd1], %r1;"), at(constant_words), FAULT_ILLEGAL_ADDRESS},
        {KERNEL("mov.u64 %rd4, cst; cvta.const.u64 %rd4, %rd4; st.u32 [%rd4], %r1;"), 0,
         FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.const.u32 %r2, [cst+4];"), 0, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.const.u32 %r2, [%rd1];"), at(data), FAULT_ILLEGAL_ADDRESS},
        /* Bounds of the small spaces. */
        {KERNEL("ld.shared.u32 %r2, [%rd1];"), 64, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("ld.shared.u32 %r2, [%rd1];"), UINT64_MAX - 3, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("st.shared.u8 [dyn+64], %r1;"), 0, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("st.shared.u32 [dyn+2], %r1;"), 0, FAULT_MISALIGNED_ADDRESS},
        {KERNEL("ld.local.u32 %r2, [%rd1];"), 1 << 20, FAULT_ILLEGAL_ADDRESS},
        {KERNEL("mov.u64 %rd4, dyn; cvta.shared.u64 %rd4, %rd4; ld.u32 %r2, [%rd4+64];"), 0,
         FAULT_ILLEGAL_ADDRESS},
        {KERNEL("mov.u64 %rd4, dyn; cvta.shared.u64 %rd4, %rd4; ld.global.u32 %r2, [%rd4];"), 0,
         FAULT_INVALID_ADDRESS_SPACE},
        {KERNEL("mov.u64 %rd4, a; cvta.param.u64 %rd4, %rd4; ld.u64 %rd4, [%rd4+16];"), 0,
         FAULT_ILLEGAL_ADDRESS},
        {KERNEL("mov.u64 %rd4, a; cvta.param.u64 %rd4, %rd4; st.u64 [%rd4], %rd4;"), 0,
         FAULT_ILLEGAL_ADDRESS},
        {KERNEL("trap;"), 0, FAULT_TRAP},
        {KERNEL("bar.sync %r2, %r3; bar.sync 77;"), 0, FAULT_ILLEGAL_INSTRUCTION},
        {KERNEL("P: .callprototype _ (); call %rd1, P;"), 0, FAULT_ILLEGAL_INSTRUCTION},
        {KERNEL("P: .callprototype _ (); call %rd1, P;"), WINDOW_FUNCTION + 16 * 50,
         FAULT_ILLEGAL_INSTRUCTION},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fault f;
        if (run(cases[i].text, cases[i].address, &f) != BLOCK_FAULTED || f.kind != cases[i].kind)
            fail_msg("case %zu: kind %d instead of %d: %s", i, f.kind, cases[i].kind, f.text);
        assert_in_range(f.line, 4, 5);
    }
}

static void a_range_that_vanishes_is_no_longer_used(void **state)
{
    (void)state;
    kernel_forget();
    kernel_allow(data, sizeof(data), MEMORY_READ | MEMORY_WRITE);
    struct module *m = kernel_module(KERNEL("L:\nld.volatile.global.u32 %r2, [%rd1];\nbra L;"));
    struct params p = {at(data), out};
    struct function *k = kernel_find(m, "k");
    struct block_launch launch = {
        .function = k, .grid = {1, 1, 1}, .threads = {1, 1, 1}, .params = (const uint8_t *)&p};
    struct block *b = block_create(&launch, (uint32_t[3]){0}, 0);
    uint64_t clock = 0, wake;
    struct fault f;
    assert_int_equal(block_run(b, 1000, &clock, 0, &wake, &f), BLOCK_READY);
    kernel_forget();
    assert_int_equal(block_run(b, 1000, &clock, 0, &wake, &f), BLOCK_FAULTED);
    assert_int_equal(f.line, 6);
    block_destroy(b);
    module_destroy(m);
    kernel_free();
}

static void endless_recursion_exhausts_the_stack(void **state)
{
    (void)state;
    struct fault f;
    static const char text[] =
        PTX_HEAD ".func f() { .local .b8 big[1000]; .reg .b64 %x; mov.u64 %x, big;\n"
                 "call f; ret; }\n"
                 ".entry k(.param .u64 a, .param .u64 o) { call f; ret; }\n";
    assert_int_equal(run(text, 0, &f), BLOCK_FAULTED);
    assert_int_equal(f.kind, FAULT_STACK);
    assert_int_equal(f.line, 5);
}

static void a_failed_assertion_is_quoted(void **state)
{
    (void)state;
    struct fault f;
    static const char text[] = PTX_HEAD ".extern .func __assertfail(.param .b64 a, .param .b64 b, "
                                        ".param .b32 c, .param .b64 d, .param .b64 e);\n"
                                        ".global .align 1 .b8 message[] = {120, 32, 62, 32, 48, "
                                        "0}; .global .b8 file[] = {97, 46, 99, 0};\n"
                                        ".entry k(.param .u64 a, .param .u64 o) { .reg .b64 %x<3>; "
                                        ".param .b64 p; .param .b64 q; .param .b32 r;\n"
                                        "mov.u64 %x0, message; cvta.global.u64 %x0, %x0; "
                                        "st.param.b64 [p], %x0; mov.u64 %x1, file;\n"
                                        "st.param.b64 [q], %x1; st.param.b32 [r], 12;\ncall "
                                        "__assertfail, (p, q, r, p, p);\nret; }\n";
    assert_int_equal(run(text, 0, &f), BLOCK_FAULTED);
    assert_int_equal(f.kind, FAULT_ASSERT);
    assert_int_equal(f.line, 9);
    assert_non_null(strstr(f.text, "a.c:12: assertion `x > 0' failed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_faults_name_thread_address_and_line),
        cmocka_unit_test(each_bad_access_has_its_kind),
        cmocka_unit_test(a_range_that_vanishes_is_no_longer_used),
        cmocka_unit_test(endless_recursion_exhausts_the_stack),
        cmocka_unit_test(a_failed_assertion_is_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
