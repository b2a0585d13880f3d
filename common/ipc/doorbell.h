/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * doorbell: how a client tells the submitter that a ring has work, without a
 * system call while the submitter is awake.
 *
 * A bitmap of two levels and an `asleep` flag in the client_header, and one
 * eventfd a client in an edge-triggered epoll set. The eventfd is never read: a
 * client could drain it or make it blocking, and every write is an edge anyway.
 * The counter of an eventfd that nobody reads is full after 2^64 - 2 writes.
 *
 * Either side may lie here; a lie delays or wakes for nothing, and only the liar.
 * tests/model/doorbell.pml.
 */
#ifndef GPUSHARE_COMMON_DOORBELL_H
#define GPUSHARE_COMMON_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

/* Client, any thread: ring `stream` has work, or a waiter. */
void doorbell_ring(struct proto_client_header *header, uint32_t stream, int eventfd);

/*
 * Submitter: takes all bits of one word of the second level that has any. Returns
 * the word's index and its bits, or -1 if no bit is set. streams bounds the index.
 */
int doorbell_take(struct proto_client_header *header, uint32_t streams, uint64_t *bits);

/* Submitter: does any bit stand? A relaxed look, for polling. */
bool doorbell_pending(const struct proto_client_header *header);

/*
 * Submitter: this client leaves the scan set. Returns true if it may (from now on
 * a ring writes the eventfd), false if a bit appeared meanwhile (it stays awake).
 */
bool doorbell_prepare_sleep(struct proto_client_header *header);

/* Submitter: it is back in the scan set. */
void doorbell_cancel_sleep(struct proto_client_header *header);

#endif
