/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/code_memory.h"

#include <assert.h>
#include <stdbool.h>

#include "common/machine.h"
#include "common/messages.h"
#include "common/units.h"
#include "protocol.h"

/* A quarter of the machine by default, and a quarter of what is kept for one client, so that three
 * greedy ones leave room for a fourth. */
enum { MACHINE_PART = 4, CLIENT_PART = 4 };

void code_memory_open(struct code_memory *code_memory, uint64_t bytes)
{
    if (!bytes)
        bytes = machine_memory() / MACHINE_PART;
    /* One half for the loads under way, the other for what loaded modules keep. */
    *code_memory = (struct code_memory){.load = bytes / 2 / CODE_MEMORY_LOADS,
                                        .max = bytes / 2,
                                        .client_max = bytes / 2 / CLIENT_PART};
    pthread_mutex_init(&code_memory->lock, NULL);
}

void code_memory_close(struct code_memory *code_memory)
{
    assert(code_memory->kept == 0);
    pthread_mutex_destroy(&code_memory->lock);
}

/* The format takes three amounts: what may be used, what is, and what this module needs. */
__attribute__((format(printf, 3, 0))) static uint32_t
refuse_charge(struct error *why, uint32_t error, const char *format, uint64_t max, uint64_t used,
              uint64_t wanted)
{
    char texts[3][UNITS_TEXT];
    return error_set(why, error, format, units_format_bytes(max, texts[0]),
                     units_format_bytes(used, texts[1]), units_format_bytes(wanted, texts[2]));
}

uint32_t code_memory_charge(struct code_memory *code_memory, uint64_t *client, uint64_t bytes,
                            struct error *why)
{
    pthread_mutex_lock(&code_memory->lock);
    uint64_t kept = code_memory->kept, own = *client;
    bool client_may = bytes <= code_memory->client_max - own,
         all_may = bytes <= code_memory->max - kept;
    if (client_may && all_may) {
        code_memory->kept += bytes;
        *client += bytes;
    }
    pthread_mutex_unlock(&code_memory->lock);
    if (!client_may)
        return refuse_charge(why, MESSAGE(image_memory_used_up), code_memory->client_max, own,
                             bytes);
    if (!all_may)
        return refuse_charge(why, MESSAGE(image_memory_used_up_by_all), code_memory->max, kept,
                             bytes);
    return 0;
}

void code_memory_refund(struct code_memory *code_memory, uint64_t *client, uint64_t bytes)
{
    pthread_mutex_lock(&code_memory->lock);
    assert(bytes <= *client && bytes <= code_memory->kept);
    *client -= bytes;
    code_memory->kept -= bytes;
    pthread_mutex_unlock(&code_memory->lock);
}

uint64_t code_memory_room(struct code_memory *code_memory)
{
    pthread_mutex_lock(&code_memory->lock);
    uint64_t room = code_memory->max - code_memory->kept;
    pthread_mutex_unlock(&code_memory->lock);
    return room;
}
