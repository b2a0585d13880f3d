/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * terminal: the whole screen of a terminal, and the keys that are pressed there. It is drawn with
 * the sequences of the VT100, which every terminal of today has. There is one at a time, since
 * signals are the process's. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_TERMINAL_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <termios.h>

/* Results of terminal_wait beside keys, which are their bytes. */
enum terminal_event {
    TERMINAL_UP = 256,
    TERMINAL_DOWN,
    TERMINAL_ESCAPE,
    TERMINAL_TIME,    /* the time has passed, and no key was pressed */
    TERMINAL_RESIZED, /* rows and columns are new ones */
    TERMINAL_END      /* a signal asks the process to end, or the terminal is gone */
};

struct terminal {
    int in, out;
    struct termios before;
    unsigned rows, columns;
    bool plain;              /* no bold and no reverse video: $NO_COLOR */
    unsigned char bytes[64]; /* that were read, and are no keys yet */
    size_t used;
    char *page; /* what is being drawn, until terminal_page_end */
    size_t page_bytes;
    FILE *drawing;
    unsigned line; /* the next one to be drawn */
};

/* Takes over the screen: another page of it is shown, and keys are read one by one. no_color: the
 * value of $NO_COLOR or NULL. Returns 0 or -errno. */
int terminal_open(struct terminal *terminal, const char *no_color);

/* Gives the screen back as it was. Idempotent. */
void terminal_close(struct terminal *terminal);

/* Waits for a key or an enum terminal_event. until: CLOCK_MONOTONIC, nanoseconds. */
int terminal_wait(struct terminal *terminal, uint64_t until);

/* Stops the process as Ctrl-Z does, with the screen given back meanwhile. */
void terminal_suspend(struct terminal *terminal);

enum terminal_look { TERMINAL_USUAL, TERMINAL_BOLD, TERMINAL_REVERSE };

/* A page is drawn line by line, from the top, and appears at its end. Lines are cut at the right
 * edge. The last row is the last line's; other lines for which there is no row are dropped. */
void terminal_page_begin(struct terminal *terminal);
void terminal_line(struct terminal *terminal, enum terminal_look look, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The page is whole but for its last line, which is this text. */
void terminal_page_end(struct terminal *terminal, const char *last);

#endif
