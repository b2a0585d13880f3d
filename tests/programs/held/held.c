/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * held: which thread of a worker makes which call of the driver, and how many mutexes it holds.
 *
 * One library in two roles. It is preloaded into the worker, so that it sees pthread_mutex_lock and
 * its like, and given to it as its driver, so that it sees the calls; those go on to $HELD_DRIVER.
 * Each combination of thread, call and number of mutexes is written once into the file
 * $HELD_REPORT, as "THREAD CALL HELD". Only what happens while the worker serves counts: from the
 * first message that it receives to the first thread that it joins.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- mutexes ---- */

static _Thread_local int held;
static _Atomic enum { STARTS, SERVES, ENDS } phase;

/* ISO C can't convert an object pointer to a function pointer. */
#define NEXT(of)                                                                                   \
    static _Atomic(void *) found;                                                                  \
    void *symbol = atomic_load(&found);                                                            \
    if (!symbol)                                                                                   \
        atomic_store(&found, symbol = dlsym(RTLD_NEXT, #of));                                      \
    __typeof__(&of) next;                                                                          \
    memcpy(&next, &symbol, sizeof next)

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    NEXT(pthread_mutex_lock);
    int error = next(mutex);
    held += error == 0;
    return error;
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    NEXT(pthread_mutex_trylock);
    int error = next(mutex);
    held += error == 0;
    return error;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    NEXT(pthread_mutex_unlock);
    int error = next(mutex);
    held -= error == 0;
    return error;
}

EXPORT int pthread_join(pthread_t thread, void **value)
{
    NEXT(pthread_join);
    atomic_store(&phase, ENDS);
    return next(thread, value);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    NEXT(recvmsg);
    if (atomic_load(&phase) == STARTS)
        atomic_store(&phase, SERVES);
    return next(fd, message, flags);
}

/* ---- the report ---- */

enum { LINES = 1024, LINE = 96 };

static struct {
    atomic_flag lock;
    char lines[LINES][LINE];
    int count;
} report = {.lock = ATOMIC_FLAG_INIT};

static void write_line(const char *line)
{
    const char *path = getenv("HELD_REPORT");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || write(fd, line, strlen(line)) < 0)
        abort();
    close(fd);
}

static void note(const char *call)
{
    char name[16] = "", line[LINE];
    if (atomic_load(&phase) != SERVES)
        return;
    prctl(PR_GET_NAME, name, 0, 0, 0);
    /* The first thread has the program's name. */
    snprintf(line, sizeof line, "%s %s %d\n", strchr(name, '-') ? "control" : name, call, held);
    while (atomic_flag_test_and_set(&report.lock))
        ;
    int i = 0;
    while (i < report.count && strcmp(report.lines[i], line))
        i++;
    if (i == report.count && i < LINES) {
        memcpy(report.lines[report.count++], line, sizeof line);
        write_line(line);
    }
    atomic_flag_clear(&report.lock);
}

/* ---- the driver ---- */

#define CALLS(W)                                                                                   \
    W(cuMemCreate,                                                                                 \
      (cuda_mem_handle * a, size_t b, const cuda_mem_allocation_prop *c, unsigned long long d),    \
      (a, b, c, d))                                                                                \
    W(cuMemRelease, (cuda_mem_handle a), (a))                                                      \
    W(cuMemMap, (cuda_device_ptr a, size_t b, size_t c, cuda_mem_handle d, unsigned long long e),  \
      (a, b, c, d, e))                                                                             \
    W(cuMemUnmap, (cuda_device_ptr a, size_t b), (a, b))                                           \
    W(cuMemSetAccess, (cuda_device_ptr a, size_t b, const cuda_mem_access_desc *c, size_t d),      \
      (a, b, c, d))                                                                                \
    W(cuMemHostRegister, (void *a, size_t b, unsigned c), (a, b, c))                               \
    W(cuMemHostUnregister, (void *a), (a))                                                         \
    W(cuMemAllocHost, (void **a, size_t b), (a, b))                                                \
    W(cuMemFreeHost, (void *a), (a))                                                               \
    W(cuMemAlloc, (cuda_device_ptr * a, size_t b), (a, b))                                         \
    W(cuMemFree, (cuda_device_ptr a), (a))                                                         \
    W(cuMemcpyHtoD, (cuda_device_ptr a, const void *b, size_t c), (a, b, c))                       \
    W(cuMemcpyDtoH, (void *a, cuda_device_ptr b, size_t c), (a, b, c))                             \
    W(cuMemsetD8, (cuda_device_ptr a, unsigned char b, size_t c), (a, b, c))                       \
    W(cuStreamCreate, (cuda_stream * a, unsigned b), (a, b))                                       \
    W(cuStreamCreateWithPriority, (cuda_stream * a, unsigned b, int c), (a, b, c))                 \
    W(cuGreenCtxStreamCreate, (cuda_stream * a, cuda_green_ctx b, unsigned c, int d),              \
      (a, b, c, d))                                                                                \
    W(cuStreamDestroy, (cuda_stream a), (a))                                                       \
    W(cuStreamSynchronize, (cuda_stream a), (a))                                                   \
    W(cuCtxSynchronize, (void), ())                                                                \
    W(cuCtxSetLimit, (cuda_limit a, size_t b), (a, b))                                             \
    W(cuEventCreate, (cuda_event * a, unsigned b), (a, b))                                         \
    W(cuEventDestroy, (cuda_event a), (a))                                                         \
    W(cuEventSynchronize, (cuda_event a), (a))                                                     \
    W(cuModuleLoadDataEx,                                                                          \
      (cuda_module * a, const void *b, unsigned c, cuda_jit_option *d, void **e), (a, b, c, d, e)) \
    W(cuModuleUnload, (cuda_module a), (a))                                                        \
    W(cuModuleGetFunction, (cuda_function * a, cuda_module b, const char *c), (a, b, c))           \
    W(cuModuleGetGlobal, (cuda_device_ptr * a, size_t * b, cuda_module c, const char *d),          \
      (a, b, c, d))                                                                                \
    W(cuFuncGetAttribute, (int *a, cuda_function_attribute b, cuda_function c), (a, b, c))         \
    W(cuFuncSetAttribute, (cuda_function a, cuda_function_attribute b, int c), (a, b, c))          \
    W(cuFuncGetParamInfo, (cuda_function a, size_t b, size_t * c, size_t * d), (a, b, c, d))       \
    W(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *a, cuda_function b, int c, size_t d),     \
      (a, b, c, d))                                                                                \
    W(cuGreenCtxCreate, (cuda_green_ctx * a, cuda_resource_desc b, cuda_device c, unsigned d),     \
      (a, b, c, d))                                                                                \
    W(cuGreenCtxDestroy, (cuda_green_ctx a), (a))                                                  \
    W(cuLaunchKernel,                                                                              \
      (cuda_function a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,    \
       unsigned h, cuda_stream i, void **j, void **k),                                             \
      (a, b, c, d, e, f, g, h, i, j, k))                                                           \
    W(cuMemcpyAsync, (cuda_device_ptr a, cuda_device_ptr b, size_t c, cuda_stream d),              \
      (a, b, c, d))                                                                                \
    W(cuMemcpyHtoDAsync, (cuda_device_ptr a, const void *b, size_t c, cuda_stream d),              \
      (a, b, c, d))                                                                                \
    W(cuMemsetD8Async, (cuda_device_ptr a, unsigned char b, size_t c, cuda_stream d),              \
      (a, b, c, d))                                                                                \
    W(cuMemsetD16Async, (cuda_device_ptr a, unsigned short b, size_t c, cuda_stream d),            \
      (a, b, c, d))                                                                                \
    W(cuMemsetD32Async, (cuda_device_ptr a, unsigned b, size_t c, cuda_stream d), (a, b, c, d))    \
    W(cuStreamWaitEvent, (cuda_stream a, cuda_event b, unsigned c), (a, b, c))                     \
    W(cuStreamBatchMemOp, (cuda_stream a, unsigned b, cuda_mem_op_params *c, unsigned d),          \
      (a, b, c, d))                                                                                \
    W(cuEventRecord, (cuda_event a, cuda_stream b), (a, b))                                        \
    W(cuStreamQuery, (cuda_stream a), (a))                                                         \
    W(cuEventQuery, (cuda_event a), (a))                                                           \
    W(cuEventElapsedTime, (float *a, cuda_event b, cuda_event c), (a, b, c))

#define W(name, parameters, arguments)                                                             \
    static __typeof__(((struct cuda_driver *)0)->name) real_##name;                                \
    static cuda_result seen_##name parameters                                                      \
    {                                                                                              \
        note(#name);                                                                               \
        return real_##name arguments;                                                              \
    }
/* clang-format off */
CALLS(W)
#undef W
/* clang-format on */

static const struct {
    const char *name;
    void *real;       /* where the pointer to the driver's function lies */
    const void *seen; /* where the pointer to ours lies */
} calls[] = {
#define W(name, parameters, arguments)                                                             \
    {#name, &real_##name, &(__typeof__(real_##name)){seen_##name}},
    CALLS(W)
#undef W
};

typedef cuda_result get_proc_address(const char *symbol, void **fn, int version, uint64_t flags,
                                     cuda_proc_address_status *status);

static get_proc_address *driver_lookup(void)
{
    const char *path = getenv("HELD_DRIVER");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
    void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    get_proc_address *lookup;
    if (!symbol)
        abort();
    memcpy(&lookup, &symbol, sizeof lookup);
    return lookup;
}

EXPORT get_proc_address cuGetProcAddress_v2;
EXPORT cuda_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                       cuda_proc_address_status *status)
{
    cuda_result result = driver_lookup()(symbol, fn, version, flags, status);
    for (size_t i = 0; result == CUDA_OK && *fn && i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, symbol)) {
            memcpy(calls[i].real, fn, sizeof *fn);
            memcpy(fn, calls[i].seen, sizeof *fn);
        }
    return result;
}
