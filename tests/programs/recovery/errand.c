/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/honest_private.h"

#include <stdlib.h>
#include <string.h>

#include "tests/programs/recovery/culprit.h"

static void memory(struct honest *honest)
{
    uint32_t count = 1 + honest_draw(honest, 8192);
    uint32_t *words = malloc(8 * (size_t)count);
    gpushare_address address;
    if (!words)
        honest_fail(honest, "no memory");
    MUST(honest, gpushare_memory_alloc(honest->gpu, 4 * (uint64_t)count, &address));
    for (uint32_t i = 0; i < count; i++)
        words[i] = (uint32_t)honest->random * i + 1;
    honest_store(honest, address, words, 4 * (uint64_t)count);
    honest_fetch(honest, words + count, address, 4 * (uint64_t)count);
    if (memcmp(words, words + count, 4 * (size_t)count))
        honest_fail(honest, "new memory has not what was copied to it");
    MUST(honest, gpushare_memory_free(honest->gpu, address));
    free(words);
}

static void buffer(struct honest *honest)
{
    uint64_t bytes = 4096 * (1 + (uint64_t)honest_draw(honest, 32));
    void *words;
    MUST(honest, gpushare_host_alloc(honest->gpu, bytes, &words));
    memset(words, 0x5a, bytes);
    honest_fetch(honest, words, honest->still, sizeof(uint32_t) * 16);
    if (memcmp(words, honest->still_host, sizeof(uint32_t) * 16))
        honest_fail(honest, "a new buffer has not what was copied to it");
    MUST(honest, gpushare_host_free(honest->gpu, words));
}

static void stream(struct honest *honest)
{
    gpushare_stream *made;
    gpushare_event *event;
    MUST(honest, gpushare_stream_create(honest->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &made));
    MUST(honest, gpushare_event_create(honest->gpu, 0, &event));
    MUST(honest, gpushare_event_record(event, made));
    MUST(honest, gpushare_stream_synchronize(honest->gpu, made));
    MUST(honest, gpushare_event_destroy(event));
    MUST(honest, gpushare_stream_destroy(made));
}

static void module(struct honest *honest)
{
    gpushare_module *made;
    gpushare_function *function;
    gpushare_address address;
    uint64_t size, total = 0;
    MUST(honest, gpushare_module_load(honest->gpu, recovery_ptx, 0, &made));
    MUST(honest, gpushare_module_function(made, "company", &function));
    MUST(honest, gpushare_module_variable(made, "total", &address, &size));
    honest_fetch(honest, &total, address, sizeof total);
    if (total != 1000)
        honest_fail(honest, "a new module's variable is %llu instead of 1000",
                    (unsigned long long)total);
    MUST(honest, gpushare_module_unload(made));
}

void errand_run(struct honest *honest)
{
    static void (*const errands[])(struct honest *) = {memory, memory, memory, buffer,
                                                       buffer, stream, stream, module};
    honest_phase(honest, PHASE_requesting);
    errands[honest_draw(honest, 8)](honest);
}
