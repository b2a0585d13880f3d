/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* device_request: requests to a device's worker, and to the next one. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_REQUEST_H

#include <stdint.h>

#include "server/supervisor/worker/worker_link.h"

struct device;

/*
 * worker_link_request to the present worker. Returns -EPIPE if there is none: events.lost has been
 * called, or will be called from the loop.
 */
int device_request(struct device *device, const struct channel_packet *request,
                   worker_link_reply *reply, void *context);

/* The same, for a request that goes on to the next worker where its client does. */
int device_request_again(struct device *device, const struct channel_packet *request,
                         worker_link_reply *reply, void *context);

/* Sends the present worker what was held for a client: its requests from before, and those that
 * were held since. */
void device_request_held(struct device *device, uint32_t client);

/* Ends a client's outstanding and held requests with WORKER_SESSION_ENDED. */
void device_request_cancel(struct device *device, uint32_t client);

#endif
