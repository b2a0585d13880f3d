/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Loading: what a module says of itself, and what it refuses. */
#include "tests/unit/softgpu/kernel.h"

static const char sample[] =
    PTX_HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
             ".global .align 8 .u64 table[3] = {counter, generic(counter)+4, f};\n";

#define DECLARED                                                                                   \
    PTX_HEAD ".global .align 4 .u32 counter = 7;\n.const .align 8 .f64 k[2] = {1.5, "              \
             "0dC000000000000000};\n"                                                              \
             ".func (.param .b32 r) f (.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r1, [a]; "  \
             "add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }\n"                                \
             ".global .align 8 .u64 table[3] = {counter, generic(counter)+4, f};\n"                \
             ".global .u8 bytes[8] = {0xff(counter), 0xff00(counter)};\n"                          \
             ".shared .align 8 .b8 common_s[24];\n.extern .shared .align 16 .b8 dyn[];\n"          \
             ".visible .entry two(.param .u8 a, .param .align 8 .b8 s[12], .param .u64 p) "        \
             ".maxntid 64, 2\n"                                                                    \
             "{ .shared .b32 x; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<3>; mov.u64 "     \
             "%rd1, dyn;\n"                                                                        \
             "mov.u64 %rd2, x; mov.u64 %rd3, common_s; ld.param.s8 %r1, [a]; st.shared.v2.b32 "    \
             "[dyn], {%r1, %r2};\n"                                                                \
             "setp.lt.u32 %p1|%p2, %r1, 3; @!%p1 bra L; mov.b64 {%r1, %r2}, %rd1; selp.b32 %r3, "  \
             "1, %r2, %p2;\n"                                                                      \
             "L: ret; }\n.entry one() { ret; }\n"

static void a_module_describes_its_kernels(void **state)
{
    (void)state;
    kernel_forget();
    struct module *m = kernel_module(DECLARED);
    assert_int_equal(module_function_count(m), 2);
    assert_null(kernel_find(m, "f"));
    struct function_info info;
    function_info(kernel_find(m, "two"), &info);
    assert_int_equal(info.param_count, 3);
    assert_int_equal(info.param_bytes, 32);
    assert_int_equal(info.static_shared_bytes, 32); /* 24 + 4, aligned for dyn */
    assert_int_equal(info.max_threads, 128);
    assert_int_equal(info.const_bytes, 16);
    assert_int_equal(info.ptx_version, 80);
    assert_int_equal(info.target, 90);
    uint32_t offset, bytes;
    assert_int_equal(function_param(kernel_find(m, "two"), 1, &offset, &bytes), 0);
    assert_int_equal(offset, 8);
    assert_int_equal(bytes, 12);
    assert_int_equal(function_param(kernel_find(m, "two"), 3, &offset, &bytes), -1);
    function_info(kernel_find(m, "one"), &info);
    assert_int_equal(info.static_shared_bytes, 0);
    assert_int_equal(info.max_threads, 1024);
    module_destroy(m);
    kernel_free();
}

static void variables_get_their_values(void **state)
{
    (void)state;
    kernel_forget();
    struct module *m = kernel_module(DECLARED);
    uint64_t counter, table, k, bytes_at;
    size_t bytes;
    assert_int_equal(module_variable(m, "counter", &counter, &bytes), 0);
    assert_int_equal(bytes, 4);
    assert_int_equal(*(uint32_t *)(uintptr_t)counter, 7);
    assert_int_equal(module_variable(m, "table", &table, &bytes), 0);
    assert_int_equal(((uint64_t *)(uintptr_t)table)[0], counter);
    assert_int_equal(((uint64_t *)(uintptr_t)table)[1], counter + 4);
    assert_int_equal(module_variable(m, "k", &k, NULL), 0);
    assert_true(((double *)(uintptr_t)k)[0] == 1.5 && ((double *)(uintptr_t)k)[1] == -2.0);
    assert_int_equal(module_variable(m, "bytes", &bytes_at, NULL), 0);
    assert_int_equal(((uint8_t *)(uintptr_t)bytes_at)[0], counter & 0xff);
    assert_int_equal(((uint8_t *)(uintptr_t)bytes_at)[1], counter >> 8 & 0xff);
    assert_int_equal(module_variable(m, "common_s", &k, NULL), -1);
    assert_int_equal(module_variable(m, "absent", &k, NULL), -1);
    struct error why;
    assert_int_equal(module_place(m, 0, 0, &why), -1);
    module_destroy(m);
    kernel_free();
}

#define BODY(text)                                                                                 \
    PTX_HEAD ".entry k(.param .u32 n) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg " \
             ".pred %p<3>;\n" text "\nret; }\n"

static void unknown_instructions_are_refused_by_name_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {BODY("\ntcgen05.mma.cta_group::1 %r1, %r2;"),
         "line 6: unknown instruction 'tcgen05.mma.cta_group::1'"},
        {BODY("add.quickly.u32 %r1, %r2, %r3;"),
         "line 5: unknown instruction 'add', for its '.quickly'"},
        {BODY("add.u32 %r1, %rd2, %r3;"), "line 5: '%rd2' is no register of type u32"},
        {BODY("add.u32 %r1, %r2;"), "line 5: the number of operands of 'add' can't be 2"},
        {BODY("add.f32 %f1, %f2, 1;"), "line 5: an integer where a f32 should stand"},
        {BODY("mov.u32 %r1, %nonsense;"), "line 5: unknown special register '%nonsense'"},
        {BODY("ld.param.u32 %r1, [n+1];"), "line 5: ld.param beyond the end of 'n'"},
        {BODY("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t, {%f1,%f2}];"),
         "line 5: 't' is not declared"},
        {BODY("cp.async.bulk.shared::cluster.global [%rd1], [%rd2], 16;"),
         "line 5: unknown instruction 'cp.async.bulk' for these spaces"},
        {BODY("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1], [%rd2];"),
         "line 5: unknown instruction 'cp.async.bulk.tensor.1d.global.shared::cta.bulk_group'"},
        {PTX_HEAD ".extern .global .u32 x;\n",
         "line 4: 'x' is declared .extern and defined nowhere"},
        {PTX_HEAD ".global .texref t;\n",
         "line 4: 't' is a texture, sampler or surface, which are not supported"},
        {PTX_HEAD ".extern .func other();\n.entry k() { call other; ret; }\n",
         "line 5: call of 'other', which has no body"},
        {PTX_HEAD ".extern .func free(.param .b64 p);\n.entry k() { .reg .b64 %a;\n"
                  "mov.u64 %a, free; ret; }\n",
         "line 6: cannot take the address of function 'free'"},
        {PTX_HEAD ".func f();\n.entry k() { call f, (), 3; ret; }\n",
         "line 5: an operand of 'call' is not understood"},
        {PTX_HEAD ".reg .b32 %r;\n", "line 4: unknown directive '.reg'"},
        {PTX_HEAD ".entry k() { .reg .b128 %q<3>;\nmov.b128 %q1, %q2; }\n",
         "line 5: 'mov' is not for type b128"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct module *m;
        struct error why;
        assert_int_equal(module_load(cases[i].text, strlen(cases[i].text), &m, &why),
                         CUDA_ERR_INVALID_PTX);
        assert_null(m);
        assert_string_equal(why.text, cases[i].error);
        assert_int_equal(why.number, CUDA_ERR_INVALID_PTX);
    }
}

/*
 * Text that was mutated is refused, or loads and then runs to an end of some kind;
 * addresses in it are checked like any other.
 */
static void mutated_modules_never_crash(void **state)
{
    (void)state;
    static const char text[] =
        DECLARED ".entry all(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; "
                 ".reg .pred %p<3>; .reg .b16 %h<4>;\n"
                 ".local .align 8 .b8 depot[64]; T: .branchtargets A, B; ld.param.u64 %rd1, [p]; "
                 "mov.u32 %r1, %tid.x;\n"
                 "mad.wide.u32 %rd2, %r1, 4, %rd1; atom.global.add.u32 %r2, [%rd2], %r1; "
                 "ld.global.v2.u32 {%r3, %r4}, [%rd1];\n"
                 "shfl.sync.idx.b32 %r5|%p1, %r1, 3, 31, -1; cvt.rn.f32.u32 %f1, %r1; sqrt.rn.f32 "
                 "%f2, %f1; cvt.rzi.s32.f32 %r6, %f2;\n"
                 "st.local.u32 [depot+8], %r6; and.b32 %r7, %r1, 1; brx.idx %r7, T; A: bar.sync 0; "
                 "bra C; B: bar.sync 0;\n"
                 "C: { .param .b32 x; .param .b32 y; st.param.b32 [x], %r6; call (y), f, (x); "
                 "ld.param.b32 %r8, [y]; }\n"
                 "prmt.b32 %r5, %r4, %r3, 0x1234; bfi.b32 %r5, %r4, %r3, 2, 7; add.cc.u32 %r4, "
                 "%r4, %r3; addc.u32 %r4, %r4, 0;\n"
                 "vote.sync.ballot.b32 %r2, %p1, -1; @%p1 st.global.u32 [%rd2], %r8; ret; }\n";
    static uint32_t data[64];
    uint64_t seed = 99, ran = 0, params[4] = {(uint64_t)(uintptr_t)data};
    for (int round = 0; round < 4000; round++) {
        char copy[sizeof(text)];
        memcpy(copy, text, sizeof(text));
        for (int k = 0; k < round % 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t to = (seed >> 33) % (sizeof(text) - 1), from = (seed >> 13) % (sizeof(text) - 1);
            size_t n = 1 + (seed >> 3) % 6;
            n = to + n < sizeof(text) ? n : 1;
            n = from + n < sizeof(text) ? n : 1;
            memmove(copy + to, text + from, n);
        }
        struct module *m;
        struct error why;
        if (module_load(copy, strlen(copy), &m, &why))
            continue;
        module_destroy(m);
        kernel_forget();
        kernel_allow(data, sizeof(data), MEMORY_READ | MEMORY_WRITE);
        m = kernel_module(copy);
        struct function *f = kernel_find(m, "all");
        struct block_launch launch = {.function = f,
                                      .grid = {1, 1, 1},
                                      .threads = {40, 1, 1},
                                      .params = (const uint8_t *)params};
        struct block *b = f ? block_create(&launch, (uint32_t[3]){0}, 0) : NULL;
        uint64_t clock = 0, wake;
        struct fault fault;
        struct function_info info = {0};
        if (f)
            function_info(f, &info);
        if (b && info.param_bytes <= sizeof(params)) {
            block_run(b, 3000, &clock, 0, &wake, &fault);
            ran++;
        }
        block_destroy(b);
        module_destroy(m);
        kernel_free();
    }
    assert_true(ran > 1000);
}

static void truncated_modules_never_crash(void **state)
{
    (void)state;
    static const char text[] = DECLARED;
    for (size_t n = 0; n < sizeof(text); n++) {
        char *copy = malloc(n + 1);
        assert_non_null(copy);
        memcpy(copy, text, n);
        struct module *m;
        struct error why;
        if (module_load(copy, n, &m, &why) == 0)
            module_destroy(m);
        free(copy);
    }
    struct module *m;
    struct error why;
    assert_int_equal(module_load(sample, strlen(sample), &m, &why), CUDA_ERR_INVALID_PTX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_describes_its_kernels),
        cmocka_unit_test(variables_get_their_values),
        cmocka_unit_test(unknown_instructions_are_refused_by_name_and_line),
        cmocka_unit_test(mutated_modules_never_crash),
        cmocka_unit_test(truncated_modules_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
