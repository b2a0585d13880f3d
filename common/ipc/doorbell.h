/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * doorbell: how a client tells the submitter that a ring has work. While the submitter is awake,
 * this needs no system call.
 *
 * The client_header holds a bitmap of two levels and the flag `asleep`. Each client also has an
 * eventfd in the submitter's edge-triggered epoll set. The submitter never reads the eventfd: a
 * client could drain it or make it blocking, and each write is an edge without a read. Its counter
 * would be full only after 2^64 - 2 writes.
 *
 * Both sides write this memory, and a client may write anything. A false value delays that client's
 * work, or wakes the submitter for nothing; it affects no other client. tests/model/doorbell.pml
 * checks the handshake.
 */
#ifndef GPUSHARE_COMMON_IPC_DOORBELL_H
#define GPUSHARE_COMMON_IPC_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

/* Client, any thread: says that ring `stream` has work, or that a thread waits for its timeline.
 * Writes the eventfd if the submitter sleeps; of several threads that ring at once only one does
 * so. */
void doorbell_ring(struct proto_client_header *header, uint32_t stream, int eventfd);

/* Says the same without waking the submitter. For a thread of the worker: the eventfd is the
 * client's too, who could have the write to it block. */
void doorbell_mark(struct proto_client_header *header, uint32_t stream);

/*
 * Submitter: takes all bits of one word of the second level that has any. streams: the number of
 * the client's rings; bits beyond it are dropped. Returns the index of the word, and its bits in
 * *bits; or -1 if no bit was set.
 */
int doorbell_take(struct proto_client_header *header, uint32_t streams, uint64_t *bits);

/* Submitter: whether a bit may be set. This is a relaxed load, for polling. */
bool doorbell_pending(const struct proto_client_header *header);

/*
 * Submitter: announces that it stops scanning this client's rings. Returns true if it may: from now
 * on a ring of the doorbell writes the eventfd. Returns false if a bit was set meanwhile; then the
 * submitter is awake, as before.
 */
bool doorbell_prepare_sleep(struct proto_client_header *header);

/* Submitter: it scans this client's rings again, so ringing writes no eventfd. */
void doorbell_cancel_sleep(struct proto_client_header *header);

#endif
