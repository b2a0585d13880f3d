/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/held_requests.h"

#include <errno.h>
#include <stdlib.h>

#include "common/ipc/channel.h"

int held_requests_add(struct held_requests *held, const struct channel_packet *packet,
                      worker_link_reply *reply, void *context)
{
    int result = worker_requests_reserve(&held->requests);
    if (result < 0)
        return result;
    struct channel_packet *copy = channel_packet_copy(packet);
    if (!copy)
        return -ENOMEM;
    worker_requests_add(&held->requests, (struct worker_request_row){.client = packet->client,
                                                                     .opcode = packet->opcode,
                                                                     .reply = reply,
                                                                     .context = context,
                                                                     .packet = copy});
    return 0;
}

struct worker_request_row *held_requests_after(struct held_requests *held, uint32_t client,
                                               uint64_t serial)
{
    struct worker_request_row *row = worker_requests_after(&held->requests, serial);
    while (row && row->client != client)
        row = worker_requests_after(&held->requests, row->serial);
    return row;
}

void held_requests_change(struct worker_request_row *row, struct channel_packet *packet)
{
    free(row->packet);
    row->packet = packet;
    row->opcode = packet->opcode;
}

void held_requests_send(struct held_requests *held, uint32_t client, struct worker_link *link)
{
    struct worker_request_row *row;
    while ((row = held_requests_after(held, client, 0))) {
        if (worker_link_request_again(link, row->packet, row->reply, row->context) == 0)
            worker_requests_remove(&held->requests, row);
        else
            worker_requests_end(&held->requests, row, &worker_answer_lost);
    }
}

void held_requests_cancel(struct held_requests *held, uint32_t client)
{
    struct worker_request_row *row;
    while ((row = held_requests_after(held, client, 0)))
        worker_requests_end(&held->requests, row, &worker_answer_session_ended);
}

void held_requests_close(struct held_requests *held)
{
    worker_requests_close(&held->requests);
}
