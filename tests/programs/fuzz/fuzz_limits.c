/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Fuzzes the limits in the environment. The input has the values of eleven variables, each ended by
 * NUL. Besides memory errors it finds a failure without a sentence, a value out of its range, and a
 * limit or device that the table does not have.
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
    const struct allowance *asked = &wish->allowance;
    const struct allowance_range *memory = &asked->part[RESOURCE_MEMORY];
    struct allowance known = *asked;
    struct allowance_excess excess;
    must(asked->threads.limit == ALLOWANCE_UNSET || asked->threads.limit <= ALLOWANCE_WHOLE,
         "a share above the whole");
    known.memory = allowance_none.memory;
    must(!allowance_exceeds(&known, &excess), "a request above its limit");
    if (memory->limit != ALLOWANCE_UNSET)
        must(memory->limit >= 1 && memory->limit <= ALLOWANCE_WHOLE, "a part above the whole");
    must(asked->priority == ALLOWANCE_UNSET ||
             asked->priority <= allowance_scalar(SCALAR_PRIORITY)->most,
         "priority above its most");
    must(limits_name_is_valid(wish->name), "a name that is not clean");
}

static void check_resolution(const struct limits_wish *wish)
{
    static const uint8_t uuids[4][LIMITS_UUID_BYTES] = {{0}, {0xab}, {0xab, 0xcd}, {1, 2, 3}};
    struct limits_devices devices = {.uuids = uuids, .count = 4};
    const unsigned *indices = devices.indices;
    uint64_t bytes[DEVICES_MAX];
    struct error why = {0};
    uint32_t error = limits_visible_resolve(wish, &devices, &why);
    must(!error || why.text[0], "refused without a word");
    if (error)
        return;
    must(devices.visible <= 4, "more visible devices than there are");
    for (unsigned i = 0; i < devices.visible; i++) {
        must(indices[i] < 4, "a device that is not in the table");
        for (unsigned j = 0; j < i; j++)
            must(indices[i] != indices[j], "a device twice");
    }
    error = limits_memory_resolve(wish, &devices, bytes, &why);
    must(!error || why.text[0], "refused without a word");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *values[VARIABLES] = {0};
    size_t at = 0;
    /* Each value gets a block of its own, so that a read beyond its end is noticed. */
    for (size_t i = 0; i < VARIABLES && at < size; i++) {
        size_t length = strnlen((const char *)data + at, size - at);
        values[i] = malloc(length + 1);
        must(values[i] != NULL, "no memory");
        memcpy(values[i], data + at, length);
        values[i][length] = '\0';
        at += length + 1;
    }
    struct limits_wish wish;
    struct error why = {0};
    uint32_t error = limits_wish_read(&wish, get, values, &why);
    must(!error || (error == PROTO_ERROR_INVALID_ENVIRONMENT && why.text[0]),
         "refused without a word");
    if (!error) {
        check_wish(&wish);
        check_resolution(&wish);
    }
    for (size_t i = 0; i < VARIABLES; i++)
        free(values[i]);
    return 0;
}
