/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * events: the latest lines of the server's log, so that an administrator can follow them where the
 * log itself is out of reach. Lines of debugging are not kept, and others are whatever the log's
 * level is. Any thread; the log is the process's, and so are they.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_EVENTS_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/log.h"

enum { EVENTS_KEPT = 512, EVENTS_TEXT = 400 };

struct event {
    uint64_t number;    /* from 1 on, without gaps */
    uint64_t moment_ns; /* CLOCK_REALTIME */
    enum log_level level;
    char text[EVENTS_TEXT]; /* cut, if it is longer */
};

/* Keeps the lines from now on. */
void events_begin(void);

/* The number of the latest event; 0: there is none. */
uint64_t events_latest(void);

/* Copies the first event that is kept and whose number is greater. Returns whether there is one. */
bool events_next(uint64_t after, struct event *event);

#endif
