/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/hardware_queue.h"

static bool is_full(const struct hardware_queue *queue)
{
    const uint64_t most = device_settings()->queue_entries;

    return most > 0 && queue->entries >= most;
}

struct hardware_queue *hardware_queue_assign(struct hardware_queues *queues,
                                             struct hardware_queue *own)
{
    if (device_settings()->private_queues)
        return own;
    return &queues->queue[queues->next++ % queues->count];
}

bool hardware_queue_await_room(struct hardware_queue *queue)
{
    bool was_full = is_full(queue);

    while (is_full(queue) && !engine_stopped())
        engine_await();
    return was_full;
}

void hardware_queue_append(struct hardware_queue *queue, struct queue_link *link)
{
    queue_append(&queue->waiting, link);
    queue->entries++;
}

void hardware_queue_take(struct hardware_queue *queue)
{
    bool was_full = is_full(queue);

    queue_take(&queue->waiting);
    queue->entries--;
    if (was_full)
        engine_announce();
}
