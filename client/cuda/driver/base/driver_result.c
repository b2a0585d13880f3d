/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_result.h"

#include <stdatomic.h>
#include <stdbool.h>
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
    /* CUDA's own numbers, of which the sentence says more: which limit it was, whose kernel. */
    {GPUSHARE_ERROR_OUT_OF_MEMORY, CUDA_ERR_OUT_OF_MEMORY},
    {GPUSHARE_ERROR_NO_DEVICE, CUDA_ERR_NO_DEVICE},
    {GPUSHARE_ERROR_NO_BINARY_FOR_GPU, CUDA_ERR_NO_BINARY_FOR_GPU},
    {GPUSHARE_ERROR_INVALID_PTX, CUDA_ERR_INVALID_PTX},
    {GPUSHARE_ERROR_ILLEGAL_ADDRESS, CUDA_ERR_ILLEGAL_ADDRESS},
    {GPUSHARE_ERROR_LAUNCH_TIMEOUT, CUDA_ERR_LAUNCH_TIMEOUT},
    {GPUSHARE_ERROR_ASSERT, CUDA_ERR_ASSERT},
    {GPUSHARE_ERROR_HARDWARE_STACK_ERROR, CUDA_ERR_HARDWARE_STACK_ERROR},
    {GPUSHARE_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERR_ILLEGAL_INSTRUCTION},
    {GPUSHARE_ERROR_MISALIGNED_ADDRESS, CUDA_ERR_MISALIGNED_ADDRESS},
    {GPUSHARE_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERR_INVALID_ADDRESS_SPACE},
    {GPUSHARE_ERROR_INVALID_PC, CUDA_ERR_INVALID_PC},
    {GPUSHARE_ERROR_LAUNCH_FAILED, CUDA_ERR_LAUNCH_FAILED},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* The library's remedy for lost work is a call that a CUDA program does not know. */
static void say_once(atomic_bool *said, gpushare_error error)
{
    if (atomic_exchange_explicit(said, true, memory_order_relaxed))
        return;
    if (error == GPUSHARE_ERROR_INTERRUPTED || error == GPUSHARE_ERROR_STATE_LOST)
        log_error("%s", MESSAGE_TEXT(dropin_work_lost));
    else
        log_error("%s", failure_sentence());
}

/* Returns whether CUDA's number is a matter for a sentence. */
static bool say_row(gpushare_error error, cuda_result *result)
{
    static atomic_bool said[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].error == error) {
            say_once(&said[i], error);
            *result = rows[i].result;
            return true;
        }
    return false;
}

cuda_result driver_result_of(gpushare_error error)
{
    cuda_result result = (cuda_result)error;
    say_row(error, &result);
    return result;
}

cuda_result driver_result_refused(gpushare_error error)
{
    static atomic_bool said;
    cuda_result result = (cuda_result)error;
    if (error && !say_row(error, &result))
        say_once(&said, error);
    return result;
}
