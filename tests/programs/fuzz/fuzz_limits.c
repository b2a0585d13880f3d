/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Fuzzes the environment's dialect. Input: the values of eleven variables, each
 * ended by NUL. Besides memory errors it finds: a failure without a sentence, a
 * value out of its range, a limit or device that the table does not have.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
    "GPUSHARE_VISIBLE_DEVICES",
    "GPUSHARE_ACTIVE_THREAD_PERCENTAGE",
    "GPUSHARE_PINNED_HOST_MEM_LIMIT",
    "CUDA_MPS_CLIENT_PRIORITY",
    "GPUSHARE_CLIENT_NAME",
    "GPUSHARE_SOCKET",
    "GPUSHARE_THREADS_REQUEST",
    "GPUSHARE_TIME_REQUEST",
    "GPUSHARE_TIME_LIMIT",
    "GPUSHARE_FRACTION",
    "GPUSHARE_MEMORY_REQUEST",
    "GPUSHARE_HOST_MEMORY_REQUEST",
    "GPUSHARE_THREADS_LIMIT",
    "GPUSHARE_MEMORY_LIMIT",
    "GPUSHARE_HOST_MEMORY_LIMIT",
};
#define VARIABLES (sizeof names / sizeof names[0])

static const char *get(const char *name, void *context)
{
    char **values = context;
    for (size_t i = 0; i < VARIABLES; i++)
        if (strcmp(names[i], name) == 0)
            return values[i];
    return NULL;
}

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_limits: %s\n", what);
    abort();
}

static void check_wish(const struct limits_wish *wish)
{
    must(wish->thread_percentage <= 10000, "percentage above 100");
    must(wish->thread_request <= 10000 && wish->time_request <= 10000, "request above 100");
    must(!wish->thread_percentage || wish->thread_request <= wish->thread_percentage,
         "threads requested above their limit");
    must(!wish->time_limit || wish->time_request <= wish->time_limit,
         "time requested above its limit");
    must(!wish->fraction || (wish->time_request && wish->time_request <= wish->fraction),
         "a fraction that requests no time");
    must(wish->priority <= LIMITS_PRIORITY_MAX, "priority above its most");
    must(limits_name_is_valid(wish->name), "a name that is not clean");
}

static void check_resolution(const struct limits_wish *wish)
{
    static const uint8_t uuids[4][LIMITS_UUID_BYTES] = {{0}, {0xab}, {0xab, 0xcd}, {1, 2, 3}};
    unsigned indices[LIMITS_DEVICES_MAX];
    uint64_t bytes[LIMITS_DEVICES_MAX];
    char why[400] = "";
    int visible = limits_visible_resolve(wish, uuids, 4, indices, why, sizeof why);
    must(visible <= 4, "more visible devices than there are");
    must(visible >= 0 || why[0], "refused without a word");
    for (int i = 0; i < visible; i++) {
        must(indices[i] < 4, "a device that is not in the table");
        for (int j = 0; j < i; j++)
            must(indices[i] != indices[j], "a device twice");
    }
    if (visible < 0)
        return;
    int result =
        limits_memory_resolve(wish, uuids, 4, indices, (unsigned)visible, bytes, why, sizeof why);
    must(result == 0 || (result == -EINVAL && why[0]), "refused without a word");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *values[VARIABLES] = {0};
    size_t at = 0;
    /* Each value gets a block of its own, so that a step past its end is seen. */
    for (size_t i = 0; i < VARIABLES && at < size; i++) {
        size_t length = strnlen((const char *)data + at, size - at);
        values[i] = malloc(length + 1);
        must(values[i] != NULL, "no memory");
        memcpy(values[i], data + at, length);
        values[i][length] = '\0';
        at += length + 1;
    }
    struct limits_wish wish;
    char why[400] = "";
    int result = limits_wish_read(&wish, get, values, why, sizeof why);
    must(result == 0 || (result == -EINVAL && why[0]), "refused without a word");
    if (result == 0) {
        check_wish(&wish);
        check_resolution(&wish);
    }
    for (size_t i = 0; i < VARIABLES; i++)
        free(values[i]);
    return 0;
}
