/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushare-exporter: the server's metrics for a monitoring system, and a page for people. */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/tools/admin_client.h"
#include "client/tools/exporter/scrape.h"
#include "client/tools/exporter/textfile.h"
#include "client/tools/exporter/web.h"
#include "client/tools/metrics/metrics.h"
#include "common/error.h"
#include "common/log.h"
#include "common/log_journal.h"
#include "common/messages.h"
#include "common/option.h"
#include "common/units.h"

static const char help[] =
    "usage: gpushare-exporter --listen ADDRESS:PORT [OPTION]...\n"
    "       gpushare-exporter --textfile PATH [--interval TIME] [OPTION]...\n"
    "       gpushare-exporter --once [OPTION]...\n"
    "\n"
    "gpushare-exporter reads gpushared's admin socket and hands what it says to a monitoring\n"
    "system. Its user must be able to open that socket, and needs no other right.\n"
    "\n"
    "options:\n"
    "  --listen ADDRESS:PORT\n"
    "                   serve /metrics, and a page for people at /, over HTTP, without encryption\n"
    "                   or passwords, to all who can connect there: 127.0.0.1:9408, [::1]:9408;\n"
    "                   port 0 is one that is free\n"
    "  --textfile PATH  write the file again and again, for node_exporter; it is removed at the\n"
    "                   end\n"
    "  --interval TIME  how often (1s to 1h; default: 15s)\n"
    "  --once           print the metrics, and exit\n"
    "  --max-clients N  clients that have series of their own (0 to 10000; default: 100): those\n"
    "                   that connected first; sums of users have all of them\n"
    "  --socket PATH    the server's admin socket (default: admin.sock beside $GPUSHARE_SOCKET if\n"
    "                   that is set, else $XDG_RUNTIME_DIR/gpushare/admin.sock if it exists, else\n"
    "                   /run/gpushare/admin.sock)\n"
    "  --version, -V    print the version of this program, and exit\n"
    "  --help, -h       print this text, and exit\n"
    "\n"
    "exit status: 0 done, 1 an address or a file is refused, 2 wrong usage, 3 with --once: the\n"
    "server can't be reached\n";

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_NO_SERVER = 3 };

#define INTERVAL_DEFAULT (15 * UNITS_SECOND)
#define INTERVAL_MAX     (3600 * UNITS_SECOND)

struct options {
    const char *listen, *textfile, *socket;
    bool once;
    uint64_t interval_ns; /* 0: not given */
    uint32_t clients;
};

/* format: MESSAGE_TEXT(name). */
__attribute__((format(printf, 1, 2))) static int report_usage(const char *format, ...)
{
    va_list arguments;
    fputs("gpushare-exporter: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nTry 'gpushare-exporter --help'.\n", stderr);
    return STATUS_USAGE;
}

static int check_options(struct options *options, int count, char **words)
{
    if (count)
        return report_usage(MESSAGE_TEXT(ctl_argument), words[0]);
    if ((options->listen != NULL) + (options->textfile != NULL) + options->once != 1)
        return report_usage(MESSAGE_TEXT(exporter_mode));
    if (options->interval_ns && !options->textfile)
        return report_usage(MESSAGE_TEXT(exporter_interval_alone));
    return -1;
}

/* An option that has a value. Returns an exit status, or -1 to go on. */
static int read_value(struct options *options, int option)
{
    uint64_t number;
    switch (option) {
    case 'l':
        options->listen = optarg;
        return -1;
    case 't':
        /* Another option in its place would be a file that is written until somebody notices. */
        if (*optarg == '-')
            return report_usage(MESSAGE_TEXT(exporter_textfile), optarg);
        options->textfile = optarg;
        return -1;
    case 's':
        options->socket = optarg;
        return -1;
    case 'i':
        if (units_parse_seconds(optarg, strlen(optarg), &number) != 0 || number < UNITS_SECOND ||
            number > INTERVAL_MAX)
            return report_usage(MESSAGE_TEXT(exporter_interval), optarg, UNITS_DURATIONS);
        options->interval_ns = number;
        return -1;
    default:
        if (units_parse_number(optarg, strlen(optarg), METRICS_CLIENTS_MAX, &number) != 0)
            return report_usage(MESSAGE_TEXT(exporter_clients), optarg, METRICS_CLIENTS_MAX);
        options->clients = (uint32_t)number;
        return -1;
    }
}

/* Reads the command line. Returns an exit status, or -1 to go on. */
static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {{"listen", required_argument, NULL, 'l'},
                                          {"textfile", required_argument, NULL, 't'},
                                          {"interval", required_argument, NULL, 'i'},
                                          {"once", no_argument, NULL, 'o'},
                                          {"socket", required_argument, NULL, 's'},
                                          {"max-clients", required_argument, NULL, 'c'},
                                          {"version", no_argument, NULL, 'V'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct error why;
    int option, status = -1;
    opterr = 0;
    while (status < 0 && (option = getopt_long(argc, argv, ":hV", longs, NULL)) != -1) {
        switch (option) {
        case 'o':
            options->once = true;
            break;
        case 'V':
            puts("gpushare-exporter " GPUSHARE_VERSION);
            return STATUS_OK;
        case 'h':
            fputs(help, stdout);
            return STATUS_OK;
        case '?':
        case ':':
            option_explain(option, argv, longs, &why);
            return report_usage("%s", why.text);
        default:
            status = read_value(options, option);
        }
    }
    return status < 0 ? check_options(options, argc - optind, argv + optind) : status;
}

/* ---- the three ways ---- */

static int print_once(struct scrape *scrape)
{
    size_t length = 0;
    bool answered = scrape_ask(scrape);
    char *text = scrape_text(scrape, EXPOSITION_TEXT, &length);
    if (text)
        fwrite(text, 1, length, stdout);
    free(text);
    return !text ? STATUS_FAILED : answered ? STATUS_OK : STATUS_NO_SERVER;
}

/* Until a signal ends it. */
static int serve_web(const struct options *options, struct scrape *scrape, const sigset_t *signals)
{
    struct web web;
    struct error why;
    if (web_open(&web, options->listen, scrape, &why)) {
        log_sentence(LOG_LEVEL_ERROR, &why);
        return STATUS_FAILED;
    }
    sigwaitinfo(signals, NULL);
    web_close(&web);
    return STATUS_OK;
}

static uint32_t write_file(const char *path, struct scrape *scrape, struct error *why)
{
    size_t length = 0;
    scrape_ask(scrape);
    char *text = scrape_text(scrape, EXPOSITION_TEXT, &length);
    if (!text)
        return error_set(why, MESSAGE(process_no_memory));
    uint32_t error = textfile_write(path, text, length, why);
    free(text);
    return error;
}

/* Likewise. A file that can't be written at first is the operator's mistake; later the disk may
 * only be full for a while. Old numbers must not look like new ones, hence the removals. */
static int keep_file(const char *path, uint64_t interval, struct scrape *scrape,
                     const sigset_t *signals)
{
    const struct timespec pause = {.tv_sec = (time_t)(interval / UNITS_SECOND),
                                   .tv_nsec = (long)(interval % UNITS_SECOND)};
    struct error why;
    bool failing = false;
    if (write_file(path, scrape, &why)) {
        log_sentence(LOG_LEVEL_ERROR, &why);
        return STATUS_FAILED;
    }
    while (sigtimedwait(signals, NULL, &pause) < 0) {
        const bool failed = failing;
        failing = write_file(path, scrape, &why) != 0;
        if (failing)
            unlink(path);
        if (failing && !failed)
            log_sentence(LOG_LEVEL_ERROR, &why);
    }
    unlink(path);
    return STATUS_OK;
}

static int run(const struct options *options, struct scrape *scrape)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (!options->listen && !options->textfile)
        return print_once(scrape);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (options->listen)
        return serve_web(options, scrape, &signals);
    return keep_file(options->textfile,
                     options->interval_ns ? options->interval_ns : INTERVAL_DEFAULT, scrape,
                     &signals);
}

int main(int argc, char **argv)
{
    struct options options = {.clients = METRICS_CLIENTS};
    struct scrape scrape;
    char path[4096];
    int status = read_options(&options, argc, argv);
    if (status < 0) {
        if (!options.socket)
            options.socket = admin_client_default_path(
                getenv("GPUSHARE_SOCKET"), getenv("XDG_RUNTIME_DIR"), path, sizeof path);
        log_open("gpushare-exporter", LOG_LEVEL_INFO,
                 options.once ? LOG_FORM_PLAIN : log_journal_form());
        scrape_open(&scrape, options.socket, options.clients);
        status = run(&options, &scrape);
        scrape_close(&scrape);
    }
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("gpushare-exporter: cannot write");
    return status ? status : STATUS_FAILED;
}
