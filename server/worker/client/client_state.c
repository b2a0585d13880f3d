/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/client_state.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/messages.h"
#include "server/worker/client/client.h"

#define TO(state) (1u << CLIENT_##state)
/* A client may be detached in any served state, whatever it was doing. */
#define LEAVE TO(LEAVING)
/* The states that a visit may leave. */
#define VISITED (TO(IDLE) | TO(READY) | TO(FULL) | TO(HELD) | TO(VIOLATED))

static const struct {
    const char *name;
    uint32_t next; /* the states that may follow, one bit each */
} states[CLIENT_STATES] = {
    [CLIENT_ATTACHING] = {"attaching", TO(RESTORING) | TO(ASLEEP)},
    [CLIENT_RESTORING] = {"restoring", TO(ASLEEP) | LEAVE},
    [CLIENT_ASLEEP] = {"asleep", TO(IDLE) | TO(READY) | LEAVE},
    [CLIENT_IDLE] = {"idle", VISITED | TO(ASLEEP) | LEAVE},
    [CLIENT_READY] = {"ready", VISITED | LEAVE},
    [CLIENT_FULL] = {"full", VISITED | TO(PARKED) | LEAVE},
    /* From PARKED and HELD also to ASLEEP, for when the scan set has no memory for the client. */
    [CLIENT_PARKED] = {"parked", TO(ASLEEP) | TO(IDLE) | TO(READY) | TO(FULL) | LEAVE},
    [CLIENT_HELD] = {"held", TO(ASLEEP) | TO(IDLE) | TO(READY) | LEAVE},
    [CLIENT_VIOLATED] = {"violated", TO(REPORTED) | LEAVE},
    [CLIENT_REPORTED] = {"reported", LEAVE},
    [CLIENT_LEAVING] = {"leaving", TO(LEFT)},
    [CLIENT_LEFT] = {"left", 0},
};

bool client_state_follows(enum client_state from, enum client_state to)
{
    return states[from].next >> to & 1;
}

void client_state_set(struct client *client, enum client_state to)
{
    enum client_state from = client_state(client);
    if (from == to)
        return;
    if (!client_state_follows(from, to)) {
        log_error(MESSAGE_TEXT(client_state_step), client->number, states[from].name,
                  states[to].name);
        abort();
    }
    /* Released: a thread that sees the state without the lock also sees what led to it. */
    atomic_store_explicit(&client->shared.state, to, memory_order_release);
}
