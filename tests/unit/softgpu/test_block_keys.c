/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Blocks in a process that has no key for values of threads left: a thread must then keep no memory
 * of a block, which nobody would free, and must not set another module's value.
 */
#include "tests/unit/softgpu/kernel.h"

#include <malloc.h>
#include <pthread.h>

enum { THREADS = 64 };

static struct module *module;
static unsigned ends; /* of values that others have set under a key of this test */

static void end_value(void *value)
{
    (void)value;
    ends++;
}

static void *run_block(void *unused)
{
    struct kernel_launch launch = {.name = "k", .grid = 2, .threads = 1024};
    struct fault fault;
    (void)unused;
    assert_int_equal(kernel_run(module, &launch, &fault), BLOCK_DONE);
    return NULL;
}

static void run_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_block, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static size_t bytes_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void threads_without_a_key_leave_nothing(void **state)
{
    pthread_key_t key;
    size_t before;
    (void)state;
    while (pthread_key_create(&key, end_value) == 0)
        ;
    module = kernel_module(PTX_HEAD ".visible .entry k()\n{\n.reg .b32 %a;\n"
                                    "mov.u32 %a, %tid.x;\nret;\n}\n");
    run_thread();
    before = bytes_in_use();
    for (int i = 0; i < THREADS; i++)
        run_thread();
    /* A block of 1,024 threads has more than 4 KiB of registers. Sanitizers count it instead. */
    assert_true(bytes_in_use() < before + THREADS * 4096);
    assert_int_equal(ends, 0);
    module_destroy(module);
    kernel_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_without_a_key_leave_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
