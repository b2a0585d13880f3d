/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* malloc and free of kernels, as instructions: who gets what, and which misuse is a fault. */
#include "tests/unit/softgpu/kernel.h"

enum { HEAP = 64 << 10, THREADS = 70 };

static uint64_t out[256];
static void *blocks, *records;

#define DECLARED                                                                                   \
    PTX_HEAD ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"                             \
             ".extern .func (.param .b64 r) __cuda_syscall_aligned_malloc (.param .b64 n, "        \
             ".param .b64 a);\n"                                                                   \
             ".extern .func free (.param .b64 p);\n"

/* %rd1: the kernel's number; %rd2: where the thread's word lies; %rd3: the thread. The body's lines
 * are 8 and on. */
#define ENTRY(body)                                                                                \
    ".entry k(.param .u64 n, .param .u64 o) {.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 "        \
    "%rd<9>; "                                                                                     \
    "ld.param.u64 %rd1, [n]; ld.param.u64 %rd2, [o]; mov.u32 %r1, %tid.x; cvt.u64.u32 %rd3, %r1; " \
    "shl.b64 %rd4, %rd3, 3; add.s64 %rd2, %rd2, %rd4;\n" body "\nret; }\n"
#define KERNEL(body) DECLARED ENTRY(body)
#define CALL(result, name, ...)                                                                    \
    "{ .param .b64 p0; .param .b64 p1; .param .b64 q; " __VA_ARGS__ " call.uni (q), " name         \
    "; ld.param.b64 " result ", [q]; }\n"
#define MALLOC(result, size) CALL(result, "malloc, (p0)", "st.param.b64 [p0], " size ";")
#define ALIGNED(result, size, alignment)                                                           \
    CALL(result, "__cuda_syscall_aligned_malloc, (p0, p1)",                                        \
         "st.param.b64 [p0], " size "; st.param.b64 [p1], " alignment ";")
#define FREE(address) "{ .param .b64 p0; st.param.b64 [p0], " address "; call.uni free, (p0); }\n"

struct params {
    uint64_t number;
    void *out;
};

static int setup(void **state)
{
    (void)state;
    kernel_heap_begin(HEAP, &blocks, &records);
    memset(out, 0, sizeof(out));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kernel_heap_end(blocks, records);
    return 0;
}

static enum block_state run(const char *text, uint64_t number, uint32_t threads,
                            struct fault *fault)
{
    struct params params = {number, out};
    struct kernel_launch launch = {.name = "k", .grid = 1, .threads = threads, .params = &params};
    kernel_forget();
    kernel_allow(out, sizeof(out), MEMORY_READ | MEMORY_WRITE);
    kernel_heap_allow(blocks, HEAP);
    struct module *m = kernel_module(text);
    memset(fault, 0, sizeof(*fault));
    enum block_state state = kernel_run(m, &launch, fault);
    module_destroy(m);
    kernel_free();
    return state;
}

static void run_well(const char *text, uint64_t number, uint32_t threads)
{
    struct fault fault;
    if (run(text, number, threads, &fault) != BLOCK_DONE)
        fail_msg("%s", fault.text);
}

/* Then one block may have all of it. */
static bool heap_is_empty(void)
{
    uint64_t all = kernel_heap_alloc(kernel_heap, HEAP, 16);
    return all && kernel_heap_free(kernel_heap, all) == KERNEL_HEAP_FREED;
}

static bool in_heap(uint64_t address, uint64_t bytes)
{
    uint64_t base = (uint64_t)(uintptr_t)blocks;
    return address >= base && address + bytes <= base + HEAP;
}

static void each_thread_has_a_block_of_its_own(void **state)
{
    (void)state;
    run_well(KERNEL(MALLOC("%rd5", "%rd1") "st.u64 [%rd5], %rd3; st.u64 [%rd5+40], %rd3;\n"
                                           "st.global.u64 [%rd2], %rd5;"),
             48, THREADS);
    assert_false(heap_is_empty());
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_true(in_heap(out[i], 48));
        assert_int_equal(out[i] % 16, 0);
        assert_int_equal(*(uint64_t *)(uintptr_t)out[i], i);
        assert_int_equal(*(uint64_t *)(uintptr_t)(out[i] + 40), i);
        for (uint32_t k = 0; k < i; k++)
            assert_true(out[i] >= out[k] + 48 || out[k] >= out[i] + 48);
    }
    /* A later kernel reads what an earlier one left, and frees it in other threads. */
    run_well(KERNEL("xor.b64 %rd4, %rd4, 8; ld.param.u64 %rd2, [o]; add.s64 %rd2, %rd2, %rd4;\n"
                    "ld.global.u64 %rd5, [%rd2]; ld.u64 %rd6, [%rd5+40];\n" FREE(
                        "%rd5") "st.global.u64 [%rd2], %rd6;"),
             0, THREADS);
    assert_true(heap_is_empty());
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i);
}

static void only_the_lanes_that_call_have_blocks(void **state)
{
    (void)state;
    run_well(KERNEL("and.b64 %rd6, %rd3, 3; setp.eq.u64 %p1, %rd6, 2; mov.u64 %rd5, 7;\n"
                    "@!%p1 bra L;\n" MALLOC("%rd5", "%rd1") "L: st.global.u64 [%rd2], %rd5;"),
             16, THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_true(i % 4 == 2 ? in_heap(out[i], 16) : out[i] == 7);
}

static void a_full_heap_gives_null_and_free_of_null_does_nothing(void **state)
{
    static const uint64_t sizes[] = {HEAP + 1, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 15};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        out[0] = 1;
        run_well(KERNEL(MALLOC("%rd5", "%rd1") FREE("%rd5") "st.global.u64 [%rd2], %rd5;"),
                 sizes[i], 1);
        assert_int_equal(out[0], 0);
    }
    /* 64 KiB hold 15 blocks of 4 KiB with their gaps, and no more. */
    run_well(KERNEL(MALLOC("%rd5", "4096") "st.global.u64 [%rd2], %rd5;"), 0, THREADS);
    uint32_t have = 0;
    for (uint32_t i = 0; i < THREADS; i++)
        have += out[i] != 0;
    assert_int_equal(have, 15);
}

static void an_alignment_is_kept(void **state)
{
    (void)state;
    run_well(KERNEL(ALIGNED("%rd5", "24", "%rd1") "st.global.u64 [%rd2], %rd5;"), 1024, 16);
    for (uint32_t i = 0; i < 16; i++)
        assert_true(in_heap(out[i], 24) && out[i] % 1024 == 0);
    run_well(KERNEL(ALIGNED("%rd5", "24", "%rd1") "st.global.u64 [%rd2], %rd5;"), 1, 1);
    assert_true(in_heap(out[0], 24) && out[0] % 16 == 0);
}

/* ---- faults --------------------------------------------------------------------------------- */

static void expect(const char *text, uint64_t number, enum fault_kind kind, uint32_t line,
                   const char *said)
{
    struct fault fault;
    assert_int_equal(run(text, number, 1, &fault), BLOCK_FAULTED);
    assert_int_equal(fault.kind, kind);
    assert_int_equal(fault.line, line);
    if (!strstr(fault.text, said))
        fail_msg("'%s' is not in: %s", said, fault.text);
}

static void what_malloc_did_not_return_is_not_freed(void **state)
{
    (void)state;
    assert_int_equal(fault_result(FAULT_HEAP), CUDA_ERR_LAUNCH_FAILED);
    expect(KERNEL(MALLOC("%rd5", "16") FREE("%rd5") FREE("%rd5")), 0, FAULT_HEAP, 10,
           "which was freed before");
    expect(KERNEL(MALLOC("%rd5", "64") "add.u64 %rd5, %rd5, 16;\n" FREE("%rd5")), 0, FAULT_HEAP, 10,
           "which is inside of a block");
    expect(KERNEL(FREE("%rd1")), (uint64_t)(uintptr_t)out, FAULT_HEAP, 8,
           "which malloc of a kernel has not returned");
    expect(KERNEL(FREE("%rd1")), UINT64_MAX, FAULT_HEAP, 8, "free of 0xffffffffffffffff");
}

static void memory_that_is_no_blocks_is_not_reached(void **state)
{
    static const char *const freed[] = {
        KERNEL(MALLOC("%rd5", "64") FREE("%rd5") "ld.u32 %r2, [%rd5];"),
        KERNEL(MALLOC("%rd5", "64") FREE("%rd5") "st.u32 [%rd5+60], %r1;"),
        KERNEL(MALLOC("%rd5", "64") FREE("%rd5") "atom.add.u32 %r2, [%rd5], 1;"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof freed / sizeof *freed; i++)
        expect(freed[i], 0, FAULT_ILLEGAL_ADDRESS, 10, "in the heap where no block is");
    /* Bytes count up to a multiple of 16. */
    run_well(KERNEL(MALLOC("%rd5", "20") "st.u32 [%rd5+28], %r1;"), 0, 1);
    expect(KERNEL(MALLOC("%rd5", "20") "st.u32 [%rd5+32], %r1;"), 0, FAULT_ILLEGAL_ADDRESS, 9,
           "in the heap where no block is");
    expect(KERNEL(MALLOC("%rd5", "16") "ld.u32 %r2, [%rd5+-4];"), 0, FAULT_ILLEGAL_ADDRESS, 9,
           "illegal address");
    expect(KERNEL(MALLOC("%rd5", "0") "ld.u8 %r2, [%rd5];"), 0, FAULT_ILLEGAL_ADDRESS, 9,
           "in the heap where no block is");
}

static void a_warp_with_one_lane_outside_faults_for_that_lane(void **state)
{
    struct fault fault;
    (void)state;
    assert_int_equal(run(KERNEL(MALLOC("%rd5", "16") "setp.eq.u64 %p1, %rd3, 21;\n"
                                                     "@%p1 add.u64 %rd5, %rd5, 16;\n"
                                                     "st.u32 [%rd5], %r1;"),
                         0, 32, &fault),
                     BLOCK_FAULTED);
    assert_int_equal(fault.thread[0], 21);
}

static void an_alignment_that_is_no_power_of_two_is_a_fault(void **state)
{
    (void)state;
    expect(KERNEL(ALIGNED("%rd5", "16", "%rd1")), 24, FAULT_HEAP, 8, "an alignment of 24");
    expect(KERNEL(ALIGNED("%rd5", "16", "%rd1")), 0, FAULT_HEAP, 8, "an alignment of 0");
}

static void a_declaration_with_other_parameters_is_a_fault(void **state)
{
    (void)state;
    expect(PTX_HEAD ".extern .func free (.param .b64 p, .param .b64 q);\n"
                    ".entry k(.param .u64 n, .param .u64 o)\n{\n.param .b64 p; .param .b64 q;\n"
                    "call.uni free, (p, q);\nret; }\n",
           0, FAULT_ILLEGAL_INSTRUCTION, 8, "other parameters");
}

static void a_module_says_whether_it_allocates(void **state)
{
    static const struct {
        const char *text;
        bool allocates;
    } cases[] = {
        {DECLARED, true},
        {PTX_HEAD ".extern .func free (.param .b64 p);\n", true},
        {PTX_HEAD ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n", false},
        {PTX_HEAD ".func (.param .b64 r) malloc (.param .b64 n) { ret; }\n", false},
        {PTX_HEAD, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel_forget();
        struct module *m = kernel_module(cases[i].text);
        assert_int_equal(module_allocates(m), cases[i].allocates);
        module_destroy(m);
        kernel_free();
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_thread_has_a_block_of_its_own),
        CASE(only_the_lanes_that_call_have_blocks),
        CASE(a_full_heap_gives_null_and_free_of_null_does_nothing),
        CASE(an_alignment_is_kept),
        CASE(what_malloc_did_not_return_is_not_freed),
        CASE(memory_that_is_no_blocks_is_not_reached),
        CASE(a_warp_with_one_lane_outside_faults_for_that_lane),
        CASE(an_alignment_that_is_no_power_of_two_is_a_fault),
        CASE(a_declaration_with_other_parameters_is_a_fault),
        CASE(a_module_says_whether_it_allocates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
