/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A driver library that passes everything on to another one, and misbehaves in one call:
 *
 *   BROKEN_DRIVER=/path/of/libcuda.so.1   the other one
 *   BROKEN_CALL=cuMemCreate               the call
 *   BROKEN_HOW=hang|crash|lack            never returns, with every signal that can be blocked
 *                                         blocked; dies; is not there
 *
 * For the tests of the steps that examine a driver.
 */
#include <dlfcn.h>
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
