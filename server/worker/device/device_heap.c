/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/device_heap.h"

#include "common/cuda/driver_error.h"
#include "common/messages.h"
#include "common/units.h"

/* A driver makes the heap when it loads a module that needs one (CUDA programming guide). So the
 * memory is taken before the server asks what is left for clients. */
static const char text[] = ".version 6.3\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".extern .func free (.param .b64 block);\n"
                           ".visible .entry gpushare_heap()\n"
                           "{\n"
                           "    .param .b64 block;\n"
                           "    st.param.b64 [block], 0;\n"
                           "    call.uni free, (block);\n"
                           "    ret;\n"
                           "}\n";

static cuda_result make_heap(const struct cuda_driver *cuda, uint64_t bytes)
{
    cuda_module module;
    cuda_result result = cuda->cuCtxSetLimit(CUDA_LIMIT_MALLOC_HEAP_SIZE, bytes);
    if (result == CUDA_OK)
        result = cuda->cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    /* The heap stays until the context ends. */
    if (result == CUDA_OK)
        result = cuda->cuModuleUnload(module);
    return result;
}

uint32_t device_heap_open(const struct cuda_driver *cuda, uint64_t bytes, uint64_t *granted,
                          struct error *why)
{
    cuda_result result = bytes ? make_heap(cuda, bytes) : CUDA_OK;
    size_t size = 0;
    char wanted[UNITS_TEXT];
    if (result != CUDA_OK)
        return error_set(why, MESSAGE(device_heap), units_format_size(bytes, wanted),
                         cuda_driver_error_sentence(result), driver_error_name(result));
    if (cuda->cuCtxGetLimit(&size, CUDA_LIMIT_MALLOC_HEAP_SIZE) != CUDA_OK)
        size = 0;
    *granted = size;
    return 0;
}
