/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_kept.h"

#include <stdlib.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/client/kept_buffers.h"
#include "server/worker/control/reply.h"

int control_kept_lend(struct request *request)
{
    const struct proto_worker_host_lend *wanted = request->body;
    struct error why;
    uint32_t error = kept_buffers_lend(&request->worker->kept, request->client, wanted->address,
                                       wanted->count, &why);
    return error ? request_refuse_why(request, &why) : request_done(request);
}

struct drop_call {
    struct quiet_call call;
    struct worker *worker;
    uint64_t serial, address, count;
};

static void make_drop(struct quiet_call *call)
{
    const struct drop_call *drop = container_of(call, struct drop_call, call);
    client_memory_host_unregister_whole(&drop->worker->gpu, drop->address, drop->count);
}

static int end_drop(struct worker *worker, struct quiet_call *call)
{
    struct drop_call *drop = container_of(call, struct drop_call, call);
    uint64_t serial = drop->serial;
    kept_buffers_forget(&worker->kept, &worker->gpu, drop->address);
    free(drop);
    return reply_send(worker, PROTO_DONE, serial, 0, NULL);
}

int control_kept_drop(struct request *request)
{
    const struct proto_worker_host_drop *wanted = request->body;
    struct worker *worker = request->worker;
    struct drop_call *drop = calloc(1, sizeof *drop);
    if (!drop)
        return request_refuse(request, MESSAGE(worker_no_memory));
    if (!kept_buffers_drop(&worker->kept, wanted->address, wanted->count)) {
        free(drop);
        return request_done(request);
    }
    *drop = (struct drop_call){
        .call =
            {.make = make_drop,
             .end = end_drop,
             /* No priority is known here; that of the client which waits is not above others'. */
             .caller.level = SCHEDULER_LEVELS - 1},
        .worker = worker,
        .serial = request->serial,
        .address = wanted->address,
        .count = wanted->count,
    };
    quiet_calls_defer(&worker->quiet_calls, &drop->call, wanted->asks);
    return 0;
}
