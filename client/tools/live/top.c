/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/top.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/tools/live/listing.h"
#include "client/tools/live/overview.h"
#include "client/tools/live/screen.h"
#include "client/tools/live/terminal.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "common/clock.h"
#include "common/messages.h"
#include "common/units.h"

enum { SAID = 400, CTRL_C = 3, BACKSPACE = 8, CTRL_L = 12, CTRL_Z = 26, DELETE = 127 };

/* The use of the next key. */
enum asking { ASKS_NOTHING, ASKS_FILTER, ASKS_KILL };

struct top {
    const struct top_options *options;
    struct overview overview;
    struct listing listing;
    struct terminal terminal;
    struct screen screen;
    json_int_t chosen; /* the client that is selected; it keeps its place when rows move */
    enum asking asking;
    struct row victim; /* to be killed, if the answer is yes */
    char filter[40];   /* the one before the user began to change it */
    char said[SAID];
    bool ends;
};

/* ---- as text ---- */

static void print_look(const struct top *top, struct table_look look)
{
    char clock[32];
    const time_t now = time(NULL);
    struct tm local;
    if (top->options->json) {
        json_t *json = overview_json(&top->overview);
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS));
        putchar('\n');
        json_decref(json);
        return;
    }
    strftime(clock, sizeof clock, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    printf("%s  ", clock);
    overview_print(stdout, &top->overview, look);
}

/* A pipe has no rate before a second look, so the first one is not printed. */
static enum admin_outcome run_text(struct top *top, json_t **failure)
{
    const struct top_options *options = top->options;
    const struct timespec delay = {
        .tv_sec = (time_t)options->delay,
        .tv_nsec = (long)((options->delay - (double)(time_t)options->delay) * 1e9)};
    const uint64_t looks = options->looks || options->text ? options->looks : 1;
    for (uint64_t i = 0; looks == 0 || i < looks; i++) {
        nanosleep(&delay, NULL);
        enum admin_outcome outcome = overview_take(&top->overview, options->socket, failure);
        if (outcome != ADMIN_OK)
            return outcome;
        if (i && !options->json)
            putchar('\n');
        print_look(top, show_look(stdout, options->no_color, options->term));
        /* The reader of a pipe has gone. */
        if (fflush(stdout) != 0)
            return ADMIN_OK;
    }
    return ADMIN_OK;
}

/* ---- on a screen ---- */

/* The rows have changed: the selection stays with its client, or, where that has gone, with its
 * place. */
static void follow_chosen(struct top *top)
{
    const size_t count = top->listing.count;
    const size_t place = listing_find(&top->listing, top->chosen);
    if (place < count)
        top->screen.selected = place;
    else if (top->screen.selected >= count)
        top->screen.selected = count ? count - 1 : 0;
    if (count)
        top->chosen = top->listing.rows[top->screen.selected].client;
}

static void refill(struct top *top)
{
    listing_fill(&top->listing, &top->overview);
    follow_chosen(top);
}

static void say_failure(struct top *top, json_t *failure)
{
    const char *text = json_string_value(json_object_get(failure, "text"));
    snprintf(top->said, sizeof top->said, "%s", text ? text : MESSAGE_TEXT(process_no_memory));
    table_clean(top->said);
    json_decref(failure);
}

static void choose(struct top *top, bool next)
{
    const size_t last = top->listing.count ? top->listing.count - 1 : 0;
    size_t *selected = &top->screen.selected;
    if (next && *selected < last)
        ++*selected;
    else if (!next && *selected > 0)
        --*selected;
    if (top->listing.count)
        top->chosen = top->listing.rows[*selected].client;
}

/* ---- kill ---- */

static void ask_kill(struct top *top)
{
    if (top->listing.count == 0) {
        snprintf(top->said, sizeof top->said, "%s", MESSAGE_TEXT(top_nobody));
        return;
    }
    top->victim = top->listing.rows[top->screen.selected];
    top->asking = ASKS_KILL;
    snprintf(top->said, sizeof top->said, MESSAGE_TEXT(top_kill), (long long)top->victim.client,
             top->victim.name, top->victim.user);
}

static void kill_victim(struct top *top)
{
    json_t *request = json_pack("{s:s, s:I}", "request", "kill", "client", top->victim.client);
    json_t *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(top->options->socket, request, &answer, NULL) : ADMIN_FAILED;
    json_decref(request);
    if (outcome != ADMIN_OK) {
        say_failure(top, answer);
        return;
    }
    snprintf(top->said, sizeof top->said, MESSAGE_TEXT(top_killed), (long long)top->victim.client,
             top->victim.name, top->victim.user);
    json_decref(answer);
}

static void answer_kill(struct top *top, int key)
{
    top->asking = ASKS_NOTHING;
    top->said[0] = '\0';
    if (key == 'y' || key == 'Y')
        kill_victim(top);
    else
        snprintf(top->said, sizeof top->said, MESSAGE_TEXT(top_spared),
                 (long long)top->victim.client);
}

/* ---- filter ---- */

static void show_filter(struct top *top)
{
    snprintf(top->said, sizeof top->said, "filter: %s_  (Enter: keep it, Esc: as before)",
             top->listing.filter);
}

static void edit_filter(struct top *top, int key)
{
    char *filter = top->listing.filter;
    size_t length = strlen(filter);
    if (key == TERMINAL_ESCAPE)
        strcpy(filter, top->filter);
    if (key == TERMINAL_ESCAPE || key == '\r' || key == '\n') {
        top->asking = ASKS_NOTHING;
        top->said[0] = '\0';
        return;
    }
    if ((key == BACKSPACE || key == DELETE) && length) {
        do
            filter[--length] = '\0';
        while (length && ((unsigned char)filter[length - 1] & 0x80));
    } else if (key >= ' ' && key < TERMINAL_UP && key != DELETE &&
               length + 1 < sizeof top->listing.filter) {
        filter[length] = (char)key;
        filter[length + 1] = '\0';
    }
    show_filter(top);
}

static void begin_filter(struct top *top)
{
    strcpy(top->filter, top->listing.filter);
    top->asking = ASKS_FILTER;
    show_filter(top);
}

/* ---- keys ---- */

static void take_command(struct top *top, int key)
{
    top->said[0] = '\0';
    switch (key) {
    case 'q':
        top->ends = true;
        break;
    case 's':
        top->listing.order = (top->listing.order + 1) % LISTING_ORDERS;
        break;
    case 'r':
        top->listing.reverse = !top->listing.reverse;
        break;
    case 'p':
        top->screen.paused = !top->screen.paused;
        break;
    case 'h':
    case '?':
        top->screen.help = !top->screen.help;
        break;
    case TERMINAL_UP:
    case TERMINAL_DOWN:
        choose(top, key == TERMINAL_DOWN);
        break;
    case '/':
        begin_filter(top);
        break;
    case 'k':
        ask_kill(top);
        break;
    default:
        break;
    }
}

static void take_key(struct top *top, int key)
{
    if (key == CTRL_C || key == TERMINAL_END)
        top->ends = true;
    else if (key == CTRL_Z)
        terminal_suspend(&top->terminal);
    else if (key == CTRL_L || key == TERMINAL_RESIZED || key == TERMINAL_TIME)
        return;
    else if (top->asking == ASKS_KILL)
        answer_kill(top, key);
    else if (top->asking == ASKS_FILTER)
        edit_filter(top, key);
    else
        take_command(top, key);
    refill(top);
}

/* A server that does not answer is asked again: it may be replaced just now. */
static void look_again(struct top *top)
{
    json_t *failure;
    if (overview_take(&top->overview, top->options->socket, &failure) != ADMIN_OK)
        say_failure(top, failure);
    refill(top);
}

static void run_screen(struct top *top)
{
    const uint64_t delay = (uint64_t)(top->options->delay * 1e9);
    uint64_t next = clock_now() + delay, looks = 1;
    while (!top->ends) {
        screen_draw(&top->screen, &top->terminal);
        take_key(top, terminal_wait(&top->terminal, next));
        if (top->ends || clock_now() < next)
            continue;
        next = clock_now() + delay;
        if (top->screen.paused)
            continue;
        top->ends = top->options->looks && looks++ >= top->options->looks;
        if (!top->ends)
            look_again(top);
    }
}

/* A terminal that can't move its cursor is a printer. */
static bool has_screen(const struct top_options *options)
{
    return !options->text && !options->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           options->term && *options->term && strcmp(options->term, "dumb") != 0;
}

enum admin_outcome top_run(const struct top_options *options, json_t **failure)
{
    struct top top = {.options = options};
    enum admin_outcome outcome = overview_take(&top.overview, options->socket, failure);
    if (outcome == ADMIN_OK && has_screen(options)) {
        int result = terminal_open(&top.terminal, options->no_color);
        if (result < 0) {
            *failure = admin_client_error("server_resources", MESSAGE_TEXT(top_terminal),
                                          strerror(-result));
            outcome = ADMIN_FAILED;
        } else {
            top.screen = (struct screen){.overview = &top.overview,
                                         .listing = &top.listing,
                                         .delay = options->delay,
                                         .said = top.said};
            refill(&top);
            run_screen(&top);
            terminal_close(&top.terminal);
        }
    } else if (outcome == ADMIN_OK) {
        outcome = run_text(&top, failure);
    }
    overview_free(&top.overview);
    listing_free(&top.listing);
    return outcome;
}
