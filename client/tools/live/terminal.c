/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: ncurses would be a package more on each node, and saves what nobody notices here:
 * the bytes of a page that is drawn whole each second. */
#include "client/tools/live/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"

/* A terminal that does not say its size has the size that all had. */
#define ROWS_DEFAULT    24
#define COLUMNS_DEFAULT 80
/* A key that sends several bytes sends them at once; a person presses nothing so soon after ESC. */
#define SEQUENCE_MS 50

static volatile sig_atomic_t resized, ended;

static const int signals[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT};
#define SIGNALS (sizeof signals / sizeof signals[0])

static void note_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else
        ended = 1;
}

/* They are delivered while terminal_wait sleeps, and at no other time: so none is missed between
 * a look at the flags and the sleep. */
static void signals_take(sigset_t *set)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigemptyset(set);
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaddset(set, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, set, NULL);
}

static void measure(struct terminal *terminal)
{
    struct winsize size;
    const bool known = ioctl(terminal->out, TIOCGWINSZ, &size) == 0;
    terminal->rows = known && size.ws_row ? size.ws_row : ROWS_DEFAULT;
    terminal->columns = known && size.ws_col ? size.ws_col : COLUMNS_DEFAULT;
}

static void write_all(const struct terminal *terminal, const char *text, size_t bytes)
{
    while (bytes) {
        ssize_t written = write(terminal->out, text, bytes);
        if (written < 0 && errno != EINTR) {
            ended = 1;
            return;
        }
        if (written > 0) {
            text += written;
            bytes -= (size_t)written;
        }
    }
}

/* ISIG is off: Ctrl-C and Ctrl-Z are keys, so the screen is given back before they act. */
static int screen_take(struct terminal *terminal)
{
    static const char sequence[] = "\033[?1049h\033[?25l";
    struct termios raw = terminal->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(terminal->in, TCSAFLUSH, &raw) < 0)
        return -errno;
    write_all(terminal, sequence, sizeof sequence - 1);
    measure(terminal);
    return 0;
}

static void screen_give(const struct terminal *terminal)
{
    static const char sequence[] = "\033[0m\033[?25h\033[?1049l";
    write_all(terminal, sequence, sizeof sequence - 1);
    tcsetattr(terminal->in, TCSAFLUSH, &terminal->before);
}

int terminal_open(struct terminal *terminal, const char *no_color)
{
    sigset_t set;
    *terminal =
        (struct terminal){.in = STDIN_FILENO, .out = STDOUT_FILENO, .plain = no_color && *no_color};
    if (tcgetattr(terminal->in, &terminal->before) < 0) {
        terminal->in = -1;
        return -errno;
    }
    signals_take(&set);
    int result = screen_take(terminal);
    if (result < 0)
        terminal->in = -1;
    return result;
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->in < 0)
        return;
    screen_give(terminal);
    terminal->in = -1;
}

void terminal_suspend(struct terminal *terminal)
{
    screen_give(terminal);
    raise(SIGSTOP);
    if (screen_take(terminal) < 0)
        ended = 1;
}

/* ---- keys ---- */

static void take_bytes(struct terminal *terminal, size_t count)
{
    terminal->used -= count;
    memmove(terminal->bytes, terminal->bytes + count, terminal->used);
}

/* The end of a sequence of ESC, '[' or 'O', parameters and a letter; 0: it has not come whole. */
static size_t sequence_length(const struct terminal *terminal)
{
    for (size_t i = 2; i < terminal->used; i++)
        if (terminal->bytes[i] >= 0x40 && terminal->bytes[i] < 0x7f)
            return i + 1;
    return terminal->used == sizeof terminal->bytes ? terminal->used : 0;
}

/* The first key of the bytes that were read; -1: none is whole. alone: nothing has followed for a
 * while. */
static int next_key(struct terminal *terminal, bool alone)
{
    const unsigned char *bytes = terminal->bytes;
    if (terminal->used == 0)
        return -1;
    int key = bytes[0];
    if (key != 0x1b) {
        take_bytes(terminal, 1);
        return key;
    }
    const bool begins = terminal->used > 1 && (bytes[1] == '[' || bytes[1] == 'O');
    const size_t length = begins ? sequence_length(terminal) : 0;
    if (!length && !alone && (begins || terminal->used == 1))
        return -1;
    key = TERMINAL_ESCAPE;
    if (length && bytes[length - 1] == 'A')
        key = TERMINAL_UP;
    else if (length && bytes[length - 1] == 'B')
        key = TERMINAL_DOWN;
    else if (length)
        key = TERMINAL_TIME; /* a key that means nothing here */
    take_bytes(terminal, length ? length : 1);
    return key;
}

/* Returns whether something was read. */
static bool read_some(struct terminal *terminal, uint64_t until)
{
    struct pollfd poll_in = {.fd = terminal->in, .events = POLLIN};
    const uint64_t now = clock_now(), left = until > now ? until - now : 0;
    const struct timespec time = {.tv_sec = (time_t)(left / UNITS_SECOND),
                                  .tv_nsec = (long)(left % UNITS_SECOND)};
    sigset_t none;
    sigemptyset(&none);
    if (ppoll(&poll_in, 1, &time, &none) <= 0)
        return false;
    ssize_t got = read(terminal->in, terminal->bytes + terminal->used,
                       sizeof terminal->bytes - terminal->used);
    if (got > 0)
        terminal->used += (size_t)got;
    else if (got == 0 || errno != EINTR)
        ended = 1; /* it was hung up */
    return got > 0;
}

int terminal_wait(struct terminal *terminal, uint64_t until)
{
    for (;;) {
        int key = next_key(terminal, false);
        if (ended)
            return TERMINAL_END;
        if (resized) {
            resized = 0;
            measure(terminal);
            return TERMINAL_RESIZED;
        }
        if (key >= 0)
            return key;
        if (terminal->used && !read_some(terminal, clock_now() + SEQUENCE_MS * UNITS_MS) && !ended)
            return next_key(terminal, true);
        if (!terminal->used && !read_some(terminal, until) && !resized && !ended &&
            clock_now() >= until)
            return TERMINAL_TIME;
    }
}

/* ---- pages ---- */

void terminal_page_begin(struct terminal *terminal)
{
    terminal->drawing = open_memstream(&terminal->page, &terminal->page_bytes);
    terminal->line = 0;
    if (terminal->drawing)
        fputs("\033[H", terminal->drawing);
}

/* The bytes of a text that fill at most so many columns: characters are not cut in two. */
static size_t bytes_that_fit(const char *text, unsigned columns)
{
    size_t i = 0;
    for (unsigned width = 0; text[i]; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80 && width++ == columns)
            break;
    return i;
}

/* A line is emptied before it is written: behind a text as wide as the screen, the sequence would
 * take the last character away. */
static void put_line(struct terminal *terminal, enum terminal_look look, const char *text)
{
    static const char *const looks[] = {
        [TERMINAL_USUAL] = "", [TERMINAL_BOLD] = "\033[1m", [TERMINAL_REVERSE] = "\033[7m"};
    const bool usual = terminal->plain || look == TERMINAL_USUAL;
    fprintf(terminal->drawing, "%s\033[K%s%.*s%s", terminal->line ? "\r\n" : "",
            usual ? "" : looks[look], (int)bytes_that_fit(text, terminal->columns), text,
            usual ? "" : "\033[0m");
    terminal->line++;
}

void terminal_line(struct terminal *terminal, enum terminal_look look, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    if (!terminal->drawing || terminal->line + 1 >= terminal->rows)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put_line(terminal, look, text);
}

void terminal_page_end(struct terminal *terminal, const char *last)
{
    if (!terminal->drawing)
        return;
    while (terminal->line + 1 < terminal->rows)
        put_line(terminal, TERMINAL_USUAL, "");
    put_line(terminal, TERMINAL_BOLD, last);
    if (fclose(terminal->drawing) == 0)
        write_all(terminal, terminal->page, terminal->page_bytes);
    terminal->drawing = NULL;
    free(terminal->page);
    terminal->page = NULL;
}
