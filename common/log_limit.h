/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * log_limit: how many lines of the log a client may bring about, and a user with all clients. Lines
 * beyond that are left out and counted, so that nobody fills a disk or hides others' lines. Any
 * thread.
 */
#ifndef GPUSHARE_COMMON_LOG_LIMIT_H
#define GPUSHARE_COMMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Lines in so many seconds. A client that works has three in its life. journald takes 10000 of a
 * service in 30 s by default, so ten users together stay about there. */
enum { LOG_LIMIT_SECONDS = 10, LOG_LIMIT_CLIENT = 30, LOG_LIMIT_USER = 500 };

/* Whether a line about this client may be logged now (CLOCK_MONOTONIC, ns). If not, it is counted.
 */
bool log_limit_admits(uint32_t client, uint32_t uid, uint64_t now);

struct log_limit_over {
    uint32_t client; /* 0: all clients of the user */
    uint32_t uid;
    uint32_t left_out; /* lines */
};

/* Takes one count of lines that were left out and whose time is over. Returns whether there is one.
 */
bool log_limit_over(uint64_t now, struct log_limit_over *over);

/* Forgets all; for tests. */
void log_limit_reset(void);

#endif
