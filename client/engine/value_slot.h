/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * value_slot: pinned words from which the device copies single values.
 *
 * A slot is taken from when its value is written there until the copy is done. Where all are taken
 * there come more: a copy may stand behind a wait without end, and the caller must not wait for it.
 *
 * Any thread. The lock is held while the server is asked for a page of slots.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_VALUE_SLOT_H
#define GPUSHARE_CLIENT_ENGINE_VALUE_SLOT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"

struct value_page;

struct value_slots {
    pthread_mutex_t lock;
    struct value_page *pages; /* malloc'ed; their words are host buffers of the connection */
};

void value_slot_init(struct value_slots *slots);

/* Frees the pages' descriptions. The words end with the connection. here: false in a forked child,
 * as in allocation_destroy. */
void value_slot_destroy(struct value_slots *slots, bool here);

/* Pushes a copy of a value of 8 bytes, and returns at once. destination: a multiple of 8, in one
 * allocation of the stream's connection. Returns OUT_OF_MEMORY where there are no more pinned
 * bytes, or an error of the stream. */
gpushare_error value_slot_write(struct gpushare_stream *stream, uint64_t destination,
                                uint64_t value);

#endif
