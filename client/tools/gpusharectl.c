/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpusharectl: the administrator's command. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "client/tools/change.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "client/tools/tracing.h"
#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/messages.h"
#include "common/option.h"
#include "common/units.h"

/* A format: the names of the resources of a client, and of those that have totals. */
static const char help[] =
    "usage: gpusharectl [--socket PATH] [--json] COMMAND\n"
    "\n"
    "gpusharectl shows and changes how gpushared shares the GPUs of this machine.\n"
    "\n"
    "commands:\n"
    "  ping         check that the server answers\n"
    "  status       show the server and its devices\n"
    "  clients      show each client's limits, asked and granted, and what it uses\n"
    "  version      show the versions of this tool and of the server\n"
    "  get TARGET   show the limits in force. TARGET is the number of a client in `clients`,\n"
    "               user UID for all clients of a user, group GID for a group's total, or\n"
    "               gpu INDEX for the mode of a GPU: get gpu 0\n"
    "  set TARGET NAME=VALUE...\n"
    "               change limits while work is in flight; limits that are not named stay\n"
    "               (for root, and users that gpushared was given with --admin-uid). Names\n"
    "               of a client, or of all clients of a user:\n"
    "               %s,\n"
    "               each with .request or .limit, or without, which means .limit\n"
    "               (threads=50%% memory.request=1G); priority=3; kernel_time_limit=30s, or\n"
    "               0 for none; fraction=0.5, which sets memory.limit and time.request.\n"
    "               Names of a user's or a group's total:\n"
    "               %s.\n"
    "               Names of a GPU: lease=50ms precision=5%%\n"
    "               quantum=30s window_limit=500ms local_memory=1K\n"
    "               departed_time_limit=5s watchdog_warning=2s watchdog_limit=10s\n"
    "               mode=concurrent|strict|fair|turns\n"
    "  kill [--force] CLIENT\n"
    "               end a client's connection; CLIENT is its number in `clients` (for the same\n"
    "               users as set). With --force also a client that has left and whose work\n"
    "               does not end; that ends all clients of its GPU\n"
    "  reload       make the server read its configuration file again; a file with a mistake\n"
    "               changes nothing (for the same users as set)\n"
    "  trace -o FILE [--seconds N] [--gpu N]\n"
    "               record what runs on a GPU in FILE, which ui.perfetto.dev opens, for\n"
    "               --seconds N (0.001 to 600, default: 5) on --gpu N (default: 0); Ctrl-C\n"
    "               ends the recording early (for the same users as set)\n"
    "\n"
    "options:\n"
    "  --socket PATH  the server's admin socket (default: admin.sock beside $GPUSHARE_SOCKET if\n"
    "                 that is set, else $XDG_RUNTIME_DIR/gpushare/admin.sock if it exists, else\n"
    "                 /run/gpushare/admin.sock)\n"
    "  --json         print the answer as JSON; its schemas are schemas/admin-*.schema.json\n"
    "  --version      print the version of this tool, and exit\n"
    "  --help         print this text, and exit\n";

static void print_help(void)
{
    char clients[ALLOWANCE_NAMES], totals[ALLOWANCE_NAMES];
    printf(help, allowance_names(false, "", "=", " and ", clients),
           allowance_names(true, "total.", "=", " and ", totals));
    printf("\nexit status: 0 done, 1 the server refused, 2 wrong usage, 3 the server can't be "
           "reached,\n"
           "or did not answer within %d s (reload: %d s; trace: %d s more than it lasts)\n",
           ADMIN_CLIENT_SECONDS, ADMIN_CLIENT_SECONDS + ADMIN_CLIENT_RELOAD_SECONDS,
           ADMIN_CLIENT_SECONDS);
}

struct options {
    const char *socket;
    const char *command;
    bool json;
    json_t *request;
    struct tracing_options trace;
    bool force;               /* kill: even if others end too */
    const char *trace_option; /* the last option of `trace` that was given, or NULL */
};

/* One line; on standard error with the program's name before it. */
__attribute__((format(printf, 2, 3))) static void print_line(FILE *to, const char *format, ...)
{
    va_list arguments;
    if (to == stderr)
        fputs("gpusharectl: ", to);
    va_start(arguments, format);
    vfprintf(to, format, arguments);
    va_end(arguments);
    fputc('\n', to);
}

/* MESSAGE_TEXT(name) and its arguments. */
#define report_usage(...)                                                                          \
    (print_line(stderr, __VA_ARGS__), fputs("Try 'gpusharectl --help'.\n", stderr), ADMIN_USAGE)

static bool is_command(const char *command, const char *name)
{
    return strcmp(command, name) == 0;
}

/* Reads the words after kill, get and set. Returns an exit status, or -1 to go on. */
static int check_target(const struct options *options, int count, char **words)
{
    struct error why;
    int used;
    if (change_read_target(options->request, count, words, is_command(options->command, "kill"),
                           &used, &why))
        return report_usage("%s: %s", options->command, why.text);
    if (is_command(options->command, "set"))
        return change_read_values(options->request, count - used, words + used, &why)
                   ? report_usage("%s", why.text)
                   : -1;
    return used < count ? report_usage(MESSAGE_TEXT(ctl_argument), words[used]) : -1;
}

static int check_command(struct options *options, int count, char **words)
{
    static const char *const commands[] = {"ping", "status", "clients", "version", "kill",
                                           "get",  "set",    "reload",  "trace"};
    if (count == 0)
        return report_usage(MESSAGE_TEXT(ctl_command_missing));
    bool known = false;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        known |= is_command(words[0], commands[i]);
    if (!known)
        return report_usage(MESSAGE_TEXT(ctl_command_unknown), words[0]);
    options->command = words[0];
    if (options->trace_option && !is_command(words[0], "trace"))
        return report_usage(MESSAGE_TEXT(ctl_trace_option), options->trace_option);
    if (options->force && !is_command(words[0], "kill"))
        return report_usage(MESSAGE_TEXT(ctl_force_option));
    if (is_command(words[0], "trace") && !options->trace.file)
        return report_usage(MESSAGE_TEXT(ctl_trace_file));
    options->request = json_pack("{s:s}", "request", words[0]);
    if (options->force)
        json_object_set_new(options->request, "force", json_true());
    if (is_command(words[0], "kill") || is_command(words[0], "get") || is_command(words[0], "set"))
        return check_target(options, count - 1, words + 1);
    return count > 1 ? report_usage(MESSAGE_TEXT(ctl_argument), words[1]) : -1;
}

static int read_trace_option(struct options *options, int option)
{
    uint64_t number;
    switch (option) {
    case 'o':
        options->trace.file = optarg;
        options->trace_option = "-o";
        return -1;
    case 't':
        options->trace_option = "--seconds";
        if (tracing_parse_seconds(optarg, &options->trace.seconds) == 0)
            return -1;
        return report_usage(MESSAGE_TEXT(ctl_trace_seconds), optarg);
    default:
        options->trace_option = "--gpu";
        if (units_parse_number(optarg, strlen(optarg), UINT32_MAX, &number) != 0)
            return report_usage(MESSAGE_TEXT(ctl_trace_gpu), optarg);
        options->trace.gpu = (uint32_t)number;
        return -1;
    }
}

/* Reads the command line. Returns an exit status, or -1 to go on. */
static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {{"socket", required_argument, NULL, 's'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"gpu", required_argument, NULL, 'g'},
                                          {"force", no_argument, NULL, 'f'},
                                          {"version", no_argument, NULL, 'V'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct error why;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":ho:", longs, NULL)) != -1) {
        switch (option) {
        case 's':
            options->socket = optarg;
            break;
        case 'j':
            options->json = true;
            break;
        case 'f':
            options->force = true;
            break;
        case 'o':
        case 't':
        case 'g': {
            int status = read_trace_option(options, option);
            if (status >= 0)
                return status;
            break;
        }
        case 'V':
            puts("gpusharectl " GPUSHARE_VERSION);
            return ADMIN_OK;
        case 'h':
            print_help();
            return ADMIN_OK;
        default:
            option_explain(option, argv, longs, &why);
            return report_usage("%s", why.text);
        }
    }
    return check_command(options, argc - optind, argv + optind);
}

static void print_reload(const json_t *answer)
{
    const char *file = json_string_value(json_object_get(answer, "file"));
    char shown[4096];
    if (!file) {
        puts(MESSAGE_TEXT(ctl_no_configuration));
        return;
    }
    snprintf(shown, sizeof shown, "%s", file);
    table_clean(shown);
    print_line(stdout, MESSAGE_TEXT(ctl_reloaded), shown,
               (long long)json_integer_value(json_object_get(answer, "profiles")),
               (long long)json_integer_value(json_object_get(answer, "rules")));
}

static void print_trace(const struct options *options, const json_t *answer,
                        const struct tracing_summary *summary)
{
    const char *trouble = json_string_value(json_object_get(answer, "trouble"));
    char shown[4096];
    snprintf(shown, sizeof shown, "%s", options->trace.file);
    table_clean(shown);
    print_line(stdout, MESSAGE_TEXT(ctl_traced), shown, summary->seconds,
               (unsigned)options->trace.gpu, (unsigned long long)summary->records,
               summary->clients);
    if (summary->lost)
        print_line(stderr, MESSAGE_TEXT(ctl_trace_lost), (unsigned long long)summary->lost);
    if (trouble) {
        snprintf(shown, sizeof shown, "%s", trouble);
        table_clean(shown);
        print_line(stderr, MESSAGE_TEXT(ctl_trace_cut), shown);
    }
}

/* The answer is about GPUs, about clients, about a user (its clients, then their total) or about a
 * group (a total alone). */
static void print_limits(const json_t *answer, struct table_look look)
{
    const json_t *clients = json_object_get(answer, "clients");
    bool total = json_object_get(answer, "total") != NULL;
    if (json_object_get(answer, "gpus"))
        show_gpus(stdout, answer, look);
    if (json_array_size(clients) || (clients && !total))
        show_limits(stdout, answer, look);
    if (json_array_size(clients) && total)
        putchar('\n');
    if (total)
        show_total(stdout, answer, look);
}

static void print_answer(const struct options *options, const json_t *answer)
{
    struct table_look look = show_look(stdout, getenv("NO_COLOR"), getenv("TERM"));
    const char *version = json_string_value(json_object_get(answer, "server_version"));
    const char *protocol = json_string_value(json_object_get(answer, "protocol_version"));
    if (is_command(options->command, "status"))
        show_status(stdout, answer, look);
    else if (is_command(options->command, "clients"))
        show_clients(stdout, answer, look);
    else if (is_command(options->command, "version"))
        printf("gpusharectl %s\ngpushared %s (protocol %s)\n", GPUSHARE_VERSION,
               version ? version : "-", protocol ? protocol : "-");
    else if (is_command(options->command, "get") || is_command(options->command, "set"))
        print_limits(answer, look);
    else if (is_command(options->command, "kill"))
        show_kill(stdout, answer);
    else if (is_command(options->command, "reload"))
        print_reload(answer);
    else
        puts(MESSAGE_TEXT(ctl_ping));
}

static void print_json(const struct options *options, json_t *answer)
{
    if (is_command(options->command, "version") && json_is_true(json_object_get(answer, "ok")))
        json_object_set_new(answer, "client_version", json_string(GPUSHARE_VERSION));
    json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS));
    putchar('\n');
}

static int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    print_line(stderr, MESSAGE_TEXT(tool_output), strerror(errno));
    return status ? status : ADMIN_FAILED;
}

int main(int argc, char **argv)
{
    struct options options = {.trace = {.seconds = TRACING_SECONDS_DEFAULT}};
    struct tracing_summary summary;
    char path[4096];
    int status = read_options(&options, argc, argv);
    if (status >= 0 || !options.command) {
        json_decref(options.request);
        return finish_output(status);
    }
    if (!options.socket)
        options.socket = admin_client_default_path(getenv("GPUSHARE_SOCKET"),
                                                   getenv("XDG_RUNTIME_DIR"), path, sizeof path);

    json_t *answer;
    options.trace.socket = options.socket;
    bool is_trace = is_command(options.command, "trace");
    struct admin_client_wait reload = {.seconds = ADMIN_CLIENT_RELOAD_SECONDS, .enough = -1};
    status = is_trace
                 ? (int)tracing_run(&options.trace, &answer, &summary)
                 : (int)admin_client_ask(options.socket, options.request, &answer,
                                         is_command(options.command, "reload") ? &reload : NULL);
    if (options.json && answer)
        print_json(&options, answer);
    if (status != ADMIN_OK) {
        const char *text = json_string_value(json_object_get(answer, "text"));
        char shown[800];
        snprintf(shown, sizeof shown, "%s", text ? text : MESSAGE_TEXT(process_no_memory));
        table_clean(shown);
        fprintf(stderr, "gpusharectl: %s\n", shown);
        if (status == ADMIN_NO_SERVER && !options.json && is_command(options.command, "version"))
            puts("gpusharectl " GPUSHARE_VERSION);
    } else if (is_trace && !options.json) {
        print_trace(&options, answer, &summary);
    } else if (!options.json) {
        print_answer(&options, answer);
    }
    json_decref(answer);
    json_decref(options.request);
    return finish_output(status);
}
