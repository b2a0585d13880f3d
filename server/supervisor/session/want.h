/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * want: a wish for device memory, embedded in what waits for it, and its answer. Data alone:
 * session_memory serves it (session_memory_want). Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_WANT_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_WANT_H

#include <stdint.h>

#include "common/list.h"

struct heap_block;
struct session;

enum want_outcome { WANT_SERVED, WANT_REFUSED, WANT_SESSION_ENDED };

struct want_answer {
    enum want_outcome outcome;
    struct heap_block *block; /* WANT_SERVED: the memory, in state used; else NULL */
    uint32_t error;           /* WANT_REFUSED: the error number; else 0 */
    const char *text;         /* WANT_REFUSED: a sentence, until done returns; else "" */
};

struct want {
    struct queue_link link; /* in the session's wants, while it waits */
    struct session *session;
    uint64_t count; /* bytes */
    uint64_t until; /* ms of the loop: it waits for others' idle memory; 0: it never did */
    /* Called exactly once, maybe before session_memory_want returns. It may want and return memory,
     * and may mark the session; the session stays valid for its caller. */
    void (*done)(struct want *want, const struct want_answer *answer);
};

#endif
