/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/standby.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/ipc/channel.h"
#include "common/log.h"
#include "common/messages.h"

int standby_kind_of(const char *name)
{
    static const char *const names[] = {"none", "driver", "context"};
    for (int i = STANDBY_NONE; i <= STANDBY_CONTEXT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool is_gone(int result)
{
    return result == -EPIPE || result == -ECONNRESET;
}

static int answer_done(int channel, const struct channel_message *message)
{
    return channel_send_waiting(channel, &(struct channel_packet){
                                             .opcode = PROTO_DONE,
                                             .client = message->header.client,
                                             .serial = message->header.serial,
                                         });
}

/* Takes one message. *serve becomes true if it was the one to wait for. */
static int take_message(int channel, struct channel_message *message, bool *serve)
{
    int result = channel_receive(channel, PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR, message);
    if (result == CHANNEL_EMPTY)
        return 0;
    if (result == CHANNEL_CLOSED)
        return STANDBY_UNWANTED;
    if (result == -EPROTO)
        log_error(MESSAGE_TEXT(supervisor_message), message->why);
    if (result < 0)
        return result;
    channel_close_fds(message);
    *serve = message->header.opcode == PROTO_WORKER_SERVE;
    if (*serve || message->header.opcode == PROTO_WORKER_BEAT)
        return answer_done(channel, message);
    log_error(MESSAGE_TEXT(supervisor_message), message->type->name);
    return -EPROTO;
}

int standby_wait(int channel)
{
    struct pollfd polled = {.fd = channel, .events = POLLIN};
    struct channel_message *message = malloc(sizeof *message);
    if (!message)
        return -ENOMEM;
    bool serve = false;
    int result =
        channel_send_waiting(channel, &(struct channel_packet){.opcode = PROTO_WORKER_STANDBY});
    while (result == 0 && !serve) {
        if (poll(&polled, 1, -1) >= 0)
            result = take_message(channel, message, &serve);
        else if (errno != EINTR)
            result = -errno;
    }
    free(message);
    return is_gone(result) ? STANDBY_UNWANTED : result;
}
