/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_result.h"

#include <stdatomic.h>
#include <stddef.h>

#include "client/session/failure.h"
#include "common/log.h"
#include "common/messages.h"

/* The errors above CUDA's numbers. MPS has the same failures, so its numbers are what a program or
 * its user may know. Lost work is a failed launch: no CUDA program can take its work back. */
static const struct row {
    gpushare_error error;
    cuda_result result;
} rows[] = {
    {GPUSHARE_ERROR_CONNECTION_FAILED, CUDA_ERR_MPS_CONNECTION_FAILED},
    {GPUSHARE_ERROR_CONNECTION_LOST, CUDA_ERR_MPS_RPC_FAILURE},
    {GPUSHARE_ERROR_PROTOCOL_VERSION, CUDA_ERR_SYSTEM_DRIVER_MISMATCH},
    {GPUSHARE_ERROR_PROTOCOL_VIOLATION, CUDA_ERR_MPS_RPC_FAILURE},
    {GPUSHARE_ERROR_INVALID_ENVIRONMENT, CUDA_ERR_INVALID_VALUE},
    {GPUSHARE_ERROR_TOO_MANY_CLIENTS, CUDA_ERR_MPS_MAX_CLIENTS_REACHED},
    {GPUSHARE_ERROR_ADDRESS_SPACE_FULL, CUDA_ERR_OUT_OF_MEMORY},
    {GPUSHARE_ERROR_WINDOW_TAKEN, CUDA_ERR_OPERATING_SYSTEM},
    {GPUSHARE_ERROR_DEVICE_NOT_READY, CUDA_ERR_MPS_SERVER_NOT_READY},
    {GPUSHARE_ERROR_WORKER_LOST, CUDA_ERR_MPS_CLIENT_TERMINATED},
    {GPUSHARE_ERROR_KILLED, CUDA_ERR_MPS_CLIENT_TERMINATED},
    {GPUSHARE_ERROR_DEPENDENCY_CIRCLE, CUDA_ERR_ILLEGAL_STATE},
    {GPUSHARE_ERROR_TOO_MANY_OBJECTS, CUDA_ERR_OUT_OF_MEMORY},
    {GPUSHARE_ERROR_SERVER_RESOURCES, CUDA_ERR_OUT_OF_MEMORY},
    {GPUSHARE_ERROR_NO_ROOM, CUDA_ERR_OUT_OF_MEMORY},
    {GPUSHARE_ERROR_INTERRUPTED, CUDA_ERR_LAUNCH_FAILED},
    {GPUSHARE_ERROR_STATE_LOST, CUDA_ERR_LAUNCH_FAILED},
};

enum { ROWS = sizeof rows / sizeof *rows };

static void say_once(size_t row)
{
    static atomic_bool said[ROWS];
    if (atomic_exchange_explicit(&said[row], true, memory_order_relaxed))
        return;
    /* The library's remedy is a call that a CUDA program does not know. */
    if (rows[row].result == CUDA_ERR_LAUNCH_FAILED)
        log_error(MESSAGE_TEXT(dropin_work_lost), failure_sentence());
    else
        log_error("%s", failure_sentence());
}

cuda_result driver_result_of(gpushare_error error)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].error == error) {
            say_once(i);
            return rows[i].result;
        }
    return (cuda_result)error;
}
