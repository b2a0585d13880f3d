/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_memory: a client's device memory: allocations in regions that the worker maps. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_MEMORY_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/want.h"

struct heap_block;

/* Allocations of one client; the limit bounds the memory that this process spends on them. */
#define SESSION_ALLOCATIONS_MAX (UINT64_C(1) << 18)

session_handler session_memory_alloc, session_memory_free, session_memory_query;

/* Allocates want->count bytes for want->session and calls want->done; the want must live until
 * then. */
void session_memory_want(struct want *want);
/* Frees a block. It is used again only when the device is done with the client's work so far. */
void session_memory_return(struct session *session, struct heap_block *block);

/* A client's limit may be lower now, or memory be requested for it: takes what it keeps idle if it
 * has more than its limit, and so many bytes of what the device's other clients keep. */
void session_memory_make_room(struct session *session, uint64_t request);

/*
 * An amount of `bytes` lacks room in this quota, which other clients' memory counts in: what they
 * keep idle is taken from them. Returns whether it may come, so that the caller may wait for
 * server->attaching_again. *until is when it has waited for long enough; 0 at first.
 */
bool session_memory_await_others(struct session *session, const struct quota *culprit,
                                 uint64_t bytes, uint64_t *until);

/* The session is taken down: every want that waits ends with WANT_SESSION_ENDED. */
void session_memory_flush(struct session *session);

/* The worker has nothing of the session any more: all of its memory is given back. */
void session_memory_release(struct session *session);

/* Has a new worker map what the one before had mapped (session_send_restoring). */
void session_memory_restore(struct session *session, worker_link_reply *answered);

/*
 * The records of the device memory, and the way back, regions first. Returns 0 or -errno. A region
 * that was being mapped comes back as one that is being unmapped: whether the worker mapped it is
 * not known. session_memory_resume asks the worker for all that was under way.
 */
kept_writer session_memory_region_pack, session_memory_block_pack;
int session_memory_regions_unpack(struct session *session, struct unpack *unpack);
int session_memory_blocks_unpack(struct session *session, const struct state_log_entry *entries,
                                 size_t count);
void session_memory_resume(struct session *session);

#endif
