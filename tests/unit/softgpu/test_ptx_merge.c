/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Several PTX texts become one: whose definition counts, which names change, and what is refused.
 * The software GPU says what the text computes. */
#include "tests/unit/softgpu/kernel.h"

#include <inttypes.h>
#include <time.h>

#include "common/cuda/cuda_driver.h"
#include "common/cuda/link/ptx_merge.h"
#include "common/cuda/ptx.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define KERNEL(name, body)                                                                         \
    ".visible .entry " name "(.param .u64 out)\n{\n\t.reg .u32 %r<9>;\n\t.reg .u64 %d<9>;\n"       \
    "\tld.param.u64 %d1, [out];\n" body "\tst.global.u32 [%d1], %r1;\n\tret;\n}\n"
/* %r1 = f(%r1) */
#define CALL(f)                                                                                    \
    "\t{\n\t.param .b32 a;\n\t.param .b32 v;\n\tst.param.b32 [a], %r1;\n\tcall.uni (v), " f        \
    ", (a);\n\tld.param.b32 %r1, [v];\n\t}\n"
#define PROTO(linkage, f) linkage ".func (.param .b32 v) " f "(.param .b32 a)"
#define FUNC(linkage, f, op)                                                                       \
    PROTO(linkage, f)                                                                              \
    "\n{\n\t.reg .u32 %r<9>;\n\tld.param.u32 %r1, [a];\n\t" op                                     \
    " %r1;\n\tst.param.b32 [v], %r1;\n\tret;\n}\n"
#define ADD(n) "add.u32 %r1, " n ","

static struct error why;

static uint32_t offer(struct ptx_merge *merge, const char *text, const char *name)
{
    bool whole;
    const struct ptx_merge_input input = {text, strlen(text), name};
    uint32_t error = ptx_merge_offer(merge, &input, &whole, &why);
    if (!error)
        assert_int_equal(ptx_merge_accept(merge), 0);
    return error;
}

/* The text that the inputs make, malloc'ed. NULL: they were refused, with *error. */
static char *join(const char *const *texts, uint32_t *error)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    struct ptx_merge *merge = ptx_merge_create();
    char *text = NULL;
    size_t length = 0;
    *error = 0;
    for (int i = 0; texts[i] && !*error; i++)
        *error = offer(merge, texts[i], names[i]);
    if (!*error)
        *error = ptx_merge_finish(merge, &text, &length, &why);
    assert_true(*error ? !text : strlen(text) == length);
    ptx_merge_destroy(merge);
    return text;
}

#define JOIN(...)                                                                                  \
    ({                                                                                             \
        uint32_t error_;                                                                           \
        char *text_ = join((const char *const[]){__VA_ARGS__, NULL}, &error_);                     \
        if (!text_) {                                                                              \
            fail_msg("%u: %s", error_, why.text);                                                  \
            abort(); /* not reached, which the analyser can't see */                               \
        }                                                                                          \
        text_;                                                                                     \
    })

#define REFUSE(number, ...)                                                                        \
    do {                                                                                           \
        uint32_t error_;                                                                           \
        char *text_ = join((const char *const[]){__VA_ARGS__, NULL}, &error_);                     \
        assert_null(text_);                                                                        \
        assert_int_equal(error_, number);                                                          \
    } while (0)

static void says(const char *const *words)
{
    for (; *words; words++)
        if (!strstr(why.text, *words))
            fail_msg("'%s' is not in: %s", *words, why.text);
}
#define SAYS(...) says((const char *const[]){__VA_ARGS__, NULL})

/* The word that the kernel writes. Frees the text. */
static uint32_t run(char *text, const char *kernel)
{
    uint32_t word = 0xffffffff;
    uint32_t *out = &word;
    struct fault fault;
    struct kernel_launch launch = {
        .name = kernel, .grid = 1, .threads = 1, .shared = 1024, .params = &out};
    kernel_forget();
    kernel_allow(&word, sizeof word, MEMORY_READ | MEMORY_WRITE);
    struct module *module = kernel_module(text);
    assert_int_equal(kernel_run(module, &launch, &fault), BLOCK_DONE);
    module_destroy(module);
    kernel_free();
    free(text);
    return word;
}

#define USER HEAD PROTO(".extern ", "next") ";\n" KERNEL("k", "\tmov.u32 %r1, 40;\n" CALL("next"))

static void a_function_of_another_input_is_called(void **state)
{
    (void)state;
    assert_int_equal(run(JOIN(USER, HEAD FUNC(".visible ", "next", ADD("2"))), "k"), 42);
    assert_int_equal(run(JOIN(HEAD FUNC(".visible ", "next", ADD("3")), USER), "k"), 43);
    /* Declared twice, and once where it is defined. */
    assert_int_equal(
        run(JOIN(USER, HEAD PROTO(".extern ", "next") ";\n",
                 HEAD PROTO(".visible ", "next") ";\n" FUNC(".visible ", "next", ADD("4"))),
            "k"),
        44);
}

/* Each input's own helper and own variable is the one that its code uses. */
static void own_names_of_inputs_stay_apart(void **state)
{
    static const char one[] =
        HEAD ".global .align 4 .u32 state = 1;\n" FUNC("", "helper", ADD("10"))
            KERNEL("k1", "\tld.global.u32 %r1, [state];\n" CALL("helper"));
    static const char two[] =
        HEAD ".global .align 4 .u32 state = 2;\n" FUNC("", "helper", ADD("20"))
            KERNEL("k2", "\tmov.u64 %d2, state;\n\tld.global.u32 %r1, [%d2];\n" CALL("helper"));
    (void)state;
    assert_int_equal(run(JOIN(one, two), "k1"), 11);
    assert_int_equal(run(JOIN(one, two), "k2"), 22);
    assert_int_equal(run(JOIN(two, one), "k1"), 11);
    assert_int_equal(run(JOIN(two, one), "k2"), 22);
    /* A merged text may be an input. */
    char *made = JOIN(one, two);
    static const char three[] =
        HEAD FUNC("", "helper", ADD("30")) KERNEL("k3", "\tmov.u32 %r1, 3;\n" CALL("helper"));
    assert_int_equal(run(JOIN(three, made), "k2"), 22);
    assert_int_equal(run(JOIN(three, made), "k3"), 33);
    assert_int_equal(run(JOIN(made, three), "k3"), 33);
    free(made);
}

/* A name that is one input's own gives way to a common one, whichever comes first. */
static void an_own_name_gives_way_to_a_common_one(void **state)
{
    static const char own[] =
        HEAD FUNC("", "next", ADD("100")) KERNEL("own", "\tmov.u32 %r1, 1;\n" CALL("next"));
    static const char common[] = HEAD FUNC(".visible ", "next", ADD("2"));
    (void)state;
    assert_int_equal(run(JOIN(own, common, USER), "own"), 101);
    assert_int_equal(run(JOIN(own, common, USER), "k"), 42);
    assert_int_equal(run(JOIN(USER, own, common), "own"), 101);
    assert_int_equal(run(JOIN(USER, own, common), "k"), 42);
}

static void a_weak_definition_gives_way(void **state)
{
    static const char weak[] = HEAD FUNC(".weak ", "next", ADD("5"));
    static const char other[] = HEAD FUNC(".weak ", "next", ADD("6"));
    static const char strong[] = HEAD FUNC(".visible ", "next", ADD("7"));
    (void)state;
    assert_int_equal(run(JOIN(USER, weak), "k"), 45);
    assert_int_equal(run(JOIN(USER, weak, other), "k"), 45);
    assert_int_equal(run(JOIN(USER, weak, strong), "k"), 47);
    assert_int_equal(run(JOIN(strong, weak, USER), "k"), 47);
    /* Kernels of templates are weak. */
    static const char kernel[] = HEAD ".weak .entry t(.param .u64 out)\n{\n\tret;\n}\n";
    free(JOIN(kernel, kernel));
}

static void the_largest_common_variable_stays(void **state)
{
    static const char small[] = HEAD ".common .global .align 4 .u32 c;\n";
    static const char large[] = HEAD ".common .global .align 4 .u32 c[9];\n";
    static const char initial[] = HEAD ".common .global .align 4 .u32 c[9] = {8};\n";
    static const char strong[] = HEAD ".visible .global .align 4 .u32 c[9] = {9};\n";
    static const char user[] =
        HEAD ".extern .global .align 4 .u32 c[9];\n" KERNEL("k", "\tld.global.u32 %r1, [c];\n");
    (void)state;
    char *text = JOIN(small, large, user);
    assert_non_null(strstr(text, "c[9]"));
    free(text);
    assert_int_equal(run(JOIN(small, initial, user), "k"), 8);
    assert_int_equal(run(JOIN(user, initial, small), "k"), 8);
    assert_int_equal(run(JOIN(large, strong, user), "k"), 9);
    REFUSE(CUDA_ERR_INVALID_SOURCE, small, strong);
    REFUSE(CUDA_ERR_INVALID_SOURCE, initial, initial);
    REFUSE(CUDA_ERR_INVALID_SOURCE, initial, HEAD ".common .global .align 4 .u32 c[10];\n");
}

/* `first` names `second`, which stands in the other input and names `third`. */
static void initial_values_lead_through_inputs(void **state)
{
    static const char one[] = HEAD ".extern .global .align 8 .u64 second;\n"
                                   ".visible .global .align 8 .u64 first = generic(second);\n"
                                   ".visible .global .align 4 .u32 third[2] = {70, 71};\n" KERNEL(
                                       "k", "\tld.global.u64 %d2, [first];\n\tld.u64 %d3, [%d2];\n"
                                            "\tld.u32 %r1, [%d3];\n");
    static const char two[] = HEAD ".extern .global .align 4 .u32 third[2];\n"
                                   ".visible .global .align 8 .u64 second = generic(third)+4;\n";
    (void)state;
    assert_int_equal(run(JOIN(one, two), "k"), 71);
    assert_int_equal(run(JOIN(two, one), "k"), 71);
}

static void variables_may_name_each_other(void **state)
{
    static const char one[] =
        HEAD ".extern .global .align 8 .u64 b;\n"
             ".visible .global .align 8 .u64 a[2] = {generic(b), 17};\n" KERNEL(
                 "k", "\tld.global.u64 %d2, [a];\n\tld.u64 %d3, [%d2];\n"
                      "\tld.u32 %r1, [%d3+8];\n");
    static const char two[] = HEAD ".extern .global .align 8 .u64 a[2];\n"
                                   ".visible .global .align 8 .u64 b = generic(a);\n";
    (void)state;
    assert_int_equal(run(JOIN(one, two), "k"), 17);
    assert_int_equal(run(JOIN(two, one), "k"), 17);
    /* Through a variable that is one input's own. */
    static const char own[] =
        HEAD ".extern .global .align 8 .u64 b;\n.global .align 8 .u64 own[2] = {generic(b), 18};\n"
             ".visible .global .align 8 .u64 a = generic(own);\n" KERNEL(
                 "k", "\tld.global.u64 %d2, [own];\n\tld.u64 %d3, [%d2];\n"
                      "\tld.u64 %d4, [%d3];\n\tld.u32 %r1, [%d4+8];\n");
    static const char other[] = HEAD ".extern .global .align 8 .u64 a;\n"
                                     ".global .align 8 .u64 own = 1;\n"
                                     ".visible .global .align 8 .u64 b = generic(a);\n";
    assert_int_equal(run(JOIN(other, own), "k"), 18);
    char *text = JOIN(own, other);
    assert_non_null(strstr(text, ".visible .global .align 8 .u64 own[2]"));
    assert_int_equal(run(text, "k"), 18);
}

static void a_table_names_a_function_of_another_input(void **state)
{
    static const char table[] = HEAD PROTO(".extern ", "next") ";\n" FUNC(
        "", "other", ADD("9")) ".visible .global .align 8 .u64 table[2] = {next, other};\n";
    static const char user[] =
        HEAD FUNC("", "other", ADD("1000")) ".extern .global .align 8 .u64 table[2];\n" KERNEL(
            "k", "\tmov.u32 %r1, 40;\n\tld.global.u64 %d2, [table+8];\n\t{\n\t.param .b32 a;\n"
                 "\t.param .b32 v;\n\tst.param.b32 [a], %r1;\n"
                 "\tp : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                 "\tcall (v), %d2, (a), p;\n\tld.param.b32 %r1, [v];\n\t}\n" CALL("other"));
    static const char next[] = HEAD FUNC(".visible ", "next", ADD("2"));
    (void)state;
    assert_int_equal(run(JOIN(user, table, next), "k"), 1049);
    assert_int_equal(run(JOIN(next, table, user), "k"), 1049);
}

/* All names of the memory that a launch sizes begin at one place. */
static void arrays_that_launches_size_are_one(void **state)
{
    static const char one[] =
        HEAD ".extern .shared .align 4 .b8 dyn[];\n" PROTO(".extern ", "fill") ";\n" KERNEL(
            "k", "\tmov.u32 %r1, 55;\n" CALL("fill") "\tld.shared.u32 %r1, [dyn];\n");
    static const char two[] =
        HEAD ".extern .shared .align 16 .b32 dyn[];\n"
             ".visible .func (.param .b32 v) fill(.param .b32 a)\n{\n\t.reg .u32 %r<3>;\n"
             "\tld.param.u32 %r1, [a];\n\tst.shared.u32 [dyn], %r1;\n\tst.param.b32 [v], %r1;\n"
             "\tret;\n}\n";
    (void)state;
    assert_int_equal(run(JOIN(one, two), "k"), 55);
    char *text = JOIN(one, two);
    assert_null(strstr(text, ".align 4 .b8 dyn"));
    assert_non_null(strstr(text, ".align 16 .b32 dyn"));
    free(text);
}

static void variables_of_one_statement_part(void **state)
{
    static const char both[] = HEAD ".weak .global .align 4 .u32 a = 1, b[2] = {2, 3}, c = 4;\n";
    static const char user[] = HEAD ".visible .global .align 4 .u32 b[2] = {20, 30};\n" KERNEL(
        "k", "\tld.global.u32 %r1, [b+4];\n");
    (void)state;
    assert_int_equal(run(JOIN(both, user), "k"), 30);
    assert_int_equal(run(JOIN(user, both), "k"), 30);
}

static void places_in_a_source_are_left_out(void **state)
{
    static const char debug[] =
        ".version 7.0\n.target sm_70, debug\n.address_size 64\n.file 1 \"a.cu\"\n" PROTO(
            ".extern ",
            "next") ";\n" KERNEL("k",
                                 "\t.loc 1 7 3\n\tmov.u32 %r1, 40;\n\t.loc 1 8 3, "
                                 "function_name $L__info0, inlined_at 1 7 3\n" CALL(
                                     "next")) ".section .debug_str\n{\n$L__info0:\n.b8 107,0\n}\n";
    (void)state;
    char *text = JOIN(debug, HEAD FUNC(".visible ", "next", ADD("2")));
    assert_null(strstr(text, ".loc"));
    assert_null(strstr(text, ".section"));
    assert_null(strstr(text, "debug"));
    assert_int_equal(run(text, "k"), 42);
}

static void version_and_target_are_the_highest(void **state)
{
    (void)state;
    char *text = JOIN(".version 8.1\n.target sm_70\n.address_size 64\n",
                      ".version 7.8\n.target sm_90a\n.address_size 64\n");
    assert_ptr_equal(strstr(text, ".version 8.1\n.target sm_90a\n"), text);
    free(text);
    REFUSE(CUDA_ERR_INVALID_SOURCE, ".version 8.8\n.target sm_100\n.address_size 64\n",
           ".version 8.0\n.target sm_90a\n.address_size 64\n");
    SAYS("second", "sm_90a", "first", "sm_100");
    REFUSE(CUDA_ERR_INVALID_SOURCE, HEAD, ".version 7.0\n.target sm_70, map_f64_to_f32\n");
    SAYS("second", "first");
}

static void printf_is_declared_once(void **state)
{
#define PRINTS(name)                                                                               \
    HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"                 \
         ".visible .func " name "()\n{\n\t.param .b64 f;\n\t.param .b64 a;\n\t.param .b32 r;\n"    \
         "\tcall.uni (r), vprintf, (f, a);\n\tret;\n}\n"
    (void)state;
    char *text = JOIN(PRINTS("one"), PRINTS("two"));
    char *first = strstr(text, ".extern");
    assert_non_null(first);
    assert_null(strstr(first + 1, ".extern"));
    free(text);
}

/* ---- what is refused ---- */

static void two_definitions_are_refused(void **state)
{
    static const char next[] = HEAD FUNC(".visible ", "next", ADD("2"));
    static const char kernel[] = HEAD KERNEL("k", "\tmov.u32 %r1, 1;\n");
    static const char variable[] = HEAD ".visible .global .u32 x = 1;\n";
    (void)state;
    REFUSE(CUDA_ERR_INVALID_SOURCE, next, next);
    SAYS("'next'", "'second'", "'first'");
    REFUSE(CUDA_ERR_INVALID_SOURCE, kernel, kernel);
    REFUSE(CUDA_ERR_INVALID_SOURCE, variable, variable);
    REFUSE(CUDA_ERR_INVALID_SOURCE, variable, HEAD ".visible .func x()\n{\n\tret;\n}\n");
    SAYS("'x'", "'second'", "'first'");
}

static void an_undefined_name_is_refused(void **state)
{
    static const char variable[] =
        HEAD ".extern .global .u32 x;\n" KERNEL("k", "\tld.global.u32 %r1, [x];\n");
    static const char initial[] = HEAD ".extern .global .u32 x;\n.visible .global .u64 y = x;\n";
    (void)state;
    REFUSE(CUDA_ERR_INVALID_SOURCE, USER);
    SAYS("'next'", "'first'");
    REFUSE(CUDA_ERR_INVALID_SOURCE, HEAD, variable);
    SAYS("'x'", "'second'");
    REFUSE(CUDA_ERR_INVALID_SOURCE, initial, HEAD);
    /* An input's own function is nobody else's. */
    REFUSE(CUDA_ERR_INVALID_SOURCE, USER, HEAD FUNC("", "next", ADD("2")));
    /* A declaration that nobody uses needs no definition. */
    free(JOIN(HEAD PROTO(".extern ", "next") ";\n", HEAD ".extern .const .u32 x;\n"));
}

static void what_does_not_fit_is_refused(void **state)
{
    static const char user[] =
        HEAD ".extern .global .u32 x;\n" KERNEL("k", "\tld.global.u32 %r1, [x];\n");
    static const char narrow[] =
        HEAD ".visible .func (.param .b32 v) next(.param .b64 a)\n{\n\tret;\n}\n";
    (void)state;
    REFUSE(CUDA_ERR_INVALID_SOURCE, USER, narrow);
    SAYS("prototype", "'next'", "'second'", "'first'");
    REFUSE(CUDA_ERR_INVALID_SOURCE, user, HEAD ".visible .const .u32 x = 1;\n");
    SAYS("space", "'x'", "'second'", "'first'");
    REFUSE(CUDA_ERR_INVALID_SOURCE, HEAD ".visible .global .u64 x = 1;\n", user);
    SAYS("'x' has 4 bytes in 'second' and 8 in 'first'");
    /* Signed or not is the same. */
    free(JOIN(USER, HEAD ".visible .func (.param .s32 v) next(.param .u32 a)\n{\n\tret;\n}\n"));
}

/* The name of a register or a label would be that of the other input's variable or function. */
static void names_that_would_be_confused_are_refused(void **state)
{
    static const char label[] = HEAD ".visible .entry l()\n{\n\tbra.uni next;\nnext:\n\tret;\n}\n";
    static const char family[] =
        HEAD ".visible .entry f()\n{\n\t.reg .u32 r<5>;\n\tmov.u32 r3, 1;\n\tret;\n}\n";
    (void)state;
    REFUSE(CUDA_ERR_INVALID_SOURCE, HEAD FUNC(".visible ", "next", ADD("2")), label);
    SAYS("'next'", "'l'", "'second'");
    /* Nothing stands above the label that has its name. */
    free(JOIN(label, HEAD FUNC(".visible ", "next", ADD("2"))));
    REFUSE(CUDA_ERR_INVALID_SOURCE, family, HEAD ".visible .global .u32 r3;\n");
    SAYS("'r3'", "'f'", "'first'");
    /* One that is declared stands before it. */
    static const char local[] =
        HEAD ".visible .entry f()\n{\n\t.reg .u32 r3;\n\tmov.u32 r3, 1;\n\tret;\n}\n";
    free(JOIN(local, HEAD ".visible .global .u32 r3;\n"));
    REFUSE(CUDA_ERR_INVALID_SOURCE, HEAD,
           HEAD ".visible .entry c()\n{\nt: .calltargets c;\n\tret;\n}\n");
    SAYS("'second'", ".calltargets");
}

static void a_refused_input_leaves_nothing(void **state)
{
    static const char bad[] =
        HEAD FUNC(".visible ", "other", ADD("1")) FUNC(".visible ", "next", ADD("1"));
    struct ptx_merge *merge = ptx_merge_create();
    char *text;
    size_t length;
    bool whole;
    (void)state;
    assert_int_equal(offer(merge, HEAD FUNC(".visible ", "next", ADD("2")), "first"), 0);
    assert_int_equal(offer(merge, bad, "bad"), CUDA_ERR_INVALID_SOURCE);
    assert_int_equal(offer(merge, HEAD "nonsense", "bad"), CUDA_ERR_INVALID_PTX);
    SAYS("line 4");
    const struct ptx_merge_input dropped = {bad, strlen(HEAD FUNC(".visible ", "other", ADD("1"))),
                                            NULL};
    assert_int_equal(ptx_merge_offer(merge, &dropped, &whole, &why), 0);
    assert_true(whole);
    ptx_merge_drop(merge);
    const struct ptx_merge_input user = {USER, sizeof(USER) - 1, NULL};
    assert_int_equal(ptx_merge_offer(merge, &user, &whole, &why), 0);
    assert_false(whole);
    assert_int_equal(ptx_merge_accept(merge), 0);
    assert_int_equal(offer(merge, HEAD FUNC(".visible ", "other", ADD("1")), NULL), 0);
    assert_int_equal(ptx_merge_count(merge), 3);
    assert_int_equal(ptx_merge_finish(merge, &text, &length, &why), 0);
    ptx_merge_destroy(merge);
    assert_int_equal(run(text, "k"), 42);
}

/* ---- hostile texts ---- */

/* Each beginning of a text is refused with a reason, or joined. */
static void a_truncated_text_is_refused(void **state)
{
    static const char one[] = HEAD
        ".extern .global .align 8 .u64 b;\n.visible .global .align 8 .u64 a = generic(b);\n" PROTO(
            ".extern ", "next") ";\n" KERNEL("k", "\tmov.u32 %r1, 40;\n" CALL("next"));
    static const char two[] =
        HEAD ".visible .global .align 8 .u64 b = 1;\n" FUNC(".visible ", "next", ADD("2"));
    uint32_t joined = 0, refused = 0;
    (void)state;
    for (size_t cut = 0; cut <= strlen(one); cut++) {
        char *part = strndup(one, cut);
        uint32_t error;
        why.text[0] = '\0';
        char *text = join((const char *const[]){part, two, NULL}, &error);
        assert_true(text || why.text[0]);
        joined += text != NULL;
        refused += text == NULL;
        free(text);
        free(part);
    }
    assert_true(joined > 0 && refused > 0);
}

static uint64_t cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Joins two texts with so many names, through all of which goes a chain. Returns the CPU time. */
static uint64_t join_many(int names)
{
    char *texts[3] = {NULL}, last[32];
    size_t bytes;
    uint32_t error;
    for (int i = 0; i < 2; i++) {
        FILE *out = open_memstream(&texts[i], &bytes);
        fputs(HEAD, out);
        for (int n = 0; n < names; n++) {
            fprintf(out, ".func own%d()\n{\n\tret;\n}\n", n);
            fprintf(out, ".extern .global .u64 v%d_%d;\n", n, 1 - i);
            if (i == 0)
                fprintf(out, ".visible .global .u64 v%d_0 = v%d_1;\n", n, n);
            else if (n + 1 < names)
                fprintf(out, ".extern .global .u64 v%d_0;\n", n + 1);
        }
        for (int n = 0; i == 1 && n < names; n++)
            if (n + 1 < names)
                fprintf(out, ".visible .global .u64 v%d_1 = v%d_0;\n", n, n + 1);
            else
                fprintf(out, ".visible .global .u64 v%d_1 = 7;\n", n);
        fclose(out);
    }
    uint64_t begun = cpu_ms();
    char *text = join((const char *const *)texts, &error);
    uint64_t taken = cpu_ms() - begun;
    if (!text)
        fail_msg("%s", why.text);
    snprintf(last, sizeof last, "own%d$link", names - 1);
    assert_non_null(strstr(text, last));
    free(text);
    free(texts[0]);
    free(texts[1]);
    return taken;
}

/* timed: 60,000 names take less than ten times as long as 15,000, in the test's own CPU time. Four
 * times as many take four times as long, and 16 times if each is looked for among all. */
static void many_names_take_time_in_proportion(void **state)
{
    (void)state;
    uint64_t few = join_many(15000), many = join_many(60000);
    if (many >= 10 * few + 100)
        fail_msg("%" PRIu64 " ms for 15,000 names, %" PRIu64 " ms for 60,000", few, many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_of_another_input_is_called),
        cmocka_unit_test(own_names_of_inputs_stay_apart),
        cmocka_unit_test(an_own_name_gives_way_to_a_common_one),
        cmocka_unit_test(a_weak_definition_gives_way),
        cmocka_unit_test(the_largest_common_variable_stays),
        cmocka_unit_test(initial_values_lead_through_inputs),
        cmocka_unit_test(variables_may_name_each_other),
        cmocka_unit_test(a_table_names_a_function_of_another_input),
        cmocka_unit_test(arrays_that_launches_size_are_one),
        cmocka_unit_test(variables_of_one_statement_part),
        cmocka_unit_test(places_in_a_source_are_left_out),
        cmocka_unit_test(version_and_target_are_the_highest),
        cmocka_unit_test(printf_is_declared_once),
        cmocka_unit_test(two_definitions_are_refused),
        cmocka_unit_test(an_undefined_name_is_refused),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(names_that_would_be_confused_are_refused),
        cmocka_unit_test(a_refused_input_leaves_nothing),
        cmocka_unit_test(a_truncated_text_is_refused),
        cmocka_unit_test(many_names_take_time_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
