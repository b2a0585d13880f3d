/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * web: serves metrics, the page for people and what it shows over HTTP, by libmicrohttpd. One
 * thread of the library's serves all connections, one question at a time.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_WEB_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_WEB_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tools/exporter/scrape.h"
#include "client/tools/exporter/view.h"
#include "client/tools/exporter/visitors.h"
#include "common/error.h"

struct MHD_Daemon;

enum { WEB_HOST = 256 };

struct web {
    struct MHD_Daemon *daemon;
    char host[WEB_HOST];      /* of the address to listen on */
    bool local;               /* only this machine can connect, so a question must name it */
    struct scrape *scrape;    /* the thread's from web_open until web_close */
    struct view view;         /* likewise */
    struct visitors visitors; /* likewise */
    /* The library's messages since log_began_at (0: none yet): those in the log, and others. */
    uint64_t log_began_at;
    unsigned logged, left_out;
};

/* Listens on "ADDRESS:PORT" or "[ADDRESS]:PORT"; port 0: one that is free. The log says where. On a
 * loopback address, questions whose Host header names another machine are refused. The
 * calling thread's signals should be blocked, since the new thread has its mask. Returns 0, or an
 * error number with a sentence in *why. */
uint32_t web_open(struct web *web, const char *address, struct scrape *scrape, struct error *why);

/* Ends connections and the thread. */
void web_close(struct web *web);

#endif
