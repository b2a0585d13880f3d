/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A driver library that passes everything on to another one, and misbehaves in one call:
 *
 *   BROKEN_DRIVER=/path/of/libcuda.so.1   the other one
 *   BROKEN_CALL=cuMemCreate               the call
 *   BROKEN_HOW=hang|crash|lack|hold       never returns, with every signal that can be blocked
 *                                         blocked; dies; is not there; takes 150 ms, with a lock
 *                                         that launches and queries of streams need, too
 *
 * For the tests of the steps that examine a driver.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { NOT_FOUND = 500, SYMBOL_NOT_FOUND = 1, SUCCESS = 0 };

typedef int get_proc_address(const char *, void **, int, uint64_t, int *);

/* Both take the place of calls with any parameters: by the ABI these are the caller's business. */
static int hang(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    while (pause() < 0)
        ;
    return 0;
}

static int crash(void)
{
    abort();
}

/* ---- hold ---- */
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static int (*held_call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
static int (*stream_query)(void *);
static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, void *, void **, void **);

/* No call of the driver that tests hold has more than six parameters. */
static int hold(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
    pthread_mutex_lock(&context_lock);
    usleep(150000);
    int result = held_call(a, b, c, d, e, f);
    pthread_mutex_unlock(&context_lock);
    return result;
}

static int query_under_lock(void *stream)
{
    pthread_mutex_lock(&context_lock);
    int result = stream_query(stream);
    pthread_mutex_unlock(&context_lock);
    return result;
}

static int launch_under_lock(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                             void **extra)
{
    pthread_mutex_lock(&context_lock);
    int result = launch_kernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
    pthread_mutex_unlock(&context_lock);
    return result;
}

/* Puts our own function in the place of the one that was found, which goes to *real. */
static void replace(void **entry, void *real, const void *ours)
{
    memcpy(real, entry, sizeof *entry);
    memcpy(entry, ours, sizeof *entry);
}

static int find_held(const char *name, const char *call, void **entry)
{
    int (*held)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) = hold;
    int (*query)(void *) = query_under_lock;
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **) = launch_under_lock;
    if (!strcmp(name, call))
        replace(entry, (void *)&held_call, &held);
    else if (!strcmp(name, "cuStreamQuery"))
        replace(entry, (void *)&stream_query, &query);
    else if (!strcmp(name, "cuLaunchKernel"))
        replace(entry, (void *)&launch_kernel, &launch);
    return SUCCESS;
}

static get_proc_address *next(void)
{
    static get_proc_address *found;
    if (!found) {
        const char *path = getenv("BROKEN_DRIVER");
        void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        *(void **)&found = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
        if (!found) {
            fprintf(stderr, "BROKEN_DRIVER does not name a driver\n");
            abort();
        }
    }
    return found;
}

EXPORT get_proc_address cuGetProcAddress_v2;

int cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status)
{
    const char *call = getenv("BROKEN_CALL"), *how = getenv("BROKEN_HOW");
    if (call && how && !strcmp(how, "hold")) {
        int result = next()(name, entry, version, flags, status);
        return result != SUCCESS || !*entry ? result : find_held(name, call, entry);
    }
    if (!call || !how || strcmp(call, name) != 0)
        return next()(name, entry, version, flags, status);
    int (*instead)(void) = strcmp(how, "hang") == 0 ? hang : crash;
    if (!strcmp(how, "lack")) {
        *entry = NULL;
        *status = SYMBOL_NOT_FOUND;
        return NOT_FOUND;
    }
    memcpy(entry, &instead, sizeof instead);
    *status = 0;
    return SUCCESS;
}
