/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * accounting: the file with what clients have used, and when lines go there (docs/accounting.md).
 *
 * A client has a line at its end. One that stays has others before: at each full hour, or as the
 * configuration says, and at midnight, so that days can be summed up. All times of day are UTC.
 * Without a file, nothing is written. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_ACCOUNTING_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "server/supervisor/keep/outbox.h"

struct server;
struct session;

struct accounting {
    struct outbox outbox;
    uv_timer_t tick;
    void (*cut)(struct session *session); /* makes a line of what it has used so far */
    bool open;
};

/* cut: of life/bill.h, which stands above. */
void accounting_open(struct server *server, void (*cut)(struct session *session));

/* Reads what an attached client has used, also where its worker is gone. */
void accounting_note(struct session *session);

/* Takes over the worker's answer (a worker_attached) about the client's multiprocessors: what it
 * has used until now counts for those that it had. */
void accounting_share(struct session *session, const void *answer);

/* Looks at once for lines that are due, and whether there is another file: a server took over
 * clients, or another configuration is in force. */
void accounting_look(struct server *server);

/* The file's path; "": there is none. */
const char *accounting_file(const struct server *server);

/* Writes a line, with its newline; copied. There is a file. */
void accounting_add(struct server *server, const char *line);

/* Writes or loses what is left. Returns whether all of that is over; if not, the loop's turn calls
 * it again. No session is left. */
bool accounting_end(struct server *server);

/* The beginning of the interval that this moment is in, both in us of CLOCK_REALTIME. Intervals
 * begin at midnight. */
uint64_t accounting_boundary(uint64_t now_us, uint64_t interval_us);

#endif
