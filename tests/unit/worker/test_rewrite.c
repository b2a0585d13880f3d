/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Moving a module's .global variables: the new text, the values, and what stays. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"
#include "common/cuda/ptx.h"
#include "common/error.h"
#include "common/ipc/arena.h"
#include "server/worker/image/constants.h"
#include "server/worker/image/rewrite.h"
#include "server/worker/image/symbols.h"

#define BASE UINT64_C(0x200000000000) /* 35184372088832 */
#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static const struct ptx_limits wide = {.bytes = (size_t)1 << 24};

static struct rewrite *open_text(const char *text)
{
    struct rewrite *rewrite;
    struct error why = {0};
    assert_int_equal(rewrite_open(&rewrite, text, strlen(text), &wide, &why), 0);
    if (rewrite_unread(rewrite))
        print_message("%s\n", rewrite_unread(rewrite));
    assert_null(rewrite_unread(rewrite));
    return rewrite;
}

static void check(const char *text, const char *expected, uint64_t bytes)
{
    struct error why = {0};
    char *out = NULL;
    struct rewrite *rewrite = open_text(text);
    assert_int_equal(rewrite_global_bytes(rewrite), bytes);
    assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), 0);
    assert_string_equal(out, expected);
    free(out);
    rewrite_close(rewrite);
}

static void without_variables_the_text_stays(void **state)
{
    (void)state;
    const char *text = HEAD ".visible .entry k(.param .u64 p)\n{\n\tret;\n}\n";
    check(text, text, 0);
}

#define BASE_CONSTANT ".visible .const .align 8 .u64 gpushare0_base; "

static void mov_gets_the_address(void **state)
{
    (void)state;
    check(HEAD ".global .align 4 .u32 a = 5;\n"
               ".global .align 8 .b8 b[16];\n"
               ".visible .entry k()\n{\n\t.reg .b64 %rd<3>;\n"
               "\tmov.u64 %rd1, a;\n\tmov.u64 %rd2, b+4;\n\tret;\n}\n",
          HEAD "\n\n" BASE_CONSTANT
               ".visible .entry k()\n{ .reg .b64 %gpushare0_<2>; \n\t.reg .b64 %rd<3>;\n"
               "\tld.const.u64 %gpushare0_0, [gpushare0_base]; mov.u64 %rd1, %gpushare0_0;\n"
               "\tld.const.u64 %gpushare0_1, [gpushare0_base]; "
               "add.s64 %gpushare0_1, %gpushare0_1, 12; mov.u64 %rd2, %gpushare0_1;\n\tret;\n}\n",
          24);
}

static void other_instructions_get_a_register(void **state)
{
    (void)state;
    check(HEAD ".visible .global .u64 a;\n"
               ".visible .entry k()\n{\n\t.reg .b64 %rd<3>; .reg .pred %p;\n"
               "L:\t@%p ld.global.u64 %rd1, [a+8];\n\tst.global.u64 [a], %rd1;\n\tret;\n}\n",
          HEAD "\n" BASE_CONSTANT
               ".visible .entry k()\n{ .reg .b64 %gpushare0_<2>; \n\t.reg .b64 %rd<3>; .reg .pred "
               "%p;\n"
               "L:\tld.const.u64 %gpushare0_0, [gpushare0_base]; @%p ld.global.u64 %rd1, "
               "[%gpushare0_0+8];\n"
               "\tld.const.u64 %gpushare0_1, [gpushare0_base]; st.global.u64 [%gpushare0_1], "
               "%rd1;\n\tret;\n}\n",
          8);
}

static void a_name_like_ours_is_avoided(void **state)
{
    (void)state;
    check(HEAD ".global .u32 a;\n"
               ".visible .entry k()\n{\n\t.reg .b32 %gpushare0_<2>;\n"
               "\tld.global.u32 %gpushare0_1, [a];\n\tret;\n}\n"
               ".visible .entry gpushare1_base()\n{\n\tret;\n}\n",
          HEAD "\n.visible .const .align 8 .u64 gpushare2_base; "
               ".visible .entry k()\n{ .reg .b64 %gpushare2_<1>; \n\t.reg .b32 %gpushare0_<2>;\n"
               "\tld.const.u64 %gpushare2_0, [gpushare2_base]; ld.global.u32 %gpushare0_1, "
               "[%gpushare2_0];\n\tret;\n}\n"
               ".visible .entry gpushare1_base()\n{\n\tret;\n}\n",
          4);
}

static char *placed_at(const char *text, uint64_t base, char *constant)
{
    struct error why = {0};
    char *out = NULL;
    struct rewrite *rewrite = open_text(text);
    assert_int_equal(rewrite_place(rewrite, base, &out, &why), 0);
    snprintf(constant, 32, "%s", rewrite_constant(rewrite) ? rewrite_constant(rewrite) : "");
    rewrite_close(rewrite);
    return out;
}

static void the_text_does_not_depend_on_the_base(void **state)
{
    (void)state;
    const char *text = HEAD ".global .u32 a;\n.entry k()\n{\n\tst.global.u32 [a], 1;\n}\n";
    char name[32];
    char *one = placed_at(text, BASE, name), *other = placed_at(text, BASE + 4096, name);
    assert_string_equal(one, other);
    assert_string_equal(name, "gpushare0_base");
    free(one);
    free(other);
}

static void without_uses_there_is_no_constant(void **state)
{
    (void)state;
    char name[32];
    char *out = placed_at(HEAD ".global .u32 a;\n.entry k()\n{\n\tret;\n}\n", BASE, name);
    assert_string_equal(out, HEAD "\n.entry k()\n{\n\tret;\n}\n");
    assert_string_equal(name, "");
    free(out);
}

static void constants_without_room_leave_the_base_in_the_text(void **state)
{
    (void)state;
    static const char format[] = HEAD ".const .b8 c[%u];\n.global .u32 a;\n.global .u32 b;\n"
                                      ".entry k()\n{\n\tst.global.u32 [b], 1;\n}\n";
    char text[512], name[32];
    snprintf(text, sizeof text, format, 65536 - 16 - 1);
    free(placed_at(text, BASE, name));
    assert_string_equal(name, "gpushare0_base");
    snprintf(text, sizeof text, format, 65536 - 16);
    char *out = placed_at(text, BASE, name);
    assert_string_equal(name, "");
    assert_non_null(strstr(out, "\tmov.u64 %gpushare0_0, 35184372088832; "
                                "add.s64 %gpushare0_0, %gpushare0_0, 4; "
                                "st.global.u32 [%gpushare0_0], 1;\n"));
    free(out);
}

static void lines_keep_their_numbers(void **state)
{
    (void)state;
    const char *text = HEAD ".global .align 4 .b8 a[4] = {1,\n2,\n3, 4};\n.visible .entry k()\n{\n"
                            "\tret;\n}\n";
    struct error why = {0};
    char *out;
    struct rewrite *rewrite = open_text(text);
    assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), 0);
    assert_string_equal(out, HEAD "\n\n\n.visible .entry k()\n{\n\tret;\n}\n");
    free(out);
    rewrite_close(rewrite);
}

/* Collects everything that rewrite_initial says into one image. */
static void image_of(const struct rewrite *rewrite, uint8_t *image, size_t size)
{
    uint32_t next = 0;
    uint64_t address;
    uint8_t *bytes;
    size_t count;
    memset(image, 0, size);
    while (rewrite_initial(rewrite, &next, &address, &bytes, &count)) {
        assert_non_null(bytes);
        assert_true(address >= BASE && address - BASE + count <= size);
        memcpy(image + (address - BASE), bytes, count);
        free(bytes);
    }
}

static void initial_values_and_addresses(void **state)
{
    (void)state;
    struct rewrite *rewrite =
        open_text(HEAD ".global .align 4 .u32 a = 5;\n"
                       ".global .align 4 .f32 f[2] = {0f3F800000, 0f40000000};\n"
                       ".global .align 8 .u64 p[3] = {generic(a), f+4, 7};\n"
                       ".global .align 8 .u64 zero;\n"
                       ".global .align 1 .b8 bytes[8] = {0xFF(a), 0xFF00(a), 0xFF0000(a),\n"
                       "0xFF000000(a), 0xFF00000000(a), 0xFF0000000000(a)};\n"
                       ".visible .entry k()\n{\n\tret;\n}\n");
    struct error why = {0};
    char *out;
    uint8_t image[64];
    uint64_t address, count, expected;
    float floats[2];
    assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), 0);
    free(out);
    image_of(rewrite, image, sizeof image);
    struct symbols *symbols = rewrite_symbols(rewrite);
    assert_non_null(symbols);
    assert_true(symbols_variable(symbols, "a", &address, &count));
    assert_int_equal(count, 4);
    uint64_t a = address;
    assert_int_equal(image[a - BASE], 5);
    assert_true(symbols_variable(symbols, "f", &address, &count));
    assert_int_equal(count, 8);
    memcpy(floats, image + (address - BASE), 8);
    assert_true(floats[0] == 1.0f && floats[1] == 2.0f);
    uint64_t f = address;
    assert_true(symbols_variable(symbols, "p", &address, &count));
    assert_int_equal(count, 24);
    assert_int_equal(address % 8, 0);
    memcpy(&expected, image + (address - BASE), 8);
    assert_int_equal(expected, a);
    memcpy(&expected, image + (address - BASE) + 8, 8);
    assert_int_equal(expected, f + 4);
    assert_int_equal(image[address - BASE + 16], 7);
    assert_true(symbols_variable(symbols, "bytes", &address, &count));
    expected = 0;
    memcpy(&expected, image + (address - BASE), 6);
    assert_int_equal(expected, a);
    assert_true(symbols_variable(symbols, "zero", &address, &count));
    assert_false(symbols_variable(symbols, "nobody", &address, &count));
    symbols_free(symbols);
    rewrite_close(rewrite);
}

static void stays(const char *declarations, const char *name, const char *why)
{
    char text[1024];
    snprintf(text, sizeof text, HEAD "%s\n.visible .entry k()\n{\n\tret;\n}\n", declarations);
    struct rewrite *rewrite = open_text(text);
    const char *said = rewrite_why_stays(rewrite, name);
    if (why) {
        assert_non_null(said);
        assert_non_null(strstr(said, why));
    } else {
        assert_null(said);
    }
    rewrite_close(rewrite);
}

static void a_variable_that_cannot_be_moved_stays_with_the_reason(void **state)
{
    (void)state;
    stays(".extern .global .u32 a;", "a", "another module");
    stays(".global .texref a;", "a", "texture");
    stays(".global .attribute(.managed) .u32 a;", "a", "managed");
    stays(".func f() { ret; }\n.global .u64 a = f;", "a", "function");
    stays(".global .u32 a = 1;\n.const .u64 c = a;", "a", "holds its address");
    stays(".const .u32 c = 1;\n.global .u64 a = c;", "a", "address of one that stays");
    stays(".func f() { ret; }\n.global .u32 a;\n.global .u64 b[2] = {f, a};", "a",
          "holds its address");
    stays(".global .align 1024 .b8 a[1024];", "a", "alignment");
    stays(".global .u32 a;", "a", NULL);
    stays(".global .u32 a;\n.section .debug_info\n{\n.b64 a\n}", "a", "debugging");
    stays(".global .u32 a;\n.section .debug_info\n{\n.b64 ab\n}", "a", NULL);
}

static void variables_that_stay_are_left_in_the_text(void **state)
{
    (void)state;
    check(HEAD ".extern .global .u32 e;\n.global .u32 a;\n.visible .entry k()\n{\n\t.reg .b64 "
               "%rd<3>;\n\tmov.u64 %rd1, e;\n\tmov.u64 %rd2, a;\n\tret;\n}\n",
          HEAD ".extern .global .u32 e;\n\n" BASE_CONSTANT
               ".visible .entry k()\n{ .reg .b64 %gpushare0_<1>; \n\t.reg .b64 "
               "%rd<3>;\n\tmov.u64 %rd1, e;\n\tld.const.u64 %gpushare0_0, [gpushare0_base]; "
               "mov.u64 %rd2, %gpushare0_0;\n\tret;\n}\n",
          4);
}

static void const_stays(void **state)
{
    (void)state;
    const char *text = HEAD ".const .u32 c = 3;\n.visible .entry k()\n{\n\t.reg .b32 %r;\n"
                            "\tld.const.u32 %r, [c];\n\tret;\n}\n";
    check(text, text, 4);
}

/* Behind the variables that move, one behind the other, and those of a body have none. */
static void constants_have_twins(void **state)
{
    (void)state;
    struct error why = {0};
    char *out = NULL;
    struct constant constant;
    struct rewrite *rewrite =
        open_text(HEAD ".global .b8 g[600];\n.const .u8 one = 3;\n.extern .const .u32 elsewhere;\n"
                       ".visible .const .align 8 .b8 two[12];\n.const .u16 three = 1;\n"
                       ".visible .entry k()\n{\n.const .u32 inner = 3;\nret;\n}\n");
    static const struct constant expected[] = {
        {"one", BASE + 1024, 1}, {"two", BASE + 1024 + 8, 12}, {"three", BASE + 1024 + 20, 2}};
    assert_int_equal(rewrite_global_bytes(rewrite), 1024 + 22);
    assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), 0);
    struct constants constants = rewrite_constants(rewrite);
    struct symbols *symbols = rewrite_symbols(rewrite);
    for (size_t i = 0; i < 3; i++) {
        uint64_t address = 0, bytes = 0;
        assert_true(constants_next(&constants, &constant));
        assert_string_equal(constant.name, expected[i].name);
        assert_int_equal(constant.address, expected[i].address);
        assert_int_equal(constant.bytes, expected[i].bytes);
        assert_true(symbols_variable(symbols, constant.name, &address, &bytes));
        assert_int_equal(address, constant.address);
        assert_int_equal(bytes, constant.bytes);
    }
    assert_false(constants_next(&constants, &constant));
    symbols_free(symbols);
    free(out);
    rewrite_close(rewrite);
}

static void more_constants_than_a_module_may_have_get_no_twins(void **state)
{
    (void)state;
    static const char format[] = HEAD ".const .b8 c[65536];\n.const .b8 d[%u];\n";
    char text[200];
    for (unsigned more = 0; more < 2; more++) {
        snprintf(text, sizeof text, format, more);
        struct rewrite *rewrite = open_text(text);
        assert_int_equal(rewrite_global_bytes(rewrite), more ? 0 : 65536);
        assert_int_equal(rewrite_unsaved(rewrite),
                         more ? PROTO_UNSAVED_VARIABLES : PROTO_UNSAVED_NOTHING);
        rewrite_close(rewrite);
    }
}

static void what_another_worker_cannot_have_is_found(void **state)
{
    (void)state;
#define BODY(code)                                                                                 \
    HEAD ".const .u32 c = 1;\n.global .u32 g = 1;\n.func f(.param .u64 p)\n{\nret;\n}\n"           \
         ".visible .entry k(.param .u64 p)\n{\n.reg .u64 %a, %b;\n.reg .u32 %v;\n"                 \
         ".param .u64 s;\nproto: .callprototype _ (.param .u64 x);\n" code "ret;\n}\n"
    static const struct {
        const char *text;
        enum proto_unsaved expected;
    } cases[] = {
        {BODY(""), PROTO_UNSAVED_NOTHING},
        {BODY("ld.const.u32 %v, [c];\nmov.u64 %a, c;\nld.const.u32 %v, [%a];\n"),
         PROTO_UNSAVED_NOTHING},
        {BODY("cvta.to.const.u64 %a, %b;\ncvta.global.u64 %a, %b;\n"), PROTO_UNSAVED_NOTHING},
        {BODY("call.uni f, (s);\n"), PROTO_UNSAVED_NOTHING},
        {BODY("mov.u64 %a, f;\n"), PROTO_UNSAVED_FUNCTION_ADDRESSES},
        {BODY("mov.u64 %a, k;\n"), PROTO_UNSAVED_FUNCTION_ADDRESSES},
        {BODY("call %a, (s), proto;\n"), PROTO_UNSAVED_FUNCTION_ADDRESSES},
        {BODY("cvta.const.u64 %a, %b;\n"), PROTO_UNSAVED_CONSTANT_ADDRESSES},
        /* Addresses that any kernel may follow outweigh those that only some can. */
        {BODY("mov.u64 %a, f;\ncvta.const.u64 %a, %b;\n"), PROTO_UNSAVED_CONSTANT_ADDRESSES},
        {BODY("cvta.const.u64 %a, %b;\nmov.u64 %a, f;\n"), PROTO_UNSAVED_CONSTANT_ADDRESSES},
        {HEAD ".const .u32 c = 1;\n.const .u64 d = c;\n", PROTO_UNSAVED_CONSTANT_ADDRESSES},
        {HEAD ".func f()\n{\nret;\n}\n.const .u64 d = f;\n", PROTO_UNSAVED_FUNCTION_ADDRESSES},
        {HEAD ".func f()\n{\nret;\n}\n.global .u64 d = f;\n", PROTO_UNSAVED_VARIABLES},
        {HEAD ".global .u32 g = 1;\n.const .u64 d = g;\n", PROTO_UNSAVED_VARIABLES},
        {HEAD ".global .texref t;\n", PROTO_UNSAVED_VARIABLES},
        {HEAD ".extern .const .u32 c;\n", PROTO_UNSAVED_VARIABLES},
        {HEAD ".extern .func (.param .b64 r) malloc (.param .b64 n);\n", PROTO_UNSAVED_DEVICE_HEAP},
        {HEAD ".extern .func free (.param .b64 n);\n", PROTO_UNSAVED_DEVICE_HEAP},
        {HEAD ".extern .func (.param .b64 r) __cuda_syscall_aligned_malloc (.param .b64 n, "
              ".param .b64 a);\n",
         PROTO_UNSAVED_DEVICE_HEAP},
        {HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n",
         PROTO_UNSAVED_NOTHING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rewrite *rewrite = open_text(cases[i].text);
        if (rewrite_unsaved(rewrite) != cases[i].expected)
            print_message("case %zu: %s\n", i, cases[i].text);
        assert_int_equal(rewrite_unsaved(rewrite), cases[i].expected);
        rewrite_close(rewrite);
    }
}

static void text_that_is_not_understood_is_left_to_the_driver(void **state)
{
    (void)state;
    const char *text = HEAD ".visible .entry k(\n{ nonsense";
    struct rewrite *rewrite;
    struct error why = {0};
    assert_int_equal(rewrite_open(&rewrite, text, strlen(text), &wide, &why), 0);
    assert_non_null(rewrite_unread(rewrite));
    assert_int_equal(rewrite_global_bytes(rewrite), 0);
    assert_int_equal(rewrite_unsaved(rewrite), PROTO_UNSAVED_UNREAD);
    char *out;
    assert_int_equal(rewrite_place(rewrite, 0, &out, &why), 0);
    assert_string_equal(out, text);
    free(out);
    rewrite_close(rewrite);
}

static void text_that_is_not_understood_may_declare_no_variables(void **state)
{
    (void)state;
    const char *text = HEAD ".explicitcluster;\n.global .b8 a[1000000000];\n";
    struct rewrite *rewrite;
    struct error why = {0};
    assert_int_equal(rewrite_open(&rewrite, text, strlen(text), &wide, &why),
                     PROTO_ERROR_INVALID_PTX);
    assert_null(rewrite);
    assert_non_null(strstr(why.text, ".explicitcluster"));
    assert_non_null(strstr(why.text, "line 5"));
    assert_non_null(strstr(why.text, "cubin"));
}

static void layout_of_parameters(void **state)
{
    (void)state;
    struct rewrite *rewrite =
        open_text(HEAD ".visible .entry k(.param .u32 a, .param .u64 b, "
                       ".param .align 16 .b8 c[24], .param .u8 d)\n{\n\tret;\n"
                       "}\n");
    uint32_t pairs[16], count;
    uint64_t end;
    struct symbols *symbols = rewrite_symbols(rewrite);
    assert_non_null(symbols);
    assert_true(symbols_kernel(symbols, "k", pairs, &count, &end));
    const uint32_t expected[8] = {0, 4, 8, 8, 16, 24, 40, 1};
    assert_int_equal(count, 4);
    assert_memory_equal(pairs, expected, sizeof expected);
    assert_int_equal(end, 41);
    assert_int_equal(symbols_kernel_count(symbols), 1);
    assert_false(symbols_kernel(symbols, "none", pairs, &count, &end));
    symbols_free(symbols);
    rewrite_close(rewrite);
}

/* A text may hold words like ours, and the first number that none of them has is taken. */
static void our_names_take_the_first_free_number(void **state)
{
    (void)state;
    static const struct {
        const char *comment;
        const char *name;
    } cases[] = {
        {"gpushare1_", "gpushare0_base"},
        {"gpushare0_", "gpushare1_base"},
        {"gpushare1_ xgpushare0_y gpushare3_", "gpushare2_base"},
        {"gpusharegpushare0_ gpushare00_ gpushare01_ gpushare1 gpushare", "gpushare1_base"},
        {"gpushare99999999999999999999999_ gpushare0_", "gpushare1_base"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512], *out = NULL;
        struct error why = {0};
        snprintf(text, sizeof text,
                 HEAD ".global .u64 a;\n.entry k()\n{\nst.global.u64 [a], 1;\nret;\n}\n//%s",
                 cases[i].comment);
        struct rewrite *rewrite = open_text(text);
        assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), 0);
        assert_string_equal(rewrite_constant(rewrite), cases[i].name);
        free(out);
        rewrite_close(rewrite);
    }
}

/* The CPU time, in seconds, for a text with so many names like ours, of which the last is free. */
static double seconds_for(int words)
{
    char *text = malloc(256 + (size_t)words * 16), *out = NULL;
    struct error why = {0};
    struct timespec began, ended;
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, HEAD ".global .u64 a;\n.entry k()\n{\nst.global.u64 [a], 1;\n"
                                           "ret;\n}\n/*");
    for (int i = words; i-- > 0;)
        at += (size_t)sprintf(text + at, "gpushare%d_\n", i);
    sprintf(text + at, "*/");
    struct rewrite *rewrite = open_text(text);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    char expected[40];
    snprintf(expected, sizeof expected, "gpushare%d_base", words);
    assert_string_equal(rewrite_constant(rewrite), expected);
    free(out);
    rewrite_close(rewrite);
    free(text);
    return (double)(ended.tv_sec - began.tv_sec) + (double)(ended.tv_nsec - began.tv_nsec) / 1e9;
}

/* Each number in a search of its own takes minutes. Four times as many words take four times as
 * long, and sixteen times as long if each is looked at for each. */
static void words_like_ours_take_linear_time(void **state)
{
    (void)state;
    /* A sanitizer's memmem looks at all that it was given, not only at the part up to the find: a
     * search for each word takes quadratic time there. */
#if defined(ARENA_THREAD_SANITIZER) || defined(__SANITIZE_ADDRESS__)
    assert_true(seconds_for(2000) < 30);
#else
    double few = seconds_for(50000), many = seconds_for(200000);
    print_message("50,000 words: %.3f s; 200,000 words: %.3f s\n", few, many);
    assert_true(many < 10 * few + 0.05);
#endif
}

static uint32_t refuse_when_set(void *context, struct error *why)
{
    return *(const bool *)context ? error_set(why, PROTO_ERROR_CONNECTION_LOST, "left") : 0;
}

static void the_caller_can_end_rewriting(void **state)
{
    (void)state;
    bool left = false;
    struct rewrite *rewrite;
    struct error why = {0};
    char *out = NULL;
    const struct ptx_limits limits = {
        .bytes = wide.bytes, .ask = refuse_when_set, .context = &left};
    const char *text = HEAD ".global .u64 a;\n.entry k()\n{\nst.global.u64 [a], 1;\nret;\n}\n";
    assert_int_equal(rewrite_open(&rewrite, text, strlen(text), &limits, &why), 0);
    left = true;
    assert_int_equal(rewrite_place(rewrite, BASE, &out, &why), PROTO_ERROR_CONNECTION_LOST);
    assert_null(out);
    assert_string_equal(why.text, "left");
    rewrite_close(rewrite);
}

/* Neither reading nor rewriting may take more than was said, and a text that needs more names the
 * remedy. Found by trying every size below what is enough. */
static void memory_is_bounded(void **state)
{
    (void)state;
    char text[16384];
    struct error why = {0};
    char *out;
    size_t at = (size_t)snprintf(text, sizeof text, HEAD ".global .u32 v;\n.entry k()\n{\n");
    for (int i = 0; i < 400; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "st.global.u32 [v], {v,v};\n");
    at += (size_t)snprintf(text + at, sizeof text - at, "ret;\n}\n");
    int unread = 0, unplaced = 0;
    size_t most;
    for (most = 1000;; most += 4000) {
        struct rewrite *rewrite;
        why = (struct error){0};
        const struct ptx_limits limits = {.bytes = most};
        uint32_t error = rewrite_open(&rewrite, text, at, &limits, &why);
        unread += error != 0;
        if (!error) {
            assert_true(rewrite_tree_bytes(rewrite) <= most);
            error = rewrite_place(rewrite, BASE, &out, &why);
            unplaced += error != 0;
            if (!error)
                free(out);
            rewrite_close(rewrite);
        }
        if (!error)
            break;
        assert_int_equal(error, PROTO_ERROR_SERVER_RESOURCES);
        assert_non_null(strstr(why.text, "--image-memory"));
    }
    print_message("%zu bytes of text take %zu\n", at, most);
    assert_true(unread > 0 && unplaced > 0);
}

/* NVIDIA's own compiler, where it is installed: it takes what comes out for a text of nvcc's. */
static void ptxas_takes(const char *name)
{
    static char text[1 << 20];
    char path[256], command[512];
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(path, sizeof path, "tests/corpus/ptx/%s.ptx", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    snprintf(path, sizeof path, "%s/%s-%d.ptx", folder, name, (int)getpid());
    char constant[32];
    char *out = placed_at(text, BASE, constant);
    assert_string_equal(constant, "gpushare0_base");
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(out, file);
    fclose(file);
    free(out);
    snprintf(command, sizeof command, "ptxas -arch=sm_90 -o /dev/null %s", path);
    assert_int_equal(system(command), 0);
    unlink(path);
}

static void ptxas_takes_the_new_text(void **state)
{
    (void)state;
    if (system("ptxas --version >/dev/null 2>&1") != 0)
        skip();
    ptxas_takes("atomic");
    ptxas_takes("math");
    ptxas_takes("storage");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_variables_the_text_stays),
        cmocka_unit_test(mov_gets_the_address),
        cmocka_unit_test(other_instructions_get_a_register),
        cmocka_unit_test(a_name_like_ours_is_avoided),
        cmocka_unit_test(the_text_does_not_depend_on_the_base),
        cmocka_unit_test(without_uses_there_is_no_constant),
        cmocka_unit_test(constants_without_room_leave_the_base_in_the_text),
        cmocka_unit_test(lines_keep_their_numbers),
        cmocka_unit_test(initial_values_and_addresses),
        cmocka_unit_test(a_variable_that_cannot_be_moved_stays_with_the_reason),
        cmocka_unit_test(variables_that_stay_are_left_in_the_text),
        cmocka_unit_test(const_stays),
        cmocka_unit_test(constants_have_twins),
        cmocka_unit_test(more_constants_than_a_module_may_have_get_no_twins),
        cmocka_unit_test(what_another_worker_cannot_have_is_found),
        cmocka_unit_test(text_that_is_not_understood_is_left_to_the_driver),
        cmocka_unit_test(text_that_is_not_understood_may_declare_no_variables),
        cmocka_unit_test(layout_of_parameters),
        cmocka_unit_test(our_names_take_the_first_free_number),
        cmocka_unit_test(words_like_ours_take_linear_time),
        cmocka_unit_test(the_caller_can_end_rewriting),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(ptxas_takes_the_new_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
