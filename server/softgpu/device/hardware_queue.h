/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * hardware_queue: the queues between streams and the device.
 *
 * A stream is given a queue when it is made, in turn and for good. Work that its streams submit
 * stands in the queue in the order of submission until it begins; only the first may
 * begin, so that one which waits for something holds up all behind it. A queue has
 * SOFTGPU_QUEUE_ENTRIES entries.
 *
 * Engine lock held throughout.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_HARDWARE_QUEUE_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_HARDWARE_QUEUE_H

#include "server/softgpu/device/device.h"

/*
 * The queue for a new stream, of the device's queues or of a green context's own. Streams of all
 * contexts of a device share its queues, default streams as well. With SOFTGPU_PRIVATE_QUEUES it is
 * own, which belongs to the stream.
 */
struct hardware_queue *hardware_queue_assign(struct hardware_queues *queues,
                                             struct hardware_queue *own);

/* Returns when an entry is free, or when a fault ended the device. Gives the lock up meanwhile.
 * Returns whether it had to wait. */
bool hardware_queue_await_room(struct hardware_queue *queue);

void hardware_queue_append(struct hardware_queue *queue, struct queue_link *link);
/* Takes the first away, which must be there. */
void hardware_queue_take(struct hardware_queue *queue);

#endif
