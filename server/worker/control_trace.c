/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control_trace.h"

#include <errno.h>

#include "common/error.h"
#include "server/worker/control_client.h"
#include "server/worker/trace.h"

int control_trace_start(struct worker *worker, struct channel_message *message)
{
    const struct proto_worker_trace_start *wanted = message->body;
    const struct partitions *partitions = &worker->partitions;
    struct trace_device device = {
        .atoms = partitions->count,
        .atom_multiprocessors = partitions->atom_size,
        .remainder = partitions->remainder,
    };
    account_trace_begin(&worker->account);
    int started = trace_start(&worker->trace, channel_take_fd(message, 0), wanted->count, &device);
    if (started < 0)
        return control_refuse(worker, message->header.serial, 0,
                              started == -EBADF || started == -EINVAL ? PROTO_ERROR_INVALID_VALUE
                                                                      : error_from_errno(started),
                              "the memory for a trace can't be used");
    return control_send(worker, PROTO_DONE, message->header.serial, 0, NULL);
}

int control_trace_stop(struct worker *worker, const struct channel_message *message)
{
    account_trace_end(&worker->account);
    trace_stop(&worker->trace);
    return control_send(worker, PROTO_DONE, message->header.serial, 0, NULL);
}
