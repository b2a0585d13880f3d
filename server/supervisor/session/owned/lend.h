/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_lend: device memory that clients have freed and keep (idle_memory.h), for clients that
 * lack memory. It is lent in a sense: its owner has it while nobody needs it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_LEND_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_LEND_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/account/quota.h"
#include "server/supervisor/session/owned/idle_memory.h"
#include "server/supervisor/session/session.h"

/* taken, here and below, is told of each block. */

/* Takes what the client itself keeps: its next small blocks fit between those that it uses. */
void session_lend_take_own(struct session *session, session_idle_memory_taken *taken);

static inline bool session_lend_is_other(const struct session *session, const struct session *other)
{
    return other != session && other->device == session->device;
}

/* Takes so many bytes of what others keep that count in this quota. Returns whether they had
 * any. */
bool session_lend_take(const struct session *session, const struct quota *culprit, uint64_t bytes,
                       session_idle_memory_taken *taken);

/* 0: now; otherwise in how many milliseconds the session may have the others looked at. */
uint64_t session_lend_due_in(const struct session *session);

/* The same as session_lend_take, for a request: the next look may have to wait. */
bool session_lend_look(const struct session *session, const struct quota *culprit, uint64_t bytes,
                       session_idle_memory_taken *taken);

/* A quota_others, whose context is the session: the memory that a request of its would be lent. */
uint64_t session_lend_idle(const void *context, const struct quota *total);

#endif
