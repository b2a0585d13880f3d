/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * context_call: the driver calls that take the context's lock and submit nothing, and which of
 * them wait for the device while they hold it. docs/softgpu.md has each with its source.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_CONTEXT_CALL_H
#define GPUSHARE_SERVER_SOFTGPU_CONTEXT_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* DRAINS: the call waits for the device. UNSURE: some drivers were seen not to wait, and others are
 * reported or assumed to wait. LOCKS: the call waits for nothing but the lock. */
enum context_class { CONTEXT_LOCKS, CONTEXT_UNSURE, CONTEXT_DRAINS };

/* X(NAME, call, class). Calls are named as cuGetProcAddress names them; cuLaunchKernel stands for a
 * launch that needs more local memory than any before it. */
#define CONTEXT_CALLS(X)                                                                           \
    X(SET_LIMIT, cuCtxSetLimit, DRAINS)                                                            \
    X(SET_FUNCTION, cuFuncSetAttribute, LOCKS)                                                     \
    X(GREEN_CREATE, cuGreenCtxCreate, DRAINS)                                                      \
    X(GREEN_DESTROY, cuGreenCtxDestroy, UNSURE)                                                    \
    X(GREEN_STREAM, cuGreenCtxStreamCreate, UNSURE)                                                \
    X(GROW_LOCAL, cuLaunchKernel, DRAINS)                                                          \
    X(ALLOC, cuMemAlloc, LOCKS)                                                                    \
    X(FREE, cuMemFree, DRAINS)                                                                     \
    X(FREE_HOST, cuMemFreeHost, DRAINS)                                                            \
    X(ALLOC_HOST, cuMemHostAlloc, LOCKS)                                                           \
    X(REGISTER, cuMemHostRegister, LOCKS)                                                          \
    X(UNREGISTER, cuMemHostUnregister, DRAINS)                                                     \
    X(MAP, cuMemMap, LOCKS)                                                                        \
    X(SET_ACCESS, cuMemSetAccess, LOCKS)                                                           \
    X(UNMAP, cuMemUnmap, LOCKS)                                                                    \
    X(MODULE_LOAD, cuModuleLoadDataEx, DRAINS)                                                     \
    X(MODULE_UNLOAD, cuModuleUnload, DRAINS)                                                       \
    X(STREAM_CREATE, cuStreamCreateWithPriority, UNSURE)                                           \
    X(STREAM_DESTROY, cuStreamDestroy, UNSURE)

enum context_call {
#define X(name, call, class) CONTEXT_CALL_##name,
    CONTEXT_CALLS(X)
#undef X
        CONTEXT_CALLS_COUNT
};

/* The class of the table. Settings may say otherwise. */
enum context_class context_call_class(enum context_call call);

/* Reads names with spaces between them into one bit for each call. Returns 0, or -EINVAL for a name
 * that is none of the table's; *wrong, if not NULL, then points at it. */
int context_call_parse(const char *names, uint64_t *calls, const char **wrong);

#endif
