/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/local_kernel.h"

#include <inttypes.h>
#include <stdio.h>

/* Where it stores, where it loads and whether it tells what it found are parameters. So no compiler
 * can do without the array, or with a smaller one. The busy one sleeps between its looks at the
 * clock: on a software GPU with modelled instructions, time passes by sleeping alone. The number of
 * its looks has a bound, so that it ends whatever the clock does. */
static const char text_format[] =
    ".version 6.3\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry " LOCAL_KERNEL_NAME "(\n"
    "    .param .u64 store_at, .param .u64 load_at, .param .u64 out)\n"
    "{\n"
    "    .local .align 16 .b8 array[%" PRIu64 "];\n"
    "    .reg .pred %%p;\n"
    "    .reg .b32 %%r<2>;\n"
    "    .reg .b64 %%rd<6>;\n"
    "    ld.param.u64 %%rd0, [store_at];\n"
    "    ld.param.u64 %%rd1, [load_at];\n"
    "    ld.param.u64 %%rd2, [out];\n"
    "    mov.u64 %%rd3, array;\n"
    "    add.u64 %%rd4, %%rd3, %%rd0;\n"
    "    add.u64 %%rd5, %%rd3, %%rd1;\n"
    "    mov.u32 %%r0, 7;\n"
    "    st.local.u8 [%%rd4], %%r0;\n"
    "    ld.local.u8 %%r1, [%%rd5];\n"
    "    setp.eq.u64 %%p, %%rd2, 0;\n"
    "    @%%p bra done;\n"
    "    st.global.u8 [%%rd2], %%r1;\n"
    "done:\n"
    "    ret;\n"
    "}\n"
    ".visible .entry " BUSY_KERNEL_NAME "(.param .u64 nanoseconds)\n"
    "{\n"
    "    .reg .pred %%p;\n"
    "    .reg .b32 %%r<2>;\n"
    "    .reg .b64 %%rd<4>;\n"
    "    ld.param.u64 %%rd0, [nanoseconds];\n"
    "    mov.u32 %%r0, 0;\n"
    "    mov.u64 %%rd1, %%globaltimer;\n"
    "again:\n"
    "    mov.u32 %%r1, 20000;\n"
    "    nanosleep.u32 %%r1;\n"
    "    add.u32 %%r0, %%r0, 1;\n"
    "    mov.u64 %%rd2, %%globaltimer;\n"
    "    sub.u64 %%rd3, %%rd2, %%rd1;\n"
    "    setp.lt.u64 %%p, %%rd3, %%rd0;\n"
    "    setp.lt.and.u32 %%p, %%r0, 100000, %%p;\n"
    "    @%%p bra again;\n"
    "    ret;\n"
    "}\n";

cuda_result local_kernel_load(struct local_kernel *kernel, const struct cuda_driver *cuda,
                              uint64_t bytes)
{
    char text[sizeof text_format + 32];
    *kernel = (struct local_kernel){.module = NULL};
    snprintf(text, sizeof text, text_format, bytes);
    cuda_result result = cuda->cuModuleLoadDataEx(&kernel->module, text, 0, NULL, NULL);
    if (result != CUDA_OK) {
        kernel->module = NULL;
        return result;
    }
    result = cuda->cuModuleGetFunction(&kernel->function, kernel->module, LOCAL_KERNEL_NAME);
    if (result != CUDA_OK)
        local_kernel_unload(kernel, cuda);
    else if (cuda->cuModuleGetFunction(&kernel->busy, kernel->module, BUSY_KERNEL_NAME) != CUDA_OK)
        kernel->busy = NULL;
    return result;
}

cuda_result local_kernel_run(const struct local_kernel *kernel, const struct cuda_driver *cuda,
                             cuda_stream stream)
{
    uint64_t at = 0, nowhere = 0;
    void *parameters[] = {&at, &at, &nowhere};
    cuda_result result =
        cuda->cuLaunchKernel(kernel->function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
    return result == CUDA_OK ? cuda->cuStreamSynchronize(stream) : result;
}

cuda_result local_kernel_occupy(const struct local_kernel *kernel, const struct cuda_driver *cuda,
                                cuda_stream stream, uint64_t nanoseconds)
{
    void *parameters[] = {&nanoseconds};
    return cuda->cuLaunchKernel(kernel->busy, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

void local_kernel_unload(struct local_kernel *kernel, const struct cuda_driver *cuda)
{
    if (kernel->module)
        cuda->cuModuleUnload(kernel->module);
    kernel->module = NULL;
}
