/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_client: what a session says to its client, and when it listens. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_CLIENT_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/loop/closer.h"

struct session;

/* Whether to read the client's next message: not while it is being attached, while a message is
 * parked, after the mark, or while it has PROTO_REQUESTS_MAX requests under way. */
bool session_reads(const struct session *session);

/* Has the loop wait for the client's messages, or for its hanging up alone while session_reads is
 * false. */
void session_poll(struct session *session);

/* Answer the client's message with this serial. If the client does not read its answers, that may
 * mark the session. fds stay the caller's. */
void session_answer(struct session *session, uint16_t opcode, uint64_t serial, const void *body,
                    const int *fds, unsigned fd_count);
void session_refuse(struct session *session, uint64_t serial, uint32_t error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
void session_refuse_why(struct session *session, uint64_t serial, const struct error *why);
/* Passes the worker's answer on to the client, whether it answers or refuses. */
void session_pass(struct session *session, uint64_t serial, const struct worker_answer *answer);

/* Finds another attached connection of the same process and group, by its number. NULL: there is
 * none, and the client's message with this serial has been refused. */
struct session *session_find_companion(struct session *session, uint64_t serial, uint32_t number);

/* The client, as a sender of descriptors. */
struct closer_sender session_sender(const struct session *session);

#endif
