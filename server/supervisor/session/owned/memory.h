/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_memory: a client's device memory: allocations in regions that the worker maps. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_MEMORY_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_MEMORY_H

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
