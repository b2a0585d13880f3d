/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* How managed variables leave a text. tests/integration has programs that use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/cuda/driver/managed/managed_code.h"
#include "common/cuda/ptx.h"
#include "common/error.h"

#define HEAD    ".version 7.0\n.target sm_70\n.address_size 64\n"
#define MANAGED ".visible .global .attribute(.managed)"

static unsigned lines_of(const char *text, size_t length)
{
    unsigned lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

static void make(const char *text, struct managed_code *code)
{
    assert_int_equal(managed_code_make(text, strlen(text), code), 0);
}

static void variables_leave_the_text(void **state)
{
    static const char text[] = HEAD MANAGED " .align 1 .b8 first[3] = {7, 8};\n" MANAGED
                                            "\n  .align 16 .u32 second = 0x11223344;\n"
                                            ".global .u32 other = 1;\n"
                                            ".entry k()\n{\n .reg .u32 %r; .reg .u64 %d;\n"
                                            " mov.u64 %d, second+4;\n ld.global.u32 %r, [second];\n"
                                            " st.global.u8 [first+2], %r;\n"
                                            " ld.global.u32 %r, [other];\n ret;\n}\n";
    struct managed_code code;
    struct ptx_module *tree;
    struct error why;
    (void)state;
    make(text, &code);
    assert_non_null(code.text);
    assert_int_equal(lines_of(code.text, code.length), lines_of(text, sizeof text - 1));
    assert_int_equal(code.count, 2);
    assert_string_equal(code.variables[0].name, "first");
    assert_int_equal(code.variables[0].offset, 0);
    assert_int_equal(code.variables[0].bytes, 3);
    assert_string_equal(code.variables[1].name, "second");
    assert_int_equal(code.variables[1].offset, 16);
    assert_int_equal(code.initial_bytes, 20);
    assert_memory_equal(code.initial, "\7\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x44\x33\x22\x11", 20);
    /* It is a text that the server reads, with our variable and the one that is not managed. */
    assert_int_equal(ptx_read(code.text, code.length, &tree, &why), 0);
    assert_int_equal(tree->variable_count, 2);
    assert_string_equal(tree->variables[0]->name, code.base);
    assert_string_equal(tree->variables[1]->name, "other");
    ptx_destroy(tree);
    assert_non_null(strstr(code.text, ", 20; mov.u64 %d, %gpushare_managed0_0;"));
    assert_non_null(strstr(code.text, "st.global.u8 [%gpushare_managed0_2+2], %r;"));
    managed_code_free(&code);
    assert_null(code.text);
}

static void our_names_are_not_the_texts(void **state)
{
    static const char text[] = HEAD MANAGED " .u32 gpushare_managed0_base;\n";
    struct managed_code code;
    (void)state;
    make(text, &code);
    assert_string_equal(code.base, "gpushare_managed1_base");
    assert_string_equal(code.variables[0].name, "gpushare_managed0_base");
    managed_code_free(&code);
}

static void others_stay(void **state)
{
    static const char *const texts[] = {
        HEAD ".global .u32 plain;\n// .managed\n",
        HEAD ".extern .global .attribute(.managed) .u32 elsewhere;\n",
        HEAD ".global .u32 plain;\n" MANAGED " .u64 holds = plain;\n",
        HEAD MANAGED " .u32 held;\n.global .u64 plain = held;\n",
        HEAD MANAGED " .align 8192 .u32 aligned;\n",
        HEAD MANAGED " .u32 two, together;\n",
        HEAD MANAGED " .u32 nonsense nonsense;\n",
        HEAD ".entry k()\n{\n .global .attribute(.managed) .u32 inside;\n ret;\n}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct managed_code code;
        make(texts[i], &code);
        if (code.text)
            fail_msg("%s becomes %s", texts[i], code.text);
        managed_code_free(&code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_leave_the_text),
        cmocka_unit_test(our_names_are_not_the_texts),
        cmocka_unit_test(others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
