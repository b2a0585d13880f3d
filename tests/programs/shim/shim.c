/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A CUDA driver that passes every call to another, and makes chosen calls wait until the device is
 * idle, with a lock that submissions take too. It knows what runs by asking each stream, so it
 * shares nothing with the context's lock of the software GPU, which is off below it.
 *
 * SHIM_DRIVER=FILE: absolute path of the driver below.
 * SHIM_WAITS="cuMemUnmap cuModuleLoadDataEx": the calls that wait, of those that have a row of
 * WAITING_CALLS. cuLaunchKernel stands for a launch that needs more local memory than any before.
 *
 * SHIM_COUNT=FILE: such a call adds a byte to this file when it is made.
 * SHIM_COUNTS="cuMemMap": calls of WAITING_CALLS that are counted and do not wait.
 *
 * SHIM_HANGS="submitter cuLaunchKernel FILE": this call, if threads of this name make it, does not
 * go on while FILE is there. A submission or a question, no call of SHIM_WAITS.
 *
 * SHIM_GHOST=FILE: the first fill of words leaves a process that counts in the first of them
 * all the time, whatever becomes of the worker. Its number is then in FILE. It ends by itself after
 * GHOST_SECONDS, in case the test fails.
 *
 * A call that waited for more than 10 ms is named on standard error.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/cuda/cuda_driver.h"

#define EXPORT __attribute__((visibility("default")))

/* Local memory of a thread before anything grows it, in bytes: CUDA's default stack. */
enum { FIRST_LOCAL = 1024, IDLE_LOOK_US = 200, LATE_MS = 10, GHOST_SECONDS = 120 };

static struct cuda_driver real;
static bool opened;

/* ---- what runs ---- */

/* The streams that are there; the legacy stream is asked besides. */
static pthread_mutex_t book_lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_stream *book;
static size_t book_count, book_room;

static void book_add(cuda_stream stream)
{
    pthread_mutex_lock(&book_lock);
    if (array_reserve(book, book_room, book_count + 1) < 0)
        abort();
    book[book_count++] = stream;
    pthread_mutex_unlock(&book_lock);
}

static void book_remove(cuda_stream stream)
{
    pthread_mutex_lock(&book_lock);
    for (size_t i = 0; i < book_count; i++)
        if (book[i] == stream) {
            book[i] = book[--book_count];
            break;
        }
    pthread_mutex_unlock(&book_lock);
}

/* A device that a fault ended has nothing left to wait for. */
static bool is_idle(void)
{
    pthread_mutex_lock(&book_lock);
    bool busy = real.cuStreamQuery(NULL) == CUDA_ERR_NOT_READY;
    for (size_t i = 0; i < book_count && !busy; i++)
        busy = real.cuStreamQuery(book[i]) == CUDA_ERR_NOT_READY;
    pthread_mutex_unlock(&book_lock);
    return !busy;
}

/* ---- the lock ---- */

/* Submissions share it; calls that wait have it alone, and go first: with a lock that prefers
 * readers, a thread that submits in a loop would keep them out for ever. */
static pthread_rwlock_t context_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void wait_for_device(const char *call)
{
    double start = now_ms();
    while (!is_idle())
        usleep(IDLE_LOOK_US);
    double waited = now_ms() - start;
    if (waited > LATE_MS)
        fprintf(stderr, "shim: %s waited %.0f ms\n", call, waited);
}

static bool is_named(const char *call, const char *variable)
{
    const char *names = getenv(variable);
    size_t length = strlen(call);
    for (names = names ? names : ""; *names; names += strspn(names, " ")) {
        size_t word = strcspn(names, " ");
        if (word == length && !strncmp(names, call, length))
            return true;
        names += word;
    }
    return false;
}

static void count(void)
{
    const char *path = getenv("SHIM_COUNT");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    if (write(fd, ".", 1) != 1)
        abort();
    close(fd);
}

static bool must_wait(const char *call)
{
    if (is_named(call, "SHIM_COUNTS"))
        count();
    return is_named(call, "SHIM_WAITS");
}

static void take_alone(const char *call)
{
    count();
    pthread_rwlock_wrlock(&context_lock);
    wait_for_device(call);
}

static void let_go(void)
{
    pthread_rwlock_unlock(&context_lock);
}

/* ---- calls that wait, if they are named ---- */

/* X(name, parameters, arguments) */
#define WAITING_CALLS(X)                                                                           \
    X(cuCtxSetLimit, (cuda_limit limit, size_t value), (limit, value))                             \
    X(cuFuncSetAttribute, (cuda_function function, cuda_function_attribute attribute, int value),  \
      (function, attribute, value))                                                                \
    X(cuGreenCtxCreate,                                                                            \
      (cuda_green_ctx * green, cuda_resource_desc desc, cuda_device device, unsigned flags),       \
      (green, desc, device, flags))                                                                \
    X(cuGreenCtxDestroy, (cuda_green_ctx green), (green))                                          \
    X(cuMemAlloc, (cuda_device_ptr * ptr, size_t size), (ptr, size))                               \
    X(cuMemFree, (cuda_device_ptr ptr), (ptr))                                                     \
    X(cuMemFreeHost, (void *ptr), (ptr))                                                           \
    X(cuMemHostAlloc, (void **ptr, size_t size, unsigned flags), (ptr, size, flags))               \
    X(cuMemHostRegister, (void *ptr, size_t size, unsigned flags), (ptr, size, flags))             \
    X(cuMemHostUnregister, (void *ptr), (ptr))                                                     \
    X(cuMemMap,                                                                                    \
      (cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle,                    \
       unsigned long long flags),                                                                  \
      (ptr, size, offset, handle, flags))                                                          \
    X(cuMemSetAccess,                                                                              \
      (cuda_device_ptr ptr, size_t size, const cuda_mem_access_desc *desc, size_t count),          \
      (ptr, size, desc, count))                                                                    \
    X(cuMemUnmap, (cuda_device_ptr ptr, size_t size), (ptr, size))                                 \
    X(cuModuleLoadDataEx,                                                                          \
      (cuda_module * module, const void *image, unsigned count, cuda_jit_option *options,          \
       void **values),                                                                             \
      (module, image, count, options, values))                                                     \
    X(cuModuleUnload, (cuda_module module), (module))

#define X(name, parameters, arguments)                                                             \
    static cuda_result shim_##name parameters                                                      \
    {                                                                                              \
        if (!must_wait(#name))                                                                     \
            return real.name arguments;                                                            \
        take_alone(#name);                                                                         \
        cuda_result result = real.name arguments;                                                  \
        let_go();                                                                                  \
        return result;                                                                             \
    }
WAITING_CALLS(X)
#undef X

static cuda_result shim_cuStreamCreateWithPriority(cuda_stream *stream, unsigned flags,
                                                   int priority)
{
    bool waits = must_wait("cuStreamCreateWithPriority");
    if (waits)
        take_alone("cuStreamCreateWithPriority");
    cuda_result result = real.cuStreamCreateWithPriority(stream, flags, priority);
    if (result == CUDA_OK)
        book_add(*stream);
    if (waits)
        let_go();
    return result;
}

static cuda_result shim_cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    return shim_cuStreamCreateWithPriority(stream, flags, 0);
}

static cuda_result shim_cuGreenCtxStreamCreate(cuda_stream *stream, cuda_green_ctx green,
                                               unsigned flags, int priority)
{
    bool waits = must_wait("cuGreenCtxStreamCreate");
    if (waits)
        take_alone("cuGreenCtxStreamCreate");
    cuda_result result = real.cuGreenCtxStreamCreate(stream, green, flags, priority);
    if (result == CUDA_OK)
        book_add(*stream);
    if (waits)
        let_go();
    return result;
}

static cuda_result shim_cuStreamDestroy(cuda_stream stream)
{
    bool waits = must_wait("cuStreamDestroy");
    if (waits)
        take_alone("cuStreamDestroy");
    book_remove(stream);
    cuda_result result = real.cuStreamDestroy(stream);
    if (waits)
        let_go();
    return result;
}

/* ---- one call of one thread that hangs ---- */

/* Read before the first call; no call hangs where the thread's name is empty. */
static struct {
    char thread[16], call[48], file[256];
} hangs;

static bool read_hangs(void)
{
    const char *text = getenv("SHIM_HANGS");
    return !text || sscanf(text, "%15s %47s %255s", hangs.thread, hangs.call, hangs.file) == 3;
}

/* Without a lock, so that the others go on as far as they can. */
static void hang_if_named(const char *call)
{
    char thread[16] = "";
    if (!*hangs.thread || strcmp(call, hangs.call))
        return;
    prctl(PR_GET_NAME, thread, 0, 0, 0);
    while (!strcmp(thread, hangs.thread) && access(hangs.file, F_OK) == 0)
        usleep(IDLE_LOOK_US);
}

/* ---- questions ---- */

/* X(name, parameters, arguments) */
#define QUESTIONS(X)                                                                               \
    X(cuEventQuery, (cuda_event event), (event))                                                   \
    X(cuStreamQuery, (cuda_stream stream), (stream))

#define X(name, parameters, arguments)                                                             \
    static cuda_result shim_##name parameters                                                      \
    {                                                                                              \
        hang_if_named(#name);                                                                      \
        return real.name arguments;                                                                \
    }
QUESTIONS(X)
#undef X

/* ---- submissions ---- */

/* X(name, parameters, arguments) */
#define SUBMISSIONS(X)                                                                             \
    X(cuMemcpy, (cuda_device_ptr dst, cuda_device_ptr src, size_t size), (dst, src, size))         \
    X(cuMemcpyAsync, (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream),  \
      (dst, src, size, stream))                                                                    \
    X(cuMemcpyHtoD, (cuda_device_ptr dst, const void *src, size_t size), (dst, src, size))         \
    X(cuMemcpyDtoH, (void *dst, cuda_device_ptr src, size_t size), (dst, src, size))               \
    X(cuMemcpyDtoD, (cuda_device_ptr dst, cuda_device_ptr src, size_t size), (dst, src, size))     \
    X(cuMemcpyHtoDAsync, (cuda_device_ptr dst, const void *src, size_t size, cuda_stream stream),  \
      (dst, src, size, stream))                                                                    \
    X(cuMemcpyDtoHAsync, (void *dst, cuda_device_ptr src, size_t size, cuda_stream stream),        \
      (dst, src, size, stream))                                                                    \
    X(cuMemcpyDtoDAsync,                                                                           \
      (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream),                 \
      (dst, src, size, stream))                                                                    \
    X(cuMemsetD8, (cuda_device_ptr dst, unsigned char value, size_t count), (dst, value, count))   \
    X(cuMemsetD16, (cuda_device_ptr dst, unsigned short value, size_t count), (dst, value, count)) \
    X(cuMemsetD32, (cuda_device_ptr dst, unsigned value, size_t count), (dst, value, count))       \
    X(cuMemsetD8Async,                                                                             \
      (cuda_device_ptr dst, unsigned char value, size_t count, cuda_stream stream),                \
      (dst, value, count, stream))                                                                 \
    X(cuMemsetD16Async,                                                                            \
      (cuda_device_ptr dst, unsigned short value, size_t count, cuda_stream stream),               \
      (dst, value, count, stream))                                                                 \
    X(cuStreamWaitEvent, (cuda_stream stream, cuda_event event, unsigned flags),                   \
      (stream, event, flags))                                                                      \
    X(cuStreamWriteValue32,                                                                        \
      (cuda_stream stream, cuda_device_ptr address, uint32_t value, unsigned flags),               \
      (stream, address, value, flags))                                                             \
    X(cuStreamWriteValue64,                                                                        \
      (cuda_stream stream, cuda_device_ptr address, uint64_t value, unsigned flags),               \
      (stream, address, value, flags))                                                             \
    X(cuStreamBatchMemOp,                                                                          \
      (cuda_stream stream, unsigned count, cuda_mem_op_params *ops, unsigned flags),               \
      (stream, count, ops, flags))                                                                 \
    X(cuEventRecord, (cuda_event event, cuda_stream stream), (event, stream))                      \
    X(cuLaunchHostFunc, (cuda_stream stream, cuda_host_fn fn, void *user), (stream, fn, user))

#define X(name, parameters, arguments)                                                             \
    static cuda_result shim_##name parameters                                                      \
    {                                                                                              \
        hang_if_named(#name);                                                                      \
        pthread_rwlock_rdlock(&context_lock);                                                      \
        cuda_result result = real.name arguments;                                                  \
        let_go();                                                                                  \
        return result;                                                                             \
    }
SUBMISSIONS(X)
#undef X

/* ---- a process that is left ---- */

/* It has the worker's mappings of device memory, which on the software GPU are the memory. */
static _Noreturn void haunt(cuda_device_ptr word)
{
    const double end = now_ms() + GHOST_SECONDS * 1e3;
    while (now_ms() < end) {
        __atomic_fetch_add((uint32_t *)(uintptr_t)word, 1, __ATOMIC_SEQ_CST);
        usleep(20);
    }
    _exit(0);
}

static void leave_ghost(cuda_device_ptr word)
{
    char part[280];
    const char *path = getenv("SHIM_GHOST");
    if (!path || access(path, F_OK) == 0)
        return;
    snprintf(part, sizeof part, "%s.part", path);
    pid_t pid = fork();
    if (pid == 0)
        haunt(word);
    FILE *file = fopen(part, "we");
    if (pid < 0 || !file || fprintf(file, "%d\n", (int)pid) < 0 || fclose(file) ||
        rename(part, path))
        abort();
}

static cuda_result shim_cuMemsetD32Async(cuda_device_ptr dst, unsigned value, size_t count,
                                         cuda_stream stream)
{
    hang_if_named("cuMemsetD32Async");
    pthread_rwlock_rdlock(&context_lock);
    cuda_result result = real.cuMemsetD32Async(dst, value, count, stream);
    let_go();
    leave_ghost(dst);
    return result;
}

/* ---- launches ---- */

static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;
static int local_bytes = FIRST_LOCAL;

static bool grows_local(cuda_function function)
{
    int bytes = 0;
    real.cuFuncGetAttribute(&bytes, CUDA_FUNC_LOCAL_SIZE_BYTES, function);
    pthread_mutex_lock(&local_lock);
    bool grows = bytes > local_bytes;
    if (grows)
        local_bytes = bytes;
    pthread_mutex_unlock(&local_lock);
    return grows;
}

static cuda_result shim_cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared_bytes, cuda_stream stream,
                                       void **params, void **extra)
{
    hang_if_named("cuLaunchKernel");
    if (must_wait("cuLaunchKernel") && grows_local(function)) {
        take_alone("cuLaunchKernel");
        let_go();
    }
    pthread_rwlock_rdlock(&context_lock);
    cuda_result result = real.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                             block_z, shared_bytes, stream, params, extra);
    let_go();
    return result;
}

/* ---- how the driver above finds all this ---- */

static const struct {
    const char *name;
    void (*function)(void);
} shim_rows[] = {
#define X(name, parameters, arguments) {#name, (void (*)(void))shim_##name},
    WAITING_CALLS(X) QUESTIONS(X) SUBMISSIONS(X)
#undef X
#define OWN(name)                                                                                  \
    {                                                                                              \
#name, (void (*)(void))shim_##name                                                         \
    }
        OWN(cuStreamCreate),
    OWN(cuStreamCreateWithPriority),
    OWN(cuGreenCtxStreamCreate),
    OWN(cuStreamDestroy),
    OWN(cuLaunchKernel),
    OWN(cuMemsetD32Async),
#undef OWN
};

static bool open_real(void)
{
    const char *path = getenv("SHIM_DRIVER");
    struct error why = {0};
    if (opened)
        return true;
    opened = path && !cuda_driver_open_partly(&real, path, &why);
    if (!opened)
        fprintf(stderr, "shim: SHIM_DRIVER: %s\n", path ? why.text : "not set");
    if (opened && !read_hangs()) {
        fprintf(stderr, "shim: SHIM_HANGS has a thread, a call and a file\n");
        opened = false;
    }
    return opened;
}

EXPORT cuda_result cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                       uint64_t flags, cuda_proc_address_status *status);

/* Called by one thread, before any other call. */
EXPORT cuda_result cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                       uint64_t flags, cuda_proc_address_status *status)
{
    void (*own)(void) = NULL;
    if (!open_real())
        return CUDA_ERR_SHARED_OBJECT_INIT_FAILED;
    cuda_result result = real.cuGetProcAddress(symbol, function, version, flags, status);
    if (result != CUDA_OK || !*function)
        return result;
    if (!strcmp(symbol, "cuGetProcAddress"))
        own = (void (*)(void))cuGetProcAddress_v2;
    for (size_t i = 0; i < sizeof shim_rows / sizeof *shim_rows && !own; i++)
        if (!strcmp(symbol, shim_rows[i].name))
            own = shim_rows[i].function;
    if (own)
        memcpy(function, &own, sizeof own);
    return result;
}
