/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * screen: what `top` draws: a line with bars for each GPU, a line for each client, and a line for
 * what is asked or said. It fits 80 columns; a wider terminal has longer names and bars. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_SCREEN_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "client/tools/live/listing.h"
#include "client/tools/live/overview.h"
#include "client/tools/live/terminal.h"

struct screen {
    const struct overview *overview;
    const struct listing *listing;
    size_t selected; /* a place among the listing's rows */
    size_t first;    /* the first one that is drawn; screen_draw keeps the selected one in view */
    double delay;    /* seconds between two looks */
    bool paused;
    bool help;        /* the keys are explained in the place of the clients */
    const char *said; /* the last line; "": the keys */
};

void screen_draw(struct screen *screen, struct terminal *terminal);

#endif
