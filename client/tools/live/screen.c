/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/screen.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/tools/cell.h"
#include "client/tools/live/row.h"
#include "client/tools/sample.h"
#include "common/util.h"

/* The width for which the columns below are made: 80, which every terminal has. */
#define COLUMNS_LEAST 80u
#define BAR_UTIL      12u
#define BAR_MEMORY    8u
#define BAR_MAX       60u
#define DEVICE_NAME   12u
#define NAME_LEAST    12u
#define NAME_MOST     60u
#define USER_MOST     7u

static const char keys[] =
    "q quit  s sort  r reverse  / filter  p pause  k kill  arrows choose  h help";

static const char *const help[] = {
    "q        quit",
    "s        sort by the next of got, memory, id, name, user",
    "r        the other way round",
    "/        show only clients with this text in their name or user, or with this number",
    "p        pause, or go on",
    "up down  choose a client",
    "k        end the connection of the chosen client, after a question",
    "h        this text, or the clients again",
};

/* The bar has '|' for the part that is used. Returns bar. */
static const char *bar_of(double part, unsigned width, char bar[BAR_MAX + 1])
{
    unsigned full = part > 0 ? (unsigned)(part * width + 0.5) : 0;
    full = min(full, width);
    memset(bar, '|', full);
    memset(bar + full, ' ', width - full);
    bar[width] = '\0';
    return bar;
}

/* Pads by characters, where printf would by bytes; cuts what is wider. Returns text. */
static const char *fit(const char *of, unsigned width, char text[CELL_BYTES])
{
    size_t used;
    unsigned shown = 0;
    snprintf(text, CELL_BYTES, "%s", of);
    cell_cut(text, width);
    for (const char *at = text; *at; at++)
        shown += ((unsigned char)*at & 0xc0) != 0x80;
    used = strlen(text);
    while (shown++ < width && used + 1 < CELL_BYTES)
        text[used++] = ' ';
    text[used] = '\0';
    return text;
}

static unsigned extra_columns(const struct terminal *terminal)
{
    return terminal->columns > COLUMNS_LEAST ? terminal->columns - COLUMNS_LEAST : 0;
}

static void draw_device(const struct screen *screen, struct terminal *terminal,
                        const json_t *device)
{
    char name[CELL_BYTES], mode[CELL_BYTES], used[CELL_BYTES], all[CELL_BYTES], util[CELL_BYTES],
        state[CELL_BYTES], number[CELL_BYTES], text[CELL_BYTES];
    char bars[2][BAR_MAX + 1];
    const unsigned more = extra_columns(terminal) / 2;
    const unsigned wide = min(BAR_UTIL + more, BAR_MAX), narrow = min(BAR_MEMORY + more, BAR_MAX);
    const double part = sample_device_share(&screen->overview->sample, device);
    const double total = json_number_value(json_object_get(device, "memory_bytes"));
    const double memory = json_number_value(json_object_get(device, "memory_used_bytes"));
    cell_text(device, "state", state);
    row_share(part, util);
    if (json_is_true(json_object_get(device, "drained")))
        snprintf(state, sizeof state, "drained");
    cell_text(json_object_get(device, "schedule"), "mode", mode);
    terminal_line(terminal, TERMINAL_USUAL, "%3s %s %-10.10s [%s] %-5s[%s] %s/%s",
                  cell_integer(device, "device", number),
                  fit(cell_text(device, "name", name), DEVICE_NAME, text),
                  strcmp(state, "ready") == 0 ? mode : state, bar_of(part, wide, bars[0]), util,
                  bar_of(total > 0 ? memory / total : 0, narrow, bars[1]),
                  cell_bytes(device, "memory_used_bytes", used),
                  cell_bytes(device, "memory_bytes", all));
}

static void draw_head(const struct screen *screen, struct terminal *terminal)
{
    const json_t *status = screen->overview->status;
    const json_t *devices = json_object_get(status, "devices"), *device;
    char up[CELL_BYTES], clients[CELL_BYTES], clock[16], version[CELL_BYTES];
    const time_t now = time(NULL);
    struct tm local;
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &local));
    terminal_line(terminal, TERMINAL_BOLD, "gpushare %.16s  %s  up %s  clients %s  every %gs%s",
                  cell_text(status, "server_version", version), clock,
                  cell_duration(status, "uptime_seconds", up),
                  cell_integer(status, "clients", clients), screen->delay,
                  screen->paused ? "  PAUSED" : "");
    /* The last line and one client stay in view, however many GPUs there are. */
    for (size_t i = 0; (device = json_array_get(devices, i)) && terminal->line + 5 < terminal->rows;
         i++)
        draw_device(screen, terminal, device);
}

static void draw_row(const struct screen *screen, struct terminal *terminal, size_t place)
{
    const struct row *row = &screen->listing->rows[place];
    const unsigned width = min(NAME_LEAST + extra_columns(terminal), NAME_MOST);
    char name[CELL_BYTES], user[CELL_BYTES];
    const bool chosen = place == screen->selected;
    terminal_line(terminal, chosen ? TERMINAL_REVERSE : TERMINAL_USUAL,
                  "%c%5lld %s %s %3.3s %7.7s %7.7s %5.5s %8.8s %8.8s %s", chosen ? '>' : ' ',
                  (long long)row->client, fit(row->name, width, name),
                  fit(row->user, USER_MOST, user), row->gpu, row->asked, row->granted, row->share,
                  row->memory, row->limit, row->state);
}

static void draw_clients(struct screen *screen, struct terminal *terminal)
{
    const struct listing *listing = screen->listing;
    const unsigned width = min(NAME_LEAST + extra_columns(terminal), NAME_MOST);
    char name[CELL_BYTES], user[CELL_BYTES];
    terminal_line(terminal, TERMINAL_USUAL, "sorted by %s%s%s%s",
                  listing_order_name(listing->order), listing->reverse ? ", reversed" : "",
                  *listing->filter ? "; only: " : "", listing->filter);
    terminal_line(terminal, TERMINAL_BOLD, " %5s %s %s %3s %7s %7s %5s %8s %8s %s", "ID",
                  fit("NAME", width, name), fit("USER", USER_MOST, user), "GPU", "ASKED", "GRANTED",
                  "GOT", "MEMORY", "LIMIT", "STATE");
    const size_t room =
        terminal->rows > terminal->line + 1 ? terminal->rows - terminal->line - 1 : 0;
    if (screen->selected < screen->first)
        screen->first = screen->selected;
    if (room && screen->selected >= screen->first + room)
        screen->first = screen->selected - room + 1;
    if (listing->count == 0)
        terminal_line(terminal, TERMINAL_USUAL,
                      *listing->filter ? " no such clients" : " no clients");
    for (size_t i = screen->first; i < listing->count && i < screen->first + room; i++)
        draw_row(screen, terminal, i);
}

void screen_draw(struct screen *screen, struct terminal *terminal)
{
    terminal_page_begin(terminal);
    draw_head(screen, terminal);
    if (screen->help)
        for (size_t i = 0; i < sizeof help / sizeof help[0]; i++)
            terminal_line(terminal, TERMINAL_USUAL, "%s", help[i]);
    else
        draw_clients(screen, terminal);
    terminal_page_end(terminal, *screen->said ? screen->said : keys);
}
