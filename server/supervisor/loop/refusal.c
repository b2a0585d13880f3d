/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/refusal.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ipc/channel.h"

/* Connections that stay open, since a peer whose question was not read would see a reset in the
 * place of the answer. */
#define OPEN_MAX 256

struct open_connections {
    int fds[OPEN_MAX];
    unsigned next;
};

/* Returns whether there was a connection. */
static bool answer_one(const struct refusal *refusal, bool admin, struct open_connections *open)
{
    const int listening = admin ? refusal->admin_fd : refusal->client_fd;
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    if (admin)
        send(fd, refusal->answer, strlen(refusal->answer), MSG_NOSIGNAL);
    else
        channel_send(fd, &(struct channel_packet){.opcode = PROTO_ENDED, .body = &refusal->ended});
    shutdown(fd, SHUT_WR);
    int *oldest = &open->fds[open->next++ % OPEN_MAX];
    if (*oldest >= 0)
        close(*oldest);
    *oldest = fd;
    return true;
}

void refusal_give(const struct refusal *refusal, unsigned ms)
{
    struct open_connections open = {.next = 0};
    struct pollfd sockets[2] = {{.fd = refusal->client_fd, .events = POLLIN},
                                {.fd = refusal->admin_fd, .events = POLLIN}};
    const uint64_t end = clock_now() + (uint64_t)ms * 1000000;
    int left = 0;
    memset(open.fds, 0xff, sizeof open.fds);
    while (left >= 0 && poll(sockets, 2, left) >= 0) {
        bool any = false;
        for (int i = 0; i < 2; i++)
            any = (sockets[i].revents && answer_one(refusal, i == 1, &open)) || any;
        if (!any && !open.next && !refusal->lasts)
            break;
        uint64_t now = clock_now();
        left = now < end ? (int)((end - now) / 1000000) + 1 : -1;
    }
    for (unsigned i = 0; i < OPEN_MAX; i++)
        if (open.fds[i] >= 0)
            close(open.fds[i]);
}
