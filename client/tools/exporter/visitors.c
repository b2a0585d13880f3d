/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/visitors.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "common/util.h"

struct visitor {
    struct list_link link; /* not linked: it gave way, and the library has not seen that yet */
    int fd;
};

void visitors_init(struct visitors *visitors)
{
    *visitors = (struct visitors){.count = 0};
    list_init(&visitors->list);
}

static void take_out(struct visitors *visitors, struct visitor *visitor)
{
    if (!list_is_linked(&visitor->link))
        return;
    list_remove(&visitor->link);
    visitors->count--;
}

static void give_way(struct visitors *visitors)
{
    struct visitor *oldest = container_of(list_first(&visitors->list), struct visitor, link);
    take_out(visitors, oldest);
    shutdown(oldest->fd, SHUT_RDWR);
}

struct visitor *visitors_add(struct visitors *visitors, int fd)
{
    struct visitor *visitor = calloc(1, sizeof *visitor);
    if (!visitor)
        return NULL;
    visitor->fd = fd;
    list_append(&visitors->list, &visitor->link);
    if (++visitors->count > VISITORS_MAX)
        give_way(visitors);
    return visitor;
}

void visitors_remove(struct visitors *visitors, struct visitor *visitor)
{
    if (visitor)
        take_out(visitors, visitor);
    free(visitor);
}
