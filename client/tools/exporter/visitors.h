/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * visitors: the connections to the exporter, each for one request. Where there are more than it
 * serves at a time, the oldest one gives way to the newest.
 *
 * So nobody keeps a scraper out by connections that say nothing, or say it byte by byte: a scraper
 * needs some milliseconds from its connection to its answer. Used by the thread that serves.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_VISITORS_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_VISITORS_H

#include "common/list.h"

enum { VISITORS_MAX = 32 };

struct visitors {
    struct list list; /* the oldest first, without those that gave way */
    unsigned count;
};

struct visitor;

void visitors_init(struct visitors *visitors);

/* A connection has come. fd: its socket, which is shut down if it has to give way, and stays the
 * caller's. NULL: there is no memory, and it never gives way. */
struct visitor *visitors_add(struct visitors *visitors, int fd);

/* The connection is over. visitor: may be NULL; freed. */
void visitors_remove(struct visitors *visitors, struct visitor *visitor);

#endif
