/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* clients: the server's sessions: accepted, found, removed, killed. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CLIENTS_H
#define GPUSHARE_SERVER_SUPERVISOR_CLIENTS_H

#include <stdint.h>

struct session;
struct supervisor;

/*
 * Takes over a connected client socket (SOCK_SEQPACKET); closes it if it can't be
 * served, after telling the client why. Identity is the kernel's (SO_PEERCRED).
 */
void clients_accept(struct supervisor *supervisor, int fd);

/* The session of that number, whatever its state; NULL: there is none. */
struct session *clients_find(const struct supervisor *supervisor, uint32_t number);
/* The same if it is attached. */
struct session *clients_find_attached(const struct supervisor *supervisor, uint32_t number);

/* Takes it off the list: nothing of it is left. */
void clients_remove(struct supervisor *supervisor, struct session *session);

/* Ends a client with PROTO_ERROR_KILLED. by names who asked, for the log. 0, or -ENOENT. */
int clients_kill(struct supervisor *supervisor, uint32_t client, const char *by);

#endif
