/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_idle_memory: device memory that a client has freed and keeps for its next allocations
 * (client_header.idle). It stays charged to the client. The server takes it when an allocation
 * would be refused otherwise, the client's own or another's, and asks nobody.
 *
 * The client can write any word there. An address that is no block of the client's own is passed
 * over; a block that the client uses still is freed, as if the client had asked for that. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_IDLE_MEMORY_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_IDLE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct heap_block;
struct session;

typedef void session_idle_memory_taken(struct session *session, struct heap_block *block);

/* Takes all of the client's idle blocks and hands each to `taken`, in state used. Returns whether
 * there were any. */
bool session_idle_memory_take_all(struct session *session, session_idle_memory_taken *taken);

/* The same, until the client's charge falls by `least` bytes. Blocks of a region in which another
 * block is used stay with the client: to take them lowers nothing. Returns by how many bytes the
 * charge falls when the blocks are free. */
uint64_t session_idle_memory_take(struct session *session, uint64_t least,
                                  session_idle_memory_taken *taken);

/* The bytes by which the client's charges would be lower if all of its idle memory were taken:
 * those of regions in which no other block is used. */
uint64_t session_idle_memory_charged(const struct session *session);

#endif
