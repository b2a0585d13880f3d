/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * context_call: the driver calls that take the context's lock and submit nothing, and which of
 * them wait for the device while they hold it. docs/softgpu.md has the sources.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_CONTEXT_CALL_H
#define GPUSHARE_SERVER_SOFTGPU_CONTEXT_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* X(NAME, call, drains): drains is 1 if the call waits for the device. Calls are named as
 * cuGetProcAddress names them; cuLaunchKernel stands for a launch that needs more local memory than
 * any before it. */
#define CONTEXT_CALLS(X)                                                                           \
    X(SET_LIMIT, cuCtxSetLimit, 1)                                                                 \
    X(SET_FUNCTION, cuFuncSetAttribute, 0)                                                         \
    X(GREEN_CREATE, cuGreenCtxCreate, 0)                                                           \
    X(GREEN_DESTROY, cuGreenCtxDestroy, 0)                                                         \
    X(GREEN_STREAM, cuGreenCtxStreamCreate, 1)                                                     \
    X(GROW_LOCAL, cuLaunchKernel, 1)                                                               \
    X(ALLOC, cuMemAlloc, 0)                                                                        \
    X(FREE, cuMemFree, 1)                                                                          \
    X(FREE_HOST, cuMemFreeHost, 1)                                                                 \
    X(ALLOC_HOST, cuMemHostAlloc, 0)                                                               \
    X(REGISTER, cuMemHostRegister, 0)                                                              \
    X(UNREGISTER, cuMemHostUnregister, 1)                                                          \
    X(MAP, cuMemMap, 0)                                                                            \
    X(SET_ACCESS, cuMemSetAccess, 0)                                                               \
    X(UNMAP, cuMemUnmap, 0)                                                                        \
    X(MODULE_LOAD, cuModuleLoadDataEx, 1)                                                          \
    X(MODULE_UNLOAD, cuModuleUnload, 1)                                                            \
    X(STREAM_CREATE, cuStreamCreateWithPriority, 1)                                                \
    X(STREAM_DESTROY, cuStreamDestroy, 0)

enum context_call {
#define X(name, call, drains) CONTEXT_CALL_##name,
    CONTEXT_CALLS(X)
#undef X
        CONTEXT_CALLS_COUNT
};

/* Whether the call is one that waits for the device, unless settings say otherwise. */
bool context_call_drains(enum context_call call);

/* Reads names with spaces between them into one bit for each call. Returns 0, or -EINVAL for a name
 * that is none of the table's; *wrong, if not NULL, then points at it. */
int context_call_parse(const char *names, uint64_t *calls, const char **wrong);

#endif
