/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code_memory.h"

#include <assert.h>
#include <stdbool.h>
#include <unistd.h>

#include "common/units.h"
#include "protocol.h"

enum { MACHINE_PART = 4, CLIENT_PART = 4 };

void budget_open(struct budget *budget, uint64_t bytes)
{
    if (!bytes)
        bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / MACHINE_PART;
    *budget = (struct budget){.load = bytes / 2 / BUDGET_LOADS,
                              .most = bytes / 2,
                              .client_most = bytes / 2 / CLIENT_PART};
    pthread_mutex_init(&budget->lock, NULL);
}

void budget_close(struct budget *budget)
{
    assert(budget->kept == 0);
    pthread_mutex_destroy(&budget->lock);
}

static uint32_t refuse(struct refusal *why, const char *whose, uint64_t wanted, uint64_t used,
                       uint64_t most, const char *remedy)
{
    char texts[3][UNITS_TEXT];
    return refusal_say(
        why, PROTO_ERROR_SERVER_RESOURCES,
        "%s may take %s of the server's memory, of which %s are in use, and this one "
        "needs %s: %s, or give gpushared a larger --image-memory",
        whose, units_format_bytes(most, texts[0]), units_format_bytes(used, texts[1]),
        units_format_bytes(wanted, texts[2]), remedy);
}

uint32_t budget_keep(struct budget *budget, uint64_t *client, uint64_t bytes, struct refusal *why)
{
    pthread_mutex_lock(&budget->lock);
    uint64_t kept = budget->kept, own = *client;
    bool client_may = bytes <= budget->client_most - own, all_may = bytes <= budget->most - kept;
    if (client_may && all_may) {
        budget->kept += bytes;
        *client += bytes;
    }
    pthread_mutex_unlock(&budget->lock);
    if (!client_may)
        return refuse(why, "the modules of one client", bytes, own, budget->client_most,
                      "unload modules");
    if (!all_may)
        return refuse(why, "the modules of all clients", bytes, kept, budget->most,
                      "wait until others unload theirs");
    return 0;
}

void budget_return(struct budget *budget, uint64_t *client, uint64_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    assert(bytes <= *client && bytes <= budget->kept);
    *client -= bytes;
    budget->kept -= bytes;
    pthread_mutex_unlock(&budget->lock);
}
