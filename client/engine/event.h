/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * event: a point in a stream, which is a stream and a timeline value. The server knows only events
 * that record times; such an event has a handle. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_EVENT_H
#define GPUSHARE_CLIENT_ENGINE_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/list.h"

struct gpushare_stream;

struct gpushare_event {
    gpushare_connection *connection;
    uint32_t handle;      /* the server's; 0: the event records no times */
    pthread_mutex_t lock; /* guards recorded, lost, stream and value */
    bool recorded;
    bool lost; /* the work that it stands for was, by an interruption that is over (recovery.c) */
    bool settled; /* it was recorded behind lost work, when the stream had been recovered already */
    uint32_t stream;
    uint64_t value;
    struct list_link in_connection; /* in connection->events */
};

/* Makes an event. flags: 0 or GPUSHARE_EVENT_TIMING; only for the latter is the server asked.
 * *event is written on success only; event_close frees it, or the end of the connection. */
gpushare_error event_open(gpushare_connection *connection, uint32_t flags, gpushare_event **event);

/* Frees an event. Records and waits that were issued keep their effect. */
gpushare_error event_close(gpushare_event *event);

/* From now on the event stands for all work issued so far in this stream. Stream and event are
 * of the same connection. */
gpushare_error event_record(gpushare_event *event, struct gpushare_stream *stream);

/* SUCCESS if the work that the event stands for is done, or it was never recorded; NOT_READY if it
 * is not done; INTERRUPTED if it was lost. */
gpushare_error event_query(gpushare_event *event);

/* Waits until that work is done. Returns SUCCESS, INTERRUPTED if it was lost, or the error that
 * ended the connection. */
gpushare_error event_wait(gpushare_event *event);

/* Holds the stream: work pushed into it from now on begins when the event's work is done. The
 * stream may be of another connection of this process. Returns at once; INTERRUPTED if the event's
 * work is known to be lost. */
gpushare_error event_hold_stream(gpushare_event *event, struct gpushare_stream *stream);

/*
 * Gives the device's time between two events in milliseconds; it is negative if end came first.
 * Returns INVALID_HANDLE if the events are of two connections, record no times or were not
 * recorded; NOT_READY if the work of one is not done; INTERRUPTED if it was lost.
 */
gpushare_error event_elapsed(gpushare_event *start, gpushare_event *end, double *milliseconds);

/* At close: frees all events of the connection, without the server. */
void event_delete_all(gpushare_connection *connection);

#endif
