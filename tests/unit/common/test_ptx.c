/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cuda/ptx.h"
#include "common/cuda/ptx_token.h"
#include "protocol.h"

#define HEAD ".version 8.0\n.target sm_90a, debug\n.address_size 64\n"

/* The definition if there is one, else a declaration, else NULL. */
static const struct ptx_function *find_function(const struct ptx_module *module, const char *name)
{
    for (uint32_t i = 0; i < module->function_count; i++) {
        const struct ptx_function *f = module->functions[i];
        if (strcmp(f->name, name) == 0)
            return f->definition ? f->definition : f;
    }
    return NULL;
}

static const char sample[] =
    HEAD "// a comment\n"                                                                /* 4 */
         ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"       /* 5 */
         ".global .align 4 .u32 counter = 7;\n"                                          /* 6 */
         ".visible .global .align 8 .u64 table[3] = {counter, generic(counter)+4, 9};\n" /* 7 */
         ".const .align 4 .f32 k[2] = {0f3F800000, 2.5};\n"                              /* 8 */
         ".extern .shared .align 16 .b8 dyn[];\n"                                        /* 9 */
         ".visible .entry kern(.param .u8 a, .param .align 8 .b8 s[12],\n"               /* 10 */
         "  .param .u64 .ptr .global .align 16 p)\n"                                     /* 11 */
         ".maxntid 256, 2, 1\n.minnctapersm 2\n"                                         /* 12 13 */
         "{\n .reg .pred %p<3>;\n .reg .b32 %r<12>;\n .reg .b64 %rd<4>;\n"               /* 14-17 */
         " .local .align 4 .b8 depot[16];\n"                                             /* 18 */
         " ld.param.u64 %rd1, [p+8];\n"                                                  /* 19 */
         " mov.u32 %r1, %tid.x;\n"                                                       /* 20 */
         " @!%p1 bra.uni $L__1;\n"                                                       /* 21 */
         " {\n .reg .b32 %r<2>, q;\n add.s32 q, %r1, -5;\n }\n"                          /* 22-25 */
         " shfl.sync.idx.b32 %r10|%p2, %r1, 0, 31, -1;\n"                                /* 26 */
         " atom.global.add.u32 %r2, [counter], 1;\n"                                     /* 27 */
         "$L__1:\n ret;\n}\n";

static struct ptx_module *read_ok(const char *text)
{
    struct ptx_module *m = NULL;
    struct error why;
    uint32_t error = ptx_read(text, strlen(text), &m, &why);
    if (error)
        fail_msg("%s", why.text);
    return m;
}

static void assert_span(uint32_t start, uint32_t end, const char *want)
{
    assert_int_equal(end - start, strlen(want));
    assert_memory_equal(sample + start, want, end - start);
}

/* Whether such a string ends there is read one way by some and another way by others. */
static void a_quote_inside_a_string_is_no_token(void **state)
{
    (void)state;
    static const char text[] = "\"s\\\" .global .u32 a; \"";
    struct ptx_lexer lexer;
    ptx_lexer_init(&lexer, text, sizeof(text) - 1);
    assert_int_equal(ptx_lexer_next(&lexer).kind, PTX_TOKEN_BAD);
}

static void tokens_have_kind_value_and_line(void **state)
{
    (void)state;
    static const char text[] =
        "ld.shared::cta /* x\n */ 0x1F 017 0b101 12U 0f3f800000 1.5 \"s\\\\\" %r1";
    static const struct {
        enum ptx_token_kind kind;
        uint64_t value;
    } want[] = {{PTX_TOKEN_WORD, 0},
                {PTX_TOKEN_DOT, 0},
                {PTX_TOKEN_INTEGER, 31},
                {PTX_TOKEN_INTEGER, 15},
                {PTX_TOKEN_INTEGER, 5},
                {PTX_TOKEN_INTEGER, 12},
                {PTX_TOKEN_FLOAT32, 0x3f800000},
                {PTX_TOKEN_FLOAT64, UINT64_C(0x3ff8000000000000)},
                {PTX_TOKEN_STRING, 0},
                {PTX_TOKEN_WORD, 0},
                {PTX_TOKEN_END, 0}};
    struct ptx_lexer lexer;
    ptx_lexer_init(&lexer, text, sizeof(text) - 1);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct ptx_token t = ptx_lexer_next(&lexer);
        assert_int_equal(t.kind, want[i].kind);
        assert_int_equal(t.value, want[i].value);
        assert_int_equal(t.line, i < 2 ? 1 : 2);
    }
}

static void header_variables_and_functions_are_read(void **state)
{
    (void)state;
    struct ptx_module *m = read_ok(sample);
    assert_int_equal(m->version, 80);
    assert_int_equal(m->target, 90);
    assert_string_equal(m->target_name, "sm_90a");
    assert_int_equal(m->variable_count, 4);
    const struct ptx_variable *table = ptx_find_variable(m, "table");
    assert_int_equal(table->bytes, 24);
    assert_int_equal(table->linkage, PTX_LINK_VISIBLE);
    assert_int_equal(table->initialiser_count, 3);
    assert_ptr_equal(table->initialisers[0].variable, ptx_find_variable(m, "counter"));
    assert_true(table->initialisers[1].generic);
    assert_int_equal(table->initialisers[1].value, 4);
    assert_int_equal(table->initialisers[2].offset, 16);
    assert_int_equal(table->initialisers[2].value, 9);
    assert_span(table->initialisers[1].symbol_start, table->initialisers[1].symbol_end, "counter");
    assert_span(table->start, table->end,
                ".visible .global .align 8 .u64 table[3] = {counter, generic(counter)+4, 9};");
    const struct ptx_variable *k = ptx_find_variable(m, "k");
    assert_int_equal(k->initialisers[0].value, 0x3f800000);
    assert_int_equal(k->initialisers[1].value, 0x40200000);
    assert_int_equal(ptx_find_variable(m, "dyn")->bytes, 0);
    const struct ptx_function *print = find_function(m, "vprintf");
    assert_false(print->defined);
    assert_int_equal(print->param_count, 2);
    assert_int_equal(print->return_count, 1);
    ptx_destroy(m);
}

static void parameters_are_laid_out_as_the_driver_does(void **state)
{
    (void)state;
    struct ptx_module *m = read_ok(sample);
    const struct ptx_function *f = find_function(m, "kern");
    assert_int_equal(f->param_count, 3);
    assert_int_equal(ptx_param_offset(f, 0), 0);
    assert_int_equal(ptx_param_offset(f, 1), 8);
    assert_int_equal(ptx_param_offset(f, 2), 24);
    assert_int_equal(ptx_param_offset(f, 3), 32);
    assert_int_equal(f->max_threads[0], 256);
    assert_int_equal(f->max_threads[1], 2);
    ptx_destroy(m);
}

static void operands_are_resolved_with_their_place(void **state)
{
    (void)state;
    struct ptx_module *m = read_ok(sample);
    const struct ptx_function *f = find_function(m, "kern");
    assert_int_equal(f->instruction_count, 7);
    const struct ptx_instruction *ld = &f->instructions[0];
    assert_int_equal(ld->line, 19);
    assert_span(ld->start, ld->end, "ld.param.u64 %rd1, [p+8];");
    assert_int_equal(ld->operands[1].kind, PTX_OPERAND_ADDRESS);
    assert_int_equal(ld->operands[1].addend, 8);
    assert_ptr_equal(ld->operands[1].items[0].variable, f->params[2]);
    const struct ptx_instruction *bra = &f->instructions[2];
    assert_true(bra->guard->negated);
    assert_int_equal(bra->guard->index, 1);
    assert_int_equal(bra->operands[0].kind, PTX_OPERAND_LABEL);
    assert_int_equal(f->labels[bra->operands[0].label].instruction, 6);
    /* The inner block's %r hides the outer one. */
    const struct ptx_instruction *add = &f->instructions[3], *mov = &f->instructions[1];
    assert_ptr_not_equal(add->operands[1].variable, mov->operands[0].variable);
    assert_int_equal(add->operands[2].value, (uint64_t)-5);
    const struct ptx_instruction *shfl = &f->instructions[4];
    assert_int_equal(shfl->operands[0].kind, PTX_OPERAND_PAIR);
    assert_int_equal(shfl->operands[0].items[0].index, 10);
    const struct ptx_operand *use = &f->instructions[5].operands[1].items[0];
    assert_ptr_equal(use->variable, ptx_find_variable(m, "counter"));
    assert_span(use->symbol_start, use->symbol_end, "counter");
    ptx_destroy(m);
}

static void errors_name_line_and_culprit(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "line 1: no .version: this is not PTX"},
        {"hello", "line 1: 'hello' where a directive should stand"},
        {HEAD ".entry k() {\n ret", "line 5: the text ends where an operand should stand"},
        {HEAD ".entry k() { ret 1 }", "line 4: '}' where ';' should stand"},
        {HEAD ".entry k()", "line 4: the text ends where ';' should stand"},
        {HEAD ".entry k() { bra L; }", "line 4: 'L' is not declared"},
        {HEAD ".entry k() { L: L: ret; }", "line 4: 'L' is declared twice"},
        {HEAD ".global .u32 a;\n.global .u32 a;", "line 5: 'a' is declared twice"},
        {HEAD ".global .u32 a[2] = {1,2,3};", "line 4: 'a' has more initial values than elements"},
        {HEAD ".global .u32 a[99999999999999];",
         "line 4: 99999999999999 is more than 1099511627776"},
        {HEAD ".global .u32 a[1099511627776][1099511627776];", "line 4: 'a' is too large"},
        {HEAD ".global .u32 a = 0x1ffffffffffffffff;",
         "line 4: not a PTX token: '0x1ffffffffffffffff'"},
        {HEAD ".entry k() { .reg .u64 %d; mov.u64 %d, k[1]; }",
         "line 4: 'k' is indexed, and is no variable in memory"},
        {HEAD ".global .u32 a[2]; .entry k() { .reg .u32 %r; ld.global.u32 %r, a[%r]; }",
         "line 4: '%r' where a number should stand"},
        {HEAD ".global .u32 a[2]; .entry k() { .reg .u32 %r; ld.global.u32 %r, a[1; }",
         "line 4: ';' where ']' should stand"},
        {HEAD ".nonsense;", "line 4: unknown directive '.nonsense'"},
        {HEAD ".entry k() .explicitcluster { ret; }",
         "line 4: unknown directive '.explicitcluster'"},
        {HEAD "/* never closed", "line 4: not a PTX token: ''"},
        {".version 8.0\n.target sm_90\n.address_size 32\n",
         "line 3: .address_size 32 is not supported, only 64"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ptx_module *m = NULL;
        struct error why;
        assert_int_equal(ptx_read(cases[i].text, strlen(cases[i].text), &m, &why),
                         PROTO_ERROR_INVALID_PTX);
        assert_null(m);
        assert_string_equal(why.text, cases[i].error);
    }
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *before, *repeat;
    } cases[] = {{HEAD ".global .u32 a = ", "{"},
                 {HEAD ".global .u64 a = ", "generic("},
                 {HEAD ".entry k() ", "{"},
                 {HEAD ".entry k() { mov.u32 a, ", "{"},
                 {HEAD ".entry k() { mov.u32 a, ", "1|"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = strlen(cases[i].before), step = strlen(cases[i].repeat);
        char *text = malloc(n + step * 100000);
        assert_non_null(text);
        memcpy(text, cases[i].before, n);
        for (size_t j = 0; j < 100000; j++)
            memcpy(text + n + j * step, cases[i].repeat, step);
        struct ptx_module *m;
        struct error why;
        assert_int_equal(ptx_read(text, n + step * 100000, &m, &why), PROTO_ERROR_INVALID_PTX);
        free(text);
    }
}

static void memory_that_is_not_allowed_is_an_error_of_its_own(void **state)
{
    (void)state;
    struct ptx_module *m = NULL;
    struct error why = {0};
    assert_int_equal(ptx_read(sample, strlen(sample), &m, &why), 0);
    size_t needed = m->memory;
    ptx_destroy(m);
    assert_int_equal(why.number, 0);
    struct ptx_limits limits = {.bytes = needed / 2};
    assert_int_equal(ptx_read_within(sample, strlen(sample), &limits, &m, &why),
                     PROTO_ERROR_OUT_OF_MEMORY);
    assert_null(m);
    assert_int_equal(why.number, PROTO_ERROR_OUT_OF_MEMORY);
    char room[32];
    snprintf(room, sizeof room, "%zu bytes", needed / 2);
    assert_non_null(strstr(why.text, room));
    /* Not even the root of the tree. */
    limits.bytes = 1;
    assert_int_equal(ptx_read_within(sample, strlen(sample), &limits, &m, &why),
                     PROTO_ERROR_OUT_OF_MEMORY);
    /* The first failure is told. */
    limits.bytes = 1 << 20;
    assert_int_equal(ptx_read_within("hello", 5, &limits, &m, &why), PROTO_ERROR_INVALID_PTX);
}

static double thread_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* A kernel with 250 nested blocks. In the innermost one a name of `length` bytes, which ends with
 * digits, stands in `uses` instructions. */
static char *make_nested_text(size_t length, unsigned uses, size_t *bytes)
{
    char *text = malloc(1024 + uses * (length + 16)), *at = text;
    assert_non_null(text);
    at += sprintf(at, HEAD ".visible .entry k()\n");
    at = (char *)memset(at, '{', 250) + 250;
    at += sprintf(at, ".reg .u32 %%x;\n");
    for (unsigned i = 0; i < uses; i++) {
        at += sprintf(at, "mov.u32 %%x, %%");
        at = (char *)memset(at, 'b', length - 9) + length - 9;
        at += sprintf(at, "11111111;\n");
    }
    at = (char *)memset(at, '}', 250) + 250;
    *bytes = (size_t)(at - text);
    return text;
}

static void a_name_may_have_64_kib(void **state)
{
    (void)state;
    struct ptx_module *m = NULL;
    struct error why = {0};
    size_t bytes;
    char *text = make_nested_text(65536, 1, &bytes);
    assert_int_equal(ptx_read(text, bytes, &m, &why), 0);
    ptx_destroy(m);
    free(text);
    text = make_nested_text(65537, 1, &bytes);
    assert_int_equal(ptx_read(text, bytes, &m, &why), PROTO_ERROR_INVALID_PTX);
    assert_non_null(strstr(why.text, "has 65537 bytes, and a name may have 65536"));
    free(text);
}

/* Each scope around a use is searched, eight times for a name that ends with eight digits. With the
 * whole name hashed each time this takes many seconds. */
static void a_long_name_in_nested_blocks_is_read_once_for_all_blocks(void **state)
{
    (void)state;
    struct ptx_module *m = NULL;
    struct error why = {0};
    size_t bytes;
    char *text = make_nested_text(65536, 64, &bytes);
    double began = thread_seconds();
    assert_int_equal(ptx_read(text, bytes, &m, &why), 0);
    double took = thread_seconds() - began;
    ptx_destroy(m);
    free(text);
    if (took > 1.0)
        fail_msg("%zu bytes of text took %.1f s", bytes, took);
}

static uint32_t refuse_third(void *context, struct error *why)
{
    return ++*(int *)context == 3 ? error_set(why, PROTO_ERROR_SERVER_RESOURCES, "late") : 0;
}

/* It asks while it reads, and asks no more once it was told to end. */
static void the_caller_can_end_a_reading(void **state)
{
    (void)state;
    struct ptx_module *m = NULL;
    struct error why = {0};
    size_t bytes;
    int asked = 0;
    const struct ptx_limits limits = {.bytes = SIZE_MAX, .ask = refuse_third, .context = &asked};
    char *text = make_nested_text(16, 2000, &bytes);
    assert_int_equal(ptx_read(text, bytes, &m, &why), 0);
    ptx_destroy(m);
    assert_int_equal(ptx_read_within(text, bytes, &limits, &m, &why), PROTO_ERROR_SERVER_RESOURCES);
    assert_null(m);
    assert_string_equal(why.text, "late");
    assert_int_equal(asked, 3);
    free(text);
}

/* Exact-size heap copies, so that ASan sees a read past either end. */
static void try_copy(const char *text, size_t length)
{
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    struct ptx_module *m;
    struct error why;
    uint32_t error = ptx_read(copy, length, &m, &why);
    if (!error)
        ptx_destroy(m);
    else
        assert_true(why.text[0] != '\0');
    free(copy);
}

static void truncated_and_mutated_text_never_crashes(void **state)
{
    (void)state;
    size_t length = strlen(sample);
    for (size_t n = 0; n < length; n++)
        try_copy(sample, n);
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof(sample)];
        memcpy(text, sample, sizeof(sample));
        for (int k = 0; k < 1 + round % 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t at = (seed >> 33) % length;
            text[at] = round & 1 ? (char)(seed >> 24) : sample[(seed >> 20) % length];
        }
        try_copy(text, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_kind_value_and_line),
        cmocka_unit_test(a_quote_inside_a_string_is_no_token),
        cmocka_unit_test(header_variables_and_functions_are_read),
        cmocka_unit_test(parameters_are_laid_out_as_the_driver_does),
        cmocka_unit_test(operands_are_resolved_with_their_place),
        cmocka_unit_test(errors_name_line_and_culprit),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(the_caller_can_end_a_reading),
        cmocka_unit_test(a_name_may_have_64_kib),
        cmocka_unit_test(a_long_name_in_nested_blocks_is_read_once_for_all_blocks),
        cmocka_unit_test(memory_that_is_not_allowed_is_an_error_of_its_own),
        cmocka_unit_test(truncated_and_mutated_text_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
