/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_state: in which state a client is, and the one function that changes it.
 *
 *              attached (control)
 *                  |
 *                  v
 *              ATTACHING --- refused: destroyed
 *                  | shown to the other threads (control)
 *                  +--> RESTORING --- detached (control) --> LEAVING
 *                  |       | resumed (control)
 *                  |<------'
 *    .-------------|-------- served: its rings are read -----------------------.
 *    |             v       rung, marked, named                                 |
 *    |  .------> ASLEEP ---------------------.                                 |
 *    |  |                                    v                                 |
 *    |  |  nothing to do       .----- the scan set -----.   not now            |
 *    |  +----------------------|-- IDLE   READY   FULL  |------------> HELD    |
 *    |  |  for a while         |                    |   |<------------         |
 *    |  |                      '--------------------|---'   named, marked,     |
 *    |  |  room (completer)              ^    |     |       rung               |
 *    |  '------------------- PARKED -----'    |     | as much in flight as it  |
 *    |                          ^    rung,    |     | may have, for a while    |
 *    |                          |    marked   |     |                          |
 *    |                          '-------------|-----'                          |
 *    '----------------------------------------|--------------------------------'
 *                                 its rings   |             | detached (control)
 *                                 lie         v             |
 *          REPORTED <--- told (control) --- VIOLATED        |
 *             |  detached (control)           |             |
 *             '-------------------------------+-------------+--> LEAVING
 *                                                                   | dropped
 *                                                                   v
 *                                            destroyed (control) <-- LEFT
 *                                            when nothing of it is in flight
 *
 * One step is not drawn: HELD becomes ASLEEP if there is no memory for the scan set.
 *
 * A visit by the submitter leaves a client of the scan set in whichever of IDLE, READY and FULL is
 * true then, or HELD, or VIOLATED. The completer turns FULL into READY when there is room.
 *
 * The state is written under client->lock: by the thread in brackets, or by the submitter where
 * the drawing names none. A thread may read it without the lock if it tolerates that the state
 * changes right afterwards. No flag repeats what the state says.
 *
 * A client that an earlier worker had is RESTORING until all its objects are back.
 *
 * A new state needs its name here, its row in client_state.c, and an answer to each of the
 * questions below.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STATE_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STATE_H

#include <stdbool.h>

struct client;

enum client_state {
    CLIENT_ATTACHING, /* only the control thread knows it */
    CLIENT_RESTORING, /* its objects are being made again; its rings are not read yet */
    CLIENT_ASLEEP,    /* out of the scan set; its doorbell, a mark or the gate wakes it */
    CLIENT_IDLE,      /* in the scan set; nothing was ready at the last visit */
    CLIENT_READY,     /* in the scan set; it has more to do */
    CLIENT_FULL,      /* in the scan set; more to do, and as much in flight as it may have */
    CLIENT_PARKED,    /* like FULL, out of the scan set; the completer sees when there is room */
    CLIENT_HELD,      /* more to do, not now; the gate or its placement wakes it */
    CLIENT_VIOLATED,  /* it broke the protocol; its rings are read no more, and the control thread
                         has to tell the supervisor */
    CLIENT_REPORTED,  /* it broke the protocol, and the supervisor has been told */
    CLIENT_LEAVING,   /* being detached; the submitter has to drop it */
    CLIENT_LEFT,      /* the submitter has dropped it; freed when nothing of it is in flight */
    CLIENT_STATES
};

/* Whether the submitter reads the client's rings. */
static inline bool client_state_is_served(enum client_state state)
{
    return state >= CLIENT_ASLEEP && state <= CLIENT_HELD;
}

/* Whether the state belongs to the submitter's scan set. A client that became LEAVING or VIOLATED
 * stays in the set's array until the submitter has seen that. */
static inline bool client_state_is_scanned(enum client_state state)
{
    return state >= CLIENT_IDLE && state <= CLIENT_FULL;
}

/* Whether the client has more to do and waits until less of it is in flight. */
static inline bool client_state_is_full(enum client_state state)
{
    return state == CLIENT_FULL || state == CLIENT_PARKED;
}

/* Whether the client is being detached. */
static inline bool client_state_is_leaving(enum client_state state)
{
    return state == CLIENT_LEAVING || state == CLIENT_LEFT;
}

/* Whether the drawing has an arrow from one state to the other. */
bool client_state_follows(enum client_state from, enum client_state to);

/* Changes the state; setting the present state again does nothing. A step that the drawing lacks is
 * a defect of the worker, so it ends the process. Under client->lock. */
void client_state_set(struct client *client, enum client_state to);

#endif
