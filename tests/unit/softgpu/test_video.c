/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Video instructions, and others of parts of registers. Each result was worked out by hand from the
 * PTX ISA's pseudo-code, and the last video row is what another project's tests (ZLUDA, vshr_clamp)
 * expect of NVIDIA's driver.
 */
#include "tests/unit/softgpu/kernel.h"

/* Bytes, the lowest first: a 01 7f ff 80, b ff 7f 02 01, c 10 22 33 44. */
enum { A = 0x80ff7f01, B = 0x01027fff, C = 0x44332210 };

struct row {
    const char *text;
    uint32_t a, b, c, d;
};

static const struct row rows[] = {
    {"vadd4.u32.u32.u32 %d, %a, %b, %c", A, B, C, 0x8101fe00},
    {"vadd4.u32.u32.u32.sat %d, %a, %b, %c", A, B, C, 0x81fffeff},
    {"vadd4.s32.s32.s32.sat %d, %a, %b, %c", A, B, C, 0x81017f00},
    {"vsub4.u32.u32.u32.sat %d, %a, %b, %c", A, B, C, 0x7ffd0000},
    {"vsub4.s32.s32.s32.sat %d, %a, %b, %c", A, B, C, 0x80fd0002},
    {"vavrg4.u32.u32.u32 %d, %a, %b, %c", A, B, C, 0x41817f80},
    {"vavrg4.s32.s32.s32 %d, %a, %b, %c", A, B, C, 0xc0017f00},
    {"vabsdiff4.u32.u32.u32.add %d, %a, %b, %c", A, B, C, 0x4433248a},
    {"vabsdiff4.s32.s32.s32 %d, %a, %b, %c", A, B, C, 0x81030002},
    {"vmin4.s32.s32.s32 %d, %a, %b, %c", A, B, C, 0x80ff7fff},
    {"vmax4.s32.s32.s32 %d, %a, %b, %c", A, B, C, 0x01027f01},
    {"vset4.u32.u32.lt %d, %a, %b, %c", A, B, C, 0x00000001},
    {"vset4.s32.s32.gt.add %d, %a, %b, %c", A, B, C, 0x44332211},
    {"vadd4.u32.u32.u32 %d.b20, %a, %b, %c", A, B, C, 0x44012200},
    {"vadd4.u32.u32.u32 %d, %a.b0000, %b.b4567, %c", A, B, C, 0x00800302},
    {"vadd2.u32.u32.u32 %d, %a, %b, %c", A, B, C, 0x8201ff00},
    {"vadd2.s32.s32.s32.sat %d, %a, %b, %c", A, B, C, 0x82017fff},
    {"vsub2.u32.u32.u32.sat %d, %a, %b, %c", A, B, C, 0x7ffd0000},
    {"vabsdiff2.u32.u32.u32.add %d, %a, %b, %c", A, B, C, 0x4433a30b},
    {"vavrg2.s32.s32.s32 %d, %a, %b, %c", A, B, C, 0xc1007f80},
    {"vmin2.s32.s32.s32 %d.h1, %a, %b, %c", A, B, C, 0x80ff2210},
    {"vset2.u32.u32.ne %d, %a, %b, %c", A, B, C, 0x00010001},
    {"vadd2.u32.u32.u32 %d, %a.h11, %b.h23, %c", A, B, C, 0x00fe8201},
    {"vadd.s32.u32.s32.sat %d, %a.b2, %b.h0", A, B, C, 0x000080fe},
    {"vsub.u32.u32.u32.sat %d, %a.b0, %b.b0", A, B, C, 0},
    {"vsub.s32.s32.s32.sat %d.b3, %a.b3, %b.b3, %c", A, B, C, 0x80332210},
    {"vabsdiff.s32.s32.s32 %d.h0, %a.b0, %b.b2, %c", A, B, C, 0x44330001},
    {"vmin.s32.s32.s32.sat.add %d, %a, %b, %c", A, B, C, 0xc532a111},
    {"vmax.u32.u32.u32.min %d, %a, %b, %c", A, B, C, C},
    {"vshl.u32.u32.u32.clamp %d, %a.b1, %b.b3", A, B, C, 0xfe},
    {"vshl.u32.u32.u32.clamp.sat %d, %a, %b.b2", A, B, C, 0xffffffff},
    {"vshl.u32.u32.u32.clamp %d, %a, %b.b0", A, B, C, 0},
    {"vshr.s32.s32.u32.wrap %d, %a, %b.b0", A, B, C, 0xffffffff},
    {"vmad.u32.u32.u32.shr7 %d, %a.b1, %b.b1, %c", A, B, C, 0x008866c2},
    {"vmad.s32.s32.s32.po.sat %d, %a.b3, %b.h1, %c", A, B, C, 0x4432a111},
    {"vset.s32.s32.ge.max %d, %a, %b, %c", A, B, C, C},
    {"vset.s32.u32.lt %d, %a, %b", A, B, C, 1},
    {"vshr.u32.u32.u32.clamp.add %d, %a, %b, %c", 0x8e2da590, 16, 0x248a9f70, 0x248b2d9d},
};

/* Puts one instruction into a kernel of three numbers. */
static void kernel_text(char *text, size_t bytes, const char *instruction)
{
    snprintf(text, bytes,
             PTX_HEAD ".visible .entry one(.param .u64 p, .param .u32 x, .param .u32 y, "
                      ".param .u32 z)\n{\n.reg .pred %%p;\n.reg .b16 %%h;\n"
                      ".reg .b32 %%a, %%b, %%c, %%d;\n.reg .b64 %%o;\n"
                      ".reg .f32 %%f;\n.reg .f64 %%e;\n"
                      "ld.param.u64 %%o, [p];\nld.param.u32 %%a, [x];\nld.param.u32 %%b, [y];\n"
                      "ld.param.u32 %%c, [z];\n%s;\nst.global.u32 [%%o], %%d;\nret;\n}\n",
             instruction);
}

static void run_row(const struct row *row)
{
    char text[1024];
    uint32_t out = 0;
    struct {
        void *out;
        uint32_t a, b, c;
    } params = {&out, row->a, row->b, row->c};
    struct kernel_launch launch = {.name = "one", .grid = 1, .threads = 1, .params = &params};
    struct fault fault = {0};
    kernel_text(text, sizeof text, row->text);
    struct module *module = kernel_module(text);
    kernel_allow(&out, sizeof out, MEMORY_READ | MEMORY_WRITE);
    assert_int_equal(kernel_run(module, &launch, &fault), BLOCK_DONE);
    if (out != row->d)
        fail_msg("%s: %#x, not %#x", row->text, out, row->d);
    module_destroy(module);
    kernel_free();
    kernel_forget();
}

static void results_are_those_of_the_isa(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_row(&rows[i]);
}

/* .relu of integers, which CUDA's DPX functions use. */
static void bounds_may_stop_at_zero(void **state)
{
    static const struct row bounds[] = {
        {"min.s32.relu %d, %a, %b", A, B, 0, 0},
        {"max.s32.relu %d, %a, %b", A, B, 0, B},
        {"max.s32.relu %d, %a, %b", 0x80000000, 0xffffffff, 0, 0},
        {"min.s16x2.relu %d, %a, %b", A, B, 0, 0x00007f01},
        {"max.s16x2.relu %d, %a, %b", A, B, 0, 0x01027fff},
        {"max.s16x2.relu %d, %a, %b", 0x80ff8001, 0x8102fffe, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        run_row(&bounds[i]);
}

/* An instruction that is not understood must not be executed as if it were another one. */
static void others_are_refused_by_name(void **state)
{
    static const struct {
        const char *text, *words;
    } refused[] = {
        {"vadd4.u32.u32.u32 %d, %a.h10, %b, %c", "vadd4"},
        {"vadd4.u32.u32.u32 %d, %a.b3218, %b, %c", ".b3218"},
        {"vadd4.u32.u32.u32.sat.add %d, %a, %b, %c", "vadd4"},
        {"vadd.u32.u32.u32 %d, %a.b4, %b", ".b4"},
        {"vadd3.u32.u32.u32 %d, %a, %b, %c", "vadd3"},
        {"vavrg.u32.u32.u32 %d, %a, %b", "vavrg"},
        {"vshl.u32.u32.u32 %d, %a, %b", ".clamp"},
        {"vshl.u32.u32.s32.clamp %d, %a, %b", "'vshl' takes its count as .u32 alone"},
        {"vshr.s32.s32.s32.wrap %d, %a, %b", "'vshr' takes its count as .u32 alone"},
        {"vset4.u32.u32 %d, %a, %b, %c", "comparison"},
        {"vmin2.u32.u32.u32.max %d, %a, %b, %c", "max"},
        {"add.u32 %d, %a.b0, %b", "'add' takes no part of '%a'"},
        {"add.u32 %d.h0, %a, %b", "'add' takes no part of '%d'"},
        {"max.u32.relu %d, %a, %b", "relu"},
        {"add.u16x2.relu %d, %a, %b", "relu"},
        {"add.u32 %d, %a + 1, %b", "'add' takes no sum"},
        {"red.global.add.v8.f32 [%o], {%f, %f, %f, %f, %f, %f, %f, %f}",
         "a vector of 'red' has 128 bits at most"},
        {"atom.global.add.noftz.v8.bf16x2 {%d, %d, %d, %d, %d, %d, %d, %d}, [%o], "
         "{%a, %a, %a, %a, %a, %a, %a, %a}",
         "a vector of 'atom' has 128 bits at most"},
        {"atom.global.add.v2.f64 {%e, %e}, [%o], {%e, %e}", "floats of at most 32 bits"},
        {"red.shared.add.v2.f32 [%o], {%f, %f}", "vectors of 'red' are for global memory alone"},
        {"mov.b32 %d, {%h + 1, %h}", "'mov' takes no sum; add to '%h' before it"},
        {"mov.b32 {%h + 1, %h}, %a", "'mov' takes no sum"},
        {"atom.global.add.noftz.v2.f16x2 {%d, %c}, [%o], {%a + 1, %b}", "'atom' takes no sum"},
        {"st.global.v2.u32 [%o], {%a + 1, %b}", "'st' takes no sum"},
        {"ld.global.u32 %d - 4, [%o + 4]", "'ld' takes no sum"},
        {"mov.u32 %d, %tid.x + 1", "'mov' takes no sum"},
        {"selp.b32 %d, %a, %b, %p + 1", "'selp' takes no sum"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[1024];
        struct module *module = NULL;
        struct error why = {0};
        kernel_text(text, sizeof text, refused[i].text);
        assert_int_not_equal(module_load(text, strlen(text), &module, &why), 0);
        if (!strstr(why.text, refused[i].words))
            fail_msg("%s: %s", refused[i].text, why.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_the_isa),
        cmocka_unit_test(bounds_may_stop_at_zero),
        cmocka_unit_test(others_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
