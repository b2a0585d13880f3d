/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Small kernels for the tests of the software GPU's device side, as PTX text, and
 * a device to run them on.
 */
#ifndef GPUSHARE_TESTS_UNIT_SOFTGPU_KERNELS_H
#define GPUSHARE_TESTS_UNIT_SOFTGPU_KERNELS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/softgpu/api/api.h"

#define OK(call) assert_int_equal((call), CUDA_OK)

/*
 * A process of its own: for what ends a process's use of its devices, and for
 * settings, which are read once. In there assertions are CHECKs.
 */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline void in_child(void (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * sleep(ns, times): sleeps. smid(counts, ns): counts[%smid] += 1, sleeps.
 * store(out, value): out[global thread] = value. spin(flag): until *flag != 0.
 * stamp(out, ns): out[2 * block] = time before, out[2 * block + 1] = after a sleep.
 * add(a, b, c, n): c = a + b. trapper(): traps.
 */
static const char kernels_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .global .align 4 .b8 counter[64];\n"
    ".visible .entry sleep(.param .u32 sleep_ns, .param .u32 sleep_times)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<4>;\n"
    "    ld.param.u32 %r1, [sleep_ns];\n"
    "    ld.param.u32 %r2, [sleep_times];\n"
    "LOOP:\n"
    "    setp.eq.u32 %p1, %r2, 0;\n"
    "    @%p1 bra DONE;\n"
    "    nanosleep.u32 %r1;\n"
    "    sub.u32 %r2, %r2, 1;\n"
    "    bra LOOP;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    ".visible .entry smid(.param .u64 smid_counts, .param .u32 smid_ns)\n"
    "{\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %rd<5>;\n"
    "    ld.param.u64 %rd1, [smid_counts];\n"
    "    ld.param.u32 %r1, [smid_ns];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    mov.u32 %r2, %smid;\n"
    "    mul.wide.u32 %rd3, %r2, 4;\n"
    "    add.s64 %rd4, %rd2, %rd3;\n"
    "    atom.global.add.u32 %r3, [%rd4], 1;\n"
    "    nanosleep.u32 %r1;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry store(.param .u64 store_out, .param .u32 store_value)\n"
    "{\n"
    "    .reg .b32 %r<6>;\n"
    "    .reg .b64 %rd<5>;\n"
    "    ld.param.u64 %rd1, [store_out];\n"
    "    ld.param.u32 %r1, [store_value];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mov.u32 %r3, %ntid.x;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "    mul.wide.u32 %rd3, %r5, 4;\n"
    "    add.s64 %rd4, %rd2, %rd3;\n"
    "    st.global.u32 [%rd4], %r1;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry spin(.param .u64 spin_flag)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [spin_flag];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "LOOP:\n"
    "    ld.volatile.global.u32 %r1, [%rd2];\n"
    "    setp.eq.u32 %p1, %r1, 0;\n"
    "    @%p1 bra LOOP;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry stamp(.param .u64 stamp_out, .param .u32 stamp_ns)\n"
    "{\n"
    "    .reg .b32 %r<3>;\n"
    "    .reg .b64 %rd<7>;\n"
    "    ld.param.u64 %rd1, [stamp_out];\n"
    "    ld.param.u32 %r1, [stamp_ns];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mul.wide.u32 %rd3, %r2, 16;\n"
    "    add.s64 %rd4, %rd2, %rd3;\n"
    "    mov.u64 %rd5, %globaltimer;\n"
    "    st.global.u64 [%rd4], %rd5;\n"
    "    nanosleep.u32 %r1;\n"
    "    mov.u64 %rd6, %globaltimer;\n"
    "    st.global.u64 [%rd4+8], %rd6;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry add(.param .u64 add_a, .param .u64 add_b, .param .u64 add_c, .param .u32 "
    "add_n)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .f32 %f<4>;\n"
    "    .reg .b32 %r<6>;\n"
    "    .reg .b64 %rd<11>;\n"
    "    ld.param.u64 %rd1, [add_a];\n"
    "    ld.param.u64 %rd2, [add_b];\n"
    "    ld.param.u64 %rd3, [add_c];\n"
    "    ld.param.u32 %r1, [add_n];\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mov.u32 %r3, %ntid.x;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "    setp.ge.u32 %p1, %r5, %r1;\n"
    "    @%p1 bra DONE;\n"
    "    cvta.to.global.u64 %rd4, %rd1;\n"
    "    mul.wide.u32 %rd5, %r5, 4;\n"
    "    add.s64 %rd6, %rd4, %rd5;\n"
    "    cvta.to.global.u64 %rd7, %rd2;\n"
    "    add.s64 %rd8, %rd7, %rd5;\n"
    "    ld.global.f32 %f1, [%rd6];\n"
    "    ld.global.f32 %f2, [%rd8];\n"
    "    add.f32 %f3, %f1, %f2;\n"
    "    cvta.to.global.u64 %rd9, %rd3;\n"
    "    add.s64 %rd10, %rd9, %rd5;\n"
    "    st.global.f32 [%rd10], %f3;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"
    ".visible .entry trapper()\n"
    "{\n"
    "    trap;\n"
    "    ret;\n"
    "}\n";

/* A context made current in this thread, and the kernels. */
static struct kernels {
    cuda_context context;
    cuda_module module;
    cuda_function sleep, smid, store, spin, stamp, add, trapper;
} kernels;

/* Of the current context. 0, or the number of the step that failed. */
static inline int kernels_load(void)
{
    const struct {
        cuda_function *function;
        const char *name;
    } wanted[] = {
        {&kernels.sleep, "sleep"},     {&kernels.smid, "smid"},   {&kernels.store, "store"},
        {&kernels.spin, "spin"},       {&kernels.stamp, "stamp"}, {&kernels.add, "add"},
        {&kernels.trapper, "trapper"},
    };

    if (cuModuleLoadData(&kernels.module, kernels_ptx) != CUDA_OK)
        return -1;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (cuModuleGetFunction(wanted[i].function, kernels.module, wanted[i].name) != CUDA_OK)
            return (int)i + 1;
    return 0;
}

static inline int kernels_open(void)
{
    if (cuInit(0) != CUDA_OK || cuDevicePrimaryCtxRetain(&kernels.context, 0) != CUDA_OK ||
        cuCtxSetCurrent(kernels.context) != CUDA_OK)
        return -2;
    return kernels_load();
}

/* A stream of a new green context on the group of eight multiprocessors with this number, 0 or 1.
 * Returns NULL if one of the calls failed. */
static inline cuda_stream kernels_partition_stream(unsigned number)
{
    cuda_dev_resource all, parts[2];
    cuda_resource_desc desc;
    cuda_green_ctx green;
    cuda_stream stream;
    unsigned groups = 2;

    if (cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM) != CUDA_OK ||
        cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 8) != CUDA_OK ||
        cuDevResourceGenerateDesc(&desc, &parts[number], 1) != CUDA_OK ||
        cuGreenCtxCreate(&green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) != CUDA_OK ||
        cuGreenCtxStreamCreate(&stream, green, CUDA_STREAM_NON_BLOCKING, 0) != CUDA_OK)
        return NULL;
    return stream;
}

static inline cuda_result launch(cuda_function function, unsigned blocks, unsigned threads,
                                 cuda_stream stream, void **params)
{
    return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

static inline cuda_result launch_sleep(unsigned blocks, unsigned threads, unsigned ns,
                                       unsigned times, cuda_stream stream)
{
    void *params[] = {&ns, &times};

    return launch(kernels.sleep, blocks, threads, stream, params);
}

static inline cuda_result launch_smid(cuda_device_ptr counts, unsigned blocks, unsigned threads,
                                      unsigned ns, cuda_stream stream)
{
    void *params[] = {&counts, &ns};

    return launch(kernels.smid, blocks, threads, stream, params);
}

static inline cuda_result launch_store(cuda_device_ptr out, uint32_t value, unsigned blocks,
                                       unsigned threads, cuda_stream stream)
{
    void *params[] = {&out, &value};

    return launch(kernels.store, blocks, threads, stream, params);
}

static inline cuda_result launch_spin(cuda_device_ptr flag, cuda_stream stream)
{
    void *params[] = {&flag};

    return launch(kernels.spin, 1, 1, stream, params);
}

static inline cuda_result launch_stamp(cuda_device_ptr out, unsigned blocks, unsigned threads,
                                       unsigned ns, cuda_stream stream)
{
    void *params[] = {&out, &ns};

    return launch(kernels.stamp, blocks, threads, stream, params);
}

#endif
