/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_wait: streams that wait for a value in memory.
 *
 * The server knows no such wait. A thread of this library looks for the value, and pushes a command
 * into a stream of its own, a gate, when the value is there; the program's stream waits for that
 * command. So to the server the stream waits for another one of its client: it keeps no queue of
 * the device, and its wait ends with its client.
 *
 * The thread looks when the work before the wait is done. Host buffers it reads. Of device memory
 * it has the device copy the word, by one more stream, the probe; it does so only while work of
 * this process runs or has ended since, since nobody else writes there.
 *
 * Memory that is waited for stays where it is until the wait is over, also when the program frees
 * it (memory_hold). Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_WAIT_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_WAIT_H

#include <stdbool.h>

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"
#include "common/cuda/stream_value.h"

struct gpushare_stream;

/* Has the stream wait, behind its work so far, for a value in memory of its connection. Returns 0,
 * an error of the stream, CUDA_ERR_INVALID_VALUE if the address is not in one allocation,
 * CUDA_ERR_OUT_OF_MEMORY, or CUDA_ERR_OPERATING_SYSTEM if there is no thread. */
cuda_result driver_wait_push(struct gpushare_stream *stream, const struct stream_value *wanted);

/* Forgets the waits of a connection that is to be closed; their streams do not go on. Returns
 * whether there were any. */
bool driver_wait_forget(gpushare_connection *connection);

#endif
