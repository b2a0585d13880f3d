/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_memory.h"

#include <unistd.h>

#include "common/messages.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/control/control_retire.h"

/* control_module_finish answers when the memory has been cleared. */
int control_memory_map(struct request *request)
{
    const struct proto_worker_map *wanted = request->body;
    struct client *client = request->client;
    struct loader_job job = {
        .kind = LOADER_CLEAR, .fd = -1, .address = wanted->address, .count = wanted->count};
    struct error why;
    uint32_t error = client_memory_map(client, wanted->address, wanted->count, &job.fd, &why);
    if (error)
        return request_refuse_why(request, &why);
    int submitted = request_submit(request, &request->worker->clearer, &job);
    if (submitted > 0)
        return 0;
    close(job.fd);
    client_memory_unmap(client, wanted->address, wanted->count, &why);
    return submitted;
}

int control_memory_host_map(struct request *request)
{
    const struct proto_worker_host_map *wanted = request->body;
    struct error why;
    uint32_t error = client_memory_host_map(request->client, wanted->address, wanted->count,
                                            channel_take_fd(request->message, 0), &why);
    return error ? request_refuse_why(request, &why) : request_done(request);
}

static int unmap_range(struct request *request, uint64_t address, uint64_t count,
                       enum range_kind kind, enum retire_kind how)
{
    struct client *client = request->client;
    struct retirement *asked = NULL;
    pthread_mutex_lock(&client->lock);
    struct range *range = client_memory_range_exact(client, address, count, kind);
    bool known = range && !range->dying;
    if (known)
        asked = retire_request(client, how, request->serial);
    if (asked) {
        asked->address = address;
        asked->count = count;
        range->dying = asked;
    }
    pthread_mutex_unlock(&client->lock);
    if (!known)
        return request_refuse(request, MESSAGE(worker_memory_unknown), (unsigned long long)address,
                              (unsigned long long)count);
    return control_retire_answer(request, asked);
}

int control_memory_unmap(struct request *request)
{
    const struct proto_worker_unmap *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_DEVICE, RETIRE_DEVICE);
}

int control_memory_host_unmap(struct request *request)
{
    const struct proto_worker_host_unmap *wanted = request->body;
    return unmap_range(request, wanted->address, wanted->count, RANGE_HOST, RETIRE_HOST);
}

int control_memory_quiesce(struct request *request)
{
    pthread_mutex_lock(&request->client->lock);
    struct retirement *asked = retire_request(request->client, RETIRE_NOTHING, request->serial);
    pthread_mutex_unlock(&request->client->lock);
    return control_retire_answer(request, asked);
}
