/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * batch_ends: the ends of batches for a driver that refuses stream memory operations.
 *
 * Otherwise the device writes a ring's timeline. Without that an event stands behind each
 * batch; the completer asks for it and writes the timeline itself, up to half a
 * millisecond later.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_BATCH_ENDS_H
#define GPUSHARE_SERVER_WORKER_RUN_BATCH_ENDS_H

#include <pthread.h>
#include <stdbool.h>

#include "common/cuda/cuda_driver.h"
#include "server/worker/client/client.h"

struct batch_end;

struct batch_ends {
    const struct gpu *gpu;    /* NULL before it is opened */
    cuda_result refused;      /* what memory operations were refused with; CUDA_OK: they work */
    pthread_mutex_t lock;     /* taken after a client's */
    struct batch_end *unused; /* with their events */
};

/*
 * Asks the driver for a memory operation on this CUstream, of a partition as clients use it, and
 * waits for it; nothing else runs yet. Returns CUDA_OK with `refused` set, or why the device is of
 * no use.
 */
cuda_result batch_ends_open(struct batch_ends *ends, const struct gpu *gpu, cuda_stream stream);
/* No ring has a batch in flight. Idempotent. */
void batch_ends_close(struct batch_ends *ends);

static inline bool batch_ends_polled(const struct batch_ends *ends)
{
    return ends->refused != CUDA_OK;
}

/* Submitter, under the client's lock: what the bound stream was given ends with this value. */
cuda_result batch_ends_note(struct batch_ends *ends, struct client_stream *stream, uint64_t value);

/* Completer, under the client's lock: writes the timeline as far as the device has come. An error
 * of the driver is left to those who ask after the device. */
void batch_ends_look(struct batch_ends *ends, struct client_stream *stream);

#endif
