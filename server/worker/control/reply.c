/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/reply.h"

#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/printable.h"

int reply_send_with(struct worker *worker, const struct channel_packet *packet)
{
    return channel_send_waiting(worker->channel, packet);
}

int reply_send(struct worker *worker, uint16_t opcode, uint64_t serial, uint32_t client,
               const void *body)
{
    return reply_send_with(worker,
                           &(struct channel_packet){
                               .opcode = opcode, .serial = serial, .client = client, .body = body});
}

int reply_refuse(struct worker *worker, uint64_t serial, uint32_t client, const struct error *why)
{
    uint32_t error = why->number;
    struct proto_failed failed = {.error = error ? error : PROTO_ERROR_UNKNOWN};
    /* This thread's call of the driver may be the first to learn that the context is lost.
     * "unknown" stands for results that the error table lacks, too, so it proves nothing. */
    if (error != PROTO_ERROR_UNKNOWN && cuda_driver_error_is_sticky((cuda_result)error))
        worker_fail(worker, (cuda_result)error, CONTEXT_LOSS_REQUEST);
    snprintf(failed.text, sizeof failed.text, "%.*s", (int)sizeof failed.text - 1, why->text);
    /* The text may quote a client; the receiver would refuse control characters. */
    printable_replace(failed.text);
    return reply_send(worker, PROTO_FAILED, serial, client, &failed);
}
