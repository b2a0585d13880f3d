/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device_request.h"

#include <errno.h>

#include "server/supervisor/device/device.h"

int device_request(struct device *device, const struct channel_packet *request,
                   worker_link_reply *reply, void *context)
{
    return device->link ? worker_link_request(device->link, request, reply, context) : -EPIPE;
}

int device_request_again(struct device *device, const struct channel_packet *request,
                         worker_link_reply *reply, void *context)
{
    return device->link ? worker_link_request_again(device->link, request, reply, context) : -EPIPE;
}

void device_request_held(struct device *device, uint32_t client)
{
    if (device->link)
        held_requests_send(&device->held, client, device->link);
}

void device_request_cancel(struct device *device, uint32_t client)
{
    held_requests_cancel(&device->held, client);
    if (device->link)
        worker_link_cancel(device->link, client);
}
