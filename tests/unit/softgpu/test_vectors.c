/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A lane's vector is one access: two threads exchange vectors whose elements are all the same. */
#include "tests/unit/softgpu/kernel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LANES = 32, RUNS = 10, ROUNDS = 20000, BYTES = 16 };

struct shape {
    const char *name, *type, *store, *load, *differ;
};

static const struct shape shapes[] = {
    {"v2.u32", "u32", "{%a0, %a0}", "{%a1, %a2}", "setp.ne.u32 %p2, %a1, %a2;\n"},
    {"v2.u64", "u64", "{%a0, %a0}", "{%a1, %a2}", "setp.ne.u64 %p2, %a1, %a2;\n"},
    {"v4.u16", "u16", "{%a0, %a0, %a0, %a0}", "{%a1, %a2, %a3, %a4}",
     "setp.ne.u16 %p2, %a1, %a4;\n"},
    {"v4.u32", "u32", "{%a0, %a0, %a0, %a0}", "{%a1, %a2, %a3, %a4}",
     "setp.ne.u32 %p2, %a1, %a4;\n"},
};

/* One kernel writes the rounds' numbers into its lanes' vectors; the other counts the vectors
 * whose elements differ. */
static const char text_of_kernels[] = PTX_HEAD
    ".entry put(.param .u64 at, .param .u64 torn)\n{\n.reg .pred %%p<3>;\n.reg .b32 %%r<4>;\n"
    ".reg .b64 %%rd<4>;\n.reg .%s %%a<5>;\nld.param.u64 %%rd1, [at];\nmov.u32 %%r1, %%tid.x;\n"
    "mad.wide.u32 %%rd1, %%r1, 16, %%rd1;\nmov.u32 %%r2, 0;\n"
    "L:\nadd.u32 %%r2, %%r2, 1;\ncvt.%s.u32 %%a0, %%r2;\n"
    "st.relaxed.gpu.global.%s [%%rd1], %s;\n"
    "setp.lt.u32 %%p1, %%r2, %d;\n@%%p1 bra L;\nret;\n}\n"
    ".entry get(.param .u64 at, .param .u64 torn)\n{\n.reg .pred %%p<3>;\n.reg .b32 %%r<4>;\n"
    ".reg .b64 %%rd<4>;\n.reg .%s %%a<5>;\nld.param.u64 %%rd1, [at];\n"
    "ld.param.u64 %%rd2, [torn];\nmov.u32 %%r1, %%tid.x;\n"
    "mad.wide.u32 %%rd3, %%r1, 4, %%rd2;\nmad.wide.u32 %%rd1, %%r1, 16, %%rd1;\n"
    "mov.u32 %%r2, 0;\nmov.u32 %%r3, 0;\n"
    "L:\nadd.u32 %%r2, %%r2, 1;\nld.relaxed.gpu.global.%s %s, [%%rd1];\n%s"
    "@%%p2 add.u32 %%r3, %%r3, 1;\n"
    "setp.lt.u32 %%p1, %%r2, %d;\n@%%p1 bra L;\nst.global.u32 [%%rd3], %%r3;\nret;\n}\n";

struct params {
    void *at, *torn;
};

static _Alignas(BYTES) uint8_t memory[LANES * BYTES];
static uint32_t torn[LANES];
static atomic_bool enough;

static enum block_state run_block(struct module *m, const char *name, struct params *params)
{
    struct kernel_launch l = {.name = name, .grid = 1, .threads = LANES, .params = params};
    struct fault fault;

    return kernel_run(m, &l, &fault);
}

static void *keep_putting(void *module)
{
    struct params params = {memory, torn};

    while (!atomic_load(&enough))
        if (run_block(module, "put", &params) != BLOCK_DONE)
            return "a fault";
    return NULL;
}

static void exchange(const struct shape *shape)
{
    struct params params = {memory, torn};
    uint64_t all_torn = 0;
    struct module *m;
    pthread_t other;
    void *fault;
    char text[4096];

    assert_in_range(snprintf(text, sizeof text, text_of_kernels, shape->type, shape->type,
                             shape->name, shape->store, ROUNDS, shape->type, shape->name,
                             shape->load, shape->differ, ROUNDS),
                    1, sizeof text - 1);
    kernel_forget();
    kernel_allow(memory, sizeof memory, MEMORY_READ | MEMORY_WRITE);
    kernel_allow(torn, sizeof torn, MEMORY_WRITE);
    memset(memory, 0, sizeof memory);
    m = kernel_module(text);
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&other, NULL, keep_putting, m), 0);
    for (int run = 0; run < RUNS; run++) {
        assert_int_equal(run_block(m, "get", &params), BLOCK_DONE);
        for (int lane = 0; lane < LANES; lane++)
            all_torn += torn[lane];
    }
    atomic_store(&enough, true);
    assert_int_equal(pthread_join(other, &fault), 0);
    assert_null(fault);
    module_destroy(m);
    kernel_free();
    if (all_torn > 0)
        fail_msg("%s: of %d vectors read, %llu were of two writes", shape->name,
                 RUNS * ROUNDS * LANES, (unsigned long long)all_torn);
}

static void two_words_are_one_access(void **state)
{
    (void)state;
    exchange(&shapes[0]);
}

static void two_long_words_are_one_access(void **state)
{
    (void)state;
    exchange(&shapes[1]);
}

static void four_short_words_are_one_access(void **state)
{
    (void)state;
    exchange(&shapes[2]);
}

static void four_words_are_one_access(void **state)
{
    (void)state;
    exchange(&shapes[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_words_are_one_access),
        cmocka_unit_test(two_long_words_are_one_access),
        cmocka_unit_test(four_short_words_are_one_access),
        cmocka_unit_test(four_words_are_one_access),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
