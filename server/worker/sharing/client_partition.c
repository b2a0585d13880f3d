/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/client_partition.h"

#include <string.h>

#include "common/clock.h"
#include "server/worker/worker.h"

void client_partition_trace(struct worker *worker, const struct client *client)
{
    const struct partition *partition = client->shared.partition;
    if (!partition || !trace_is_on(&worker->trace))
        return;
    uint64_t now = clock_now();
    struct proto_trace_record record = {.kind = TRACE_SM_GROUPS,
                                        .client = client->number,
                                        .value = partition->multiprocessors,
                                        .from = now,
                                        .to = now};
    memcpy(record.sm_groups, partition->sm_groups.bits, sizeof record.sm_groups);
    trace_add(&worker->trace, &record);
}

void client_partition_trace_held(struct worker *worker, const struct client *client, uint64_t from,
                                 uint64_t to)
{
    struct proto_trace_record record = {.kind = TRACE_HOLD,
                                        .client = client->number,
                                        .value = TRACE_HELD_THREADS,
                                        .from = from,
                                        .to = to};
    trace_add(&worker->trace, &record);
}

int32_t client_partition_priority(struct worker *worker, struct client *client,
                                  const struct sm_group_set *sm_groups)
{
    bool at_home = placement_is_home(&worker->places, &client->place, sm_groups);
    client_lock(client);
    int32_t priority = client_stream_priority(client, &client->streams[0], at_home);
    pthread_mutex_unlock(&client->lock);
    return priority;
}

void client_partition_move(struct worker *worker, struct client *client, struct partition *to)
{
    struct partition *old = client->shared.partition;
    client->shared.partition = to;
    client_stream_find_priorities(client);
    client_partition_trace(worker, client);
    if (old && partition_put(&worker->partitions, old))
        wake_control(&worker->wake);
}
