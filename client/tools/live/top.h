/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * top: GPUs and clients, shown again and again: on the whole screen of a terminal, where keys sort,
 * filter, pause and kill; elsewhere as text, one part below the other. The GPU time between two
 * looks is the difference of the server's counters. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_TOP_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "client/tools/admin_client.h"

#define TOP_DELAY_DEFAULT 1.0
#define TOP_DELAY_LEAST   0.1
#define TOP_DELAY_MOST    3600.0

struct top_options {
    const char *socket;
    bool text;      /* never the whole screen */
    bool json;      /* as text, each look is a JSON document on a line */
    uint64_t looks; /* ends after so many; 0: on a screen never; as text after one, unless `text` */
    double delay;   /* seconds between two looks */
    const char *no_color, *term; /* $NO_COLOR, $TERM, or NULL */
};

/* Returns when the user or a signal ended it, or after the looks. A failure that ends it is put
 * into *failure, which the caller owns; NULL without memory. */
enum admin_outcome top_run(const struct top_options *options, json_t **failure);

#endif
