/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * observer: the state of a connection, and the program's function that is told of changes. The
 * server writes the state into the status memory, so nobody is asked. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_OBSERVER_H
#define GPUSHARE_CLIENT_ENGINE_OBSERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "protocol.h"

struct observer {
    const struct proto_status_header *status; /* NULL: not attached yet */
    gpushare_observe observe;                 /* NULL: nobody is told */
    void *context;
    _Atomic uint64_t told; /* the state that was told last, in one word */
};

/* Reads the state. ended: the connection has. */
struct gpushare_connection_state observer_read(const struct observer *observer, bool ended);

/* Tells the program if the state differs from what was told last. Of threads that find the same
 * difference one tells it. */
void observer_look(struct observer *observer, bool ended);

#endif
