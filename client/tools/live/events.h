/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * events: the latest lines of the server's log, and those to come. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_EVENTS_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_EVENTS_H

#include <stdbool.h>

#include <jansson.h>

#include "client/tools/admin_client.h"

struct events_options {
    const char *socket;
    bool follow; /* goes on until somebody ends it, also with a server that takes over */
    bool json;   /* prints answers; with follow each on a line, and only those with events */
};

/* Prints to standard output. A failure that ends it is put into *failure, which the caller owns;
 * NULL without memory. */
enum admin_outcome events_run(const struct events_options *options, json_t **failure);

#endif
