/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/start_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/messages.h"
#include "common/mps.h"

struct check {
    start_check_warn *warn;
    void *context;
};

__attribute__((format(printf, 3, 4))) static void
note_warning(const struct check *check, uint32_t which, const char *format, ...)
{
    struct proto_worker_warning warning = {.warning = which};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(warning.text, sizeof warning.text, format, arguments);
    va_end(arguments);
    check->warn(check->context, &warning);
}

static void check_host_access(const struct gpu *gpu, const struct check *check)
{
    int access = 0;
    cuda_result result =
        gpu->cuda->cuDeviceGetAttribute(&access, CUDA_ATTR_PAGEABLE_MEMORY_ACCESS, gpu->handle);
    if (result == CUDA_OK && access)
        note_warning(check, PROTO_WARNING_HOST_ACCESS, MESSAGE_TEXT(warning_host_access));
}

/* Other errors say nothing of the compiler; whoever loads a module is told of them. */
static void check_compiler(const struct gpu *gpu, const struct check *check)
{
    static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                               ".visible .entry nothing() { ret; }\n";
    cuda_module module;
    cuda_result result = gpu->cuda->cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    if (result == CUDA_OK)
        gpu->cuda->cuModuleUnload(module);
    if (result == CUDA_ERR_JIT_COMPILER_NOT_FOUND || result == CUDA_ERR_JIT_COMPILATION_DISABLED)
        note_warning(check, PROTO_WARNING_NO_COMPILER, MESSAGE_TEXT(warning_no_compiler),
                     cuda_driver_error_name(result));
}

void start_check_run(const struct gpu *gpu, cuda_result memory_operations, start_check_warn *warned,
                     void *context)
{
    struct check check = {warned, context};
    pid_t mps = mps_process("/proc");
    check_host_access(gpu, &check);
    check_compiler(gpu, &check);
    if (memory_operations != CUDA_OK)
        note_warning(&check, PROTO_WARNING_POLLED, MESSAGE_TEXT(warning_polled),
                     cuda_driver_error_name(memory_operations));
    if (mps)
        note_warning(&check, PROTO_WARNING_MPS, MESSAGE_TEXT(warning_mps), (int)mps);
}
