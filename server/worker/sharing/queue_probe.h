/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * queue_probe: how many hardware queues the driver gives to CUstreams.
 *
 * A driver can be asked for 32 and has no call that tells how many there are. So one CUstream is
 * held up by a function on the host with something behind it, and each of the others records an
 * event: where that is not reached, the two share a queue.
 *
 * Queues are given in turn, so the first CUstream that is held up tells their number. No kernel is
 * needed, and where there are as many queues as CUstreams it takes as long as recording the events.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_QUEUE_PROBE_H
#define GPUSHARE_SERVER_WORKER_SHARING_QUEUE_PROBE_H

#include <stdint.h>

#include "server/worker/device/gpu.h"

/*
 * At start, on an idle device. streams: of one partition, in the order in which they were made one
 * after the other, at most DRIVER_QUEUES. *queues becomes the number of queues, or `count` if there
 * are as many, if it can't be told, or if two measurements don't agree. Returns the driver's
 * result if the context is lost, else CUDA_OK.
 */
cuda_result queue_probe_run(const struct gpu *gpu, const cuda_stream *streams, uint32_t count,
                            uint32_t *queues);

#endif
