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
 * A visit by the submitter leaves a client of the scan set in whichever of IDLE, READY and FULL is
 * true then, or HELD, or VIOLATED; the completer turns FULL into READY when there is room.
 *
 * The state is written under client->lock: by the thread in brackets, by the submitter where there
 * is none. It may be read without the lock by a thread that can bear to see it change. What the
 * state says nothing else says: no flag repeats it.
 *
 * A new state takes its name here, its row in client_state.c, and its part in the questions below.
 * One for a client whose device is being replaced would be neither served nor leaving: it comes
 * from the served states and goes on to ASLEEP or LEAVING.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STATE_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STATE_H

#include <stdbool.h>

struct client;

enum client_state {
    CLIENT_ATTACHING, /* the control thread alone knows it */
    CLIENT_ASLEEP,    /* not looked at; its doorbell, a mark or the gate wakes it */
    CLIENT_IDLE,      /* in the scan set; nothing was ready when it was last visited */
    CLIENT_READY,     /* in the scan set; it has more to do */
    CLIENT_FULL,      /* in the scan set; more to do, and as much in flight as it may have */
    CLIENT_PARKED,    /* the same, out of the scan set: the completer sees when there is room */
    CLIENT_HELD,      /* more to do, not now: the gate or its placement wakes it */
    CLIENT_VIOLATED,  /* it broke the protocol: nothing more is read; control will tell the
                         supervisor */
    CLIENT_REPORTED,  /* and has been */
    CLIENT_LEAVING,   /* the submitter is to drop it */
    CLIENT_LEFT,      /* and has: freed as soon as nothing of it is in flight */
    CLIENT_STATES
};

/* Whether its rings are read. */
static inline bool client_state_is_served(enum client_state state)
{
    return state >= CLIENT_ASLEEP && state <= CLIENT_HELD;
}

/* Whether it is in the submitter's scan set. One that is LEAVING or VIOLATED is in it until the
 * submitter has seen that. */
static inline bool client_state_is_scanned(enum client_state state)
{
    return state >= CLIENT_IDLE && state <= CLIENT_FULL;
}

/* Whether it has more to do and waits until less of it is in flight. */
static inline bool client_state_is_full(enum client_state state)
{
    return state == CLIENT_FULL || state == CLIENT_PARKED;
}

/* Whether it is being detached. */
static inline bool client_state_is_leaving(enum client_state state)
{
    return state == CLIENT_LEAVING || state == CLIENT_LEFT;
}

/* Whether the drawing has an arrow from one to the other. */
bool client_state_follows(enum client_state from, enum client_state to);

/* "asleep"; for logs. */
const char *client_state_name(enum client_state state);

/* Changes the state; the same one again changes nothing. Under client->lock. A step that the
 * drawing lacks is a defect of the worker, which ends with it. */
void client_state_set(struct client *client, enum client_state to);

#endif
