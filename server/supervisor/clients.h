/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* clients: the server's sessions: accept, find, remove and kill them. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CLIENTS_H
#define GPUSHARE_SERVER_SUPERVISOR_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct proto_worker_usage;
struct session;
struct state_log_entry;
struct supervisor;

/*
 * Takes over a connected client socket (SOCK_SEQPACKET). If the client can't be served it is told
 * why, at once or in answer to its hello, and the socket is closed. The client's identity is the
 * kernel's word (SO_PEERCRED).
 */
void clients_accept(struct supervisor *supervisor, int fd);

/* Makes a session of what another server kept of it, and puts it into the list. Returns 0 or
 * -errno. */
int clients_adopt(struct supervisor *supervisor, uint32_t number,
                  const struct state_log_entry *entry);

/* The session with that number if it is attached, or NULL. */
struct session *clients_find_attached(const struct supervisor *supervisor, uint32_t number);

/* Takes a session off the list, after session_end has returned true. Its handles free it. */
void clients_remove(struct supervisor *supervisor, struct session *session);

/* Ends a client with PROTO_ERROR_KILLED. by names the asker, for the log. Returns 0, or -ENOENT if
 * there is no such client or it leaves already. */
int clients_kill(struct supervisor *supervisor, uint32_t client, const char *by);

/* Lets no new clients attach to a device, or lets them again; those that wait to attach are
 * answered accordingly. Clients that are attached go on. */
void clients_drain(struct supervisor *supervisor, uint32_t device, bool drained);

/*
 * Ends a client that leaves and whose work has not ended, by replacing its device's worker. Without
 * force it is refused, and *why names the clients that would end too. usage: what the worker says
 * of the client now, NULL if it does not answer. A client without work in flight is refused even
 * with force, and *why names the client that it waits for. Returns 0 or an error number.
 */
uint32_t clients_kill_leaving(struct supervisor *supervisor, uint32_t client,
                              const struct proto_worker_usage *usage, bool force, const char *by,
                              struct error *why);

#endif
