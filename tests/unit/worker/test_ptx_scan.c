/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Whether a text that the reader does not understand may declare memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/worker/image/ptx_scan.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static uint32_t line_of(const char *text)
{
    return ptx_scan_declaration(text, strlen(text));
}

static void instructions_and_pointers_declare_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD ".visible .entry k(.param .u64 .ptr .global .align 8 p)\n{\n ld.global.u32 a, [b];\n}",
        HEAD ".entry k()\n{\n.loc 1 2 3\n ld.const.u32 a, [b];\n@p st.global.u32 [a], b;\n"
             "@!%p1 ld.volatile.global.v4.u32 {a,b,c,d}, [e];\nL: red.global.add.u32 [a], 1;\n"
             "bra L;\n{ cp.async.bulk.shared::cluster.global [a], [b], 1, [c]; }\n}",
        HEAD "// .global .u32 a;\n/* .const .u32 b; */ .file 1 \".global .u32 a;\"\n",
        HEAD "// .global .u32 a;\r\n// .const .u32 b;\r",
        HEAD ".shared .u32 s;\n.func f() { .local .u32 l; .reg .u32 r; }",
        "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (line_of(texts[i]))
            fail_msg("text %zu, line %u", i, line_of(texts[i]));
}

static void variables_are_found_wherever_they_hide(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD "\n.global .u32 a;",
        HEAD "\n.visible.global .u32 a;",
        HEAD "\n.const .u32 a;",
        HEAD "\n.visible .entry k() { .global .u32 a; }",
        HEAD "\n.visible .entry k() { ret ; .global .u32 a; }",
        HEAD "\n.visible .entry k() { ret .global .u32 a; }",
        HEAD "\n.target sm_90.global .u32 a;",
        HEAD "\n.entry k() { call f, L.global .u32 a; }",
        HEAD "\n.entry k() { L M.global .u32 a; }",
        HEAD "\n.tex .u32 a;",
        HEAD "\n#define X .glo ## bal",
        HEAD "\n.pragma \"a\\\"; .global .u32 a; // \"",
        HEAD "\n/* never ends .global",
        HEAD "\n// a comment\r.global .u32 a;",
        HEAD "\n.entry k() { .pragma \"x\".global .u32 a; }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (line_of(texts[i]) != 5)
            fail_msg("text %zu: line %u", i, line_of(texts[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_and_pointers_declare_nothing),
        cmocka_unit_test(variables_are_found_wherever_they_hide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
