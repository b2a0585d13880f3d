/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * event: a stream and a timeline value. The server knows only events that take times, by a handle.
 * Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_EVENT_H
#define GPUSHARE_CLIENT_ENGINE_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_stream;

struct gpushare_event {
    gpushare_connection *connection;
    uint32_t handle;      /* 0: takes no times */
    pthread_mutex_t lock; /* what follows */
    bool recorded;
    uint32_t stream;
    uint64_t value;
    struct gpushare_event *next, **link; /* in connection->events */
};

/* Makes an event; flags: 0 or GPUSHARE_EVENT_TIMING, which is asked of the server. *event is
 * written on success only; freed by event_close, or with the connection. */
gpushare_error event_open(gpushare_connection *connection, uint32_t flags, gpushare_event **event);

/* Frees it. Records and waits that were issued still count. */
gpushare_error event_close(gpushare_event *event);

/* From now on the event stands for all work issued so far in the stream, of the same connection. */
gpushare_error event_record(gpushare_event *event, struct gpushare_stream *stream);

/* Is the work done that it stands for? True if it was never recorded. */
bool event_is_done(gpushare_event *event);

/* Waits until it is. SUCCESS, or the error that ended the connection. */
gpushare_error event_wait(gpushare_event *event);

/* Work pushed into the stream from now on begins when that work is done. The stream may be of
 * another connection of this process. Returns at once. */
gpushare_error event_hold_stream(gpushare_event *event, struct gpushare_stream *stream);

/*
 * The device's time between the two, in milliseconds; negative if end came first. INVALID_HANDLE
 * if they are of two connections, take no times or were not recorded; NOT_READY.
 */
gpushare_error event_elapsed(gpushare_event *start, gpushare_event *end, double *milliseconds);

/* The stream and the value that the event stands for now. False if it was never recorded. */
bool event_point(gpushare_event *event, uint32_t *stream, uint64_t *value);

/* At close: frees all events of the connection, without the server. */
void event_delete_all(gpushare_connection *connection);

#endif
