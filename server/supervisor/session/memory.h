/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_memory: a client's device memory: allocations in regions that the worker maps.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_MEMORY_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_MEMORY_H

#include <stdint.h>

#include "server/supervisor/session/session.h"

struct heap_block;

/* Limits of one client; they bound the memory that this process spends on it. */
#define SESSION_ALLOCATIONS_MAX (UINT64_C(1) << 18)

session_handler session_memory_alloc, session_memory_free, session_memory_query;

enum want_outcome { WANT_SERVED, WANT_REFUSED, WANT_SESSION_ENDED };

struct want_answer {
    enum want_outcome outcome;
    struct heap_block *block; /* of WANT_SERVED: the memory, used */
    uint32_t error;           /* of WANT_REFUSED */
    const char *text;         /* of WANT_REFUSED: a sentence */
};

/* Device memory that somebody waits for. */
struct want {
    struct want *next;
    struct session *session;
    uint64_t count; /* bytes */
    /* Called exactly once, maybe before session_memory_want returns. It may want and return memory
     * and may mark the session, whose caller finds it as it was. */
    void (*done)(struct want *want, const struct want_answer *answer);
};

void session_memory_want(struct want *want);
void session_memory_return(struct session *session, struct heap_block *block);

/* The session is taken down: all that wait are told. */
void session_memory_flush(struct session *session);

/* The worker has nothing of it any more: all goes back. */
void session_memory_release(struct session *session);

#endif
