/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * event: a stream and a timeline value; one that takes times is known to the server
 * too, under a handle.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_EVENT_H
#define GPUSHARE_CLIENT_ENGINE_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_event {
    gpushare_connection *connection;
    uint32_t handle;      /* 0: takes no times */
    pthread_mutex_t lock; /* what follows */
    bool recorded;
    uint32_t stream;
    uint64_t value;
    struct gpushare_event *next, **link; /* in connection->events */
};

/* What the event stands for now. False if it was never recorded. */
bool event_point(gpushare_event *event, uint32_t *stream, uint64_t *value);

/* At close: frees all events of the connection, without the server. */
void event_forget(gpushare_connection *connection);

#endif
