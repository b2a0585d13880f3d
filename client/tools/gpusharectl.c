/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpusharectl: the administrator's command. */
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "client/tools/tracing.h"
#include "common/units.h"

static const char help[] =
    "usage: gpusharectl [--socket PATH] [--json] COMMAND\n"
    "\n"
    "commands:\n"
    "  ping         does the server answer?\n"
    "  status       the server and its devices\n"
    "  clients      who uses them: limits asked and granted, and what is used\n"
    "  version      of this tool and of the server\n"
    "  get CLIENT   what a client is granted; user:UID for all of a user\n"
    "  set CLIENT threads=SHARE memory=SIZE host_memory=SIZE priority=N\n"
    "               change it, work in flight or not; what is not named stays\n"
    "               (root, and the users that gpushared was given with --admin-uid)\n"
    "  kill CLIENT  end a client's connection; CLIENT is its number in `clients`\n"
    "               (root, and the users that gpushared was given with --admin-uid)\n"
    "  reload       read the server's configuration file again; a file with a mistake is\n"
    "               refused whole (root, and the users of --admin-uid)\n"
    "  trace -o FILE [--seconds N] [--gpu N]\n"
    "               writes down what runs when, for N seconds (5; 0.001 to 600), as a trace\n"
    "               that ui.perfetto.dev opens (root, and the users of --admin-uid)\n"
    "\n"
    "options:\n"
    "  --socket PATH  the server's admin socket (default: $XDG_RUNTIME_DIR/gpushare/admin.sock\n"
    "                 if it exists, else /run/gpushare/admin.sock)\n"
    "  --json         print the answer as JSON; its schemas are schemas/admin-*.schema.json\n"
    "  --version      of this tool\n"
    "  --help         this text\n"
    "\n"
    "exit status: 0 done, 1 the server refused, 2 wrong usage, 3 the server can't be reached\n";

struct options {
    const char *socket;
    const char *command;
    bool json;
    bool user;       /* client is a uid */
    uint32_t client; /* of kill, get and set */
    int change_count;
    char **changes; /* of set: "threads=25%" and so on */
    struct tracing_wish trace;
    const char *trace_option; /* one of trace's that was given, or NULL */
};

__attribute__((format(printf, 1, 2))) static int usage(const char *format, ...)
{
    va_list arguments;
    fputs("gpusharectl: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nTry 'gpusharectl --help'.\n", stderr);
    return ADMIN_USAGE;
}

static bool takes_client(const char *command)
{
    return !strcmp(command, "kill") || !strcmp(command, "get") || !strcmp(command, "set");
}

/* "name=value" of a known name, each once. */
static int check_changes(const struct options *options)
{
    static const char *const names[] = {"threads", "memory", "host_memory", "priority"};
    unsigned seen = 0;
    for (int i = 0; i < options->change_count; i++) {
        const char *word = options->changes[i];
        size_t length = strcspn(word, "=");
        unsigned known = 0;
        for (unsigned n = 0; n < 4; n++)
            if (word[length] && strlen(names[n]) == length && !strncmp(word, names[n], length))
                known = 1u << n;
        if (!known)
            return usage("\"%s\" is not threads=, memory=, host_memory= or priority= and a value",
                         word);
        if (seen & known)
            return usage("\"%s\" sets something twice", word);
        seen |= known;
        uint64_t number;
        if (known == 8 &&
            units_parse_number(word + length + 1, strlen(word + length + 1), 1000, &number) != 0)
            return usage("\"%s\": a priority is a number from 0 (normal) to 1000", word);
    }
    return -1;
}

/* The server reads the values: it knows the device. */
static void add_changes(const struct options *options, json_t *request)
{
    for (int i = 0; i < options->change_count; i++) {
        char *value = strchr(options->changes[i], '=');
        *value++ = '\0';
        json_object_set_new(request, options->changes[i],
                            strcmp(options->changes[i], "priority") == 0
                                ? json_integer(strtol(value, NULL, 10))
                                : json_pack("{s:s}", "limit", value));
    }
}

static int check_command(struct options *options, int count, char **words)
{
    static const char *const commands[] = {"ping", "status", "clients", "version", "kill",
                                           "get",  "set",    "reload",  "trace"};
    if (count == 0)
        return usage(
            "no command: one of ping, status, clients, version, get, set, kill, reload, trace");
    bool known = false;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        known |= strcmp(words[0], commands[i]) == 0;
    if (!known)
        return usage("unknown command \"%s\"", words[0]);
    options->command = words[0];
    bool is_trace = strcmp(words[0], "trace") == 0;
    if (options->trace_option && !is_trace)
        return usage("%s is an option of trace", options->trace_option);
    if (is_trace && !options->trace.file)
        return usage("trace needs the file to write: -o FILE");
    bool is_set = strcmp(words[0], "set") == 0, is_get = strcmp(words[0], "get") == 0;
    bool has_client = takes_client(words[0]);
    if (has_client && count < 2)
        return usage("%s needs the number of a client, as `gpusharectl clients` shows it",
                     words[0]);
    int most = has_client ? 2 : 1;
    if (is_set && count == most)
        return usage("set needs something to set, such as threads=25%%");
    if (!is_set && count > most)
        return usage("\"%s\" is one argument too many", words[most]);
    if (!has_client)
        return -1;
    uint64_t number;
    const char *whom = words[1];
    options->user = (is_set || is_get) && strncmp(whom, "user:", 5) == 0;
    whom += options->user ? 5 : 0;
    if (units_parse_number(whom, strlen(whom), UINT32_MAX, &number) != 0)
        return usage("\"%s\" is not the number of a client%s", words[1],
                     is_set || is_get ? ", or user: and a uid" : "");
    options->client = (uint32_t)number;
    options->changes = words + 2;
    options->change_count = is_set ? count - 2 : 0;
    return check_changes(options);
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
        return usage("\"%s\": a trace lasts from 0.001 to 600 seconds", optarg);
    default:
        options->trace_option = "--gpu";
        if (units_parse_number(optarg, strlen(optarg), UINT32_MAX, &number) != 0)
            return usage("\"%s\" is not the number of a GPU, as `gpusharectl status` shows it",
                         optarg);
        options->trace.gpu = (uint32_t)number;
        return -1;
    }
}

/* Reads the command line. Returns an exit status, or -1 to go on. */
static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"socket", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
        {"output", required_argument, NULL, 'o'}, {"seconds", required_argument, NULL, 't'},
        {"gpu", required_argument, NULL, 'g'},    {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "ho:", longs, NULL)) != -1) {
        switch (option) {
        case 's':
            options->socket = optarg;
            break;
        case 'j':
            options->json = true;
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
            fputs(help, stdout);
            return ADMIN_OK;
        default:
            fputs("Try 'gpusharectl --help'.\n", stderr);
            return ADMIN_USAGE;
        }
    }
    return check_command(options, argc - optind, argv + optind);
}

static void print_reload(const json_t *answer)
{
    const char *file = json_string_value(json_object_get(answer, "file"));
    char shown[4096];
    if (!file) {
        puts("there is no configuration file: nothing is configured");
        return;
    }
    snprintf(shown, sizeof shown, "%s", file);
    table_clean(shown);
    printf("%s is in force: %lld profiles, %lld rules\n", shown,
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
    printf("%s: %.3f s of GPU %u, %llu records of %u clients; open it at https://ui.perfetto.dev\n",
           shown, summary->seconds, (unsigned)options->trace.gpu,
           (unsigned long long)summary->records, summary->clients);
    if (summary->lost)
        fprintf(stderr,
                "gpusharectl: there was no room for %llu records more: trace a shorter time\n",
                (unsigned long long)summary->lost);
    if (trouble) {
        snprintf(shown, sizeof shown, "%s", trouble);
        table_clean(shown);
        fprintf(stderr, "gpusharectl: the trace is cut short: %s\n", shown);
    }
}

static void print_answer(const struct options *options, const json_t *answer)
{
    bool bold = show_is_bold(stdout, getenv("NO_COLOR"), getenv("TERM"));
    const char *version = json_string_value(json_object_get(answer, "server_version"));
    const char *protocol = json_string_value(json_object_get(answer, "protocol_version"));
    if (strcmp(options->command, "status") == 0)
        show_status(stdout, answer, bold);
    else if (strcmp(options->command, "clients") == 0)
        show_clients(stdout, answer, bold);
    else if (strcmp(options->command, "version") == 0)
        printf("gpusharectl %s\ngpushared %s (protocol %s)\n", GPUSHARE_VERSION,
               version ? version : "-", protocol ? protocol : "-");
    else if (strcmp(options->command, "get") == 0 || strcmp(options->command, "set") == 0)
        show_limits(stdout, answer, bold);
    else if (strcmp(options->command, "kill") == 0)
        printf("client %u is ended\n", (unsigned)options->client);
    else if (strcmp(options->command, "reload") == 0)
        print_reload(answer);
    else
        puts("gpushared answers");
}

static void print_json(const struct options *options, json_t *answer)
{
    if (strcmp(options->command, "version") == 0 && json_is_true(json_object_get(answer, "ok")))
        json_object_set_new(answer, "client_version", json_string(GPUSHARE_VERSION));
    json_dumpf(answer, stdout, JSON_INDENT(2));
    putchar('\n');
}

static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("gpusharectl: cannot write");
    return status ? status : ADMIN_FAILED;
}

int main(int argc, char **argv)
{
    struct options options = {.trace = {.seconds = TRACING_SECONDS_DEFAULT}};
    struct tracing_summary summary;
    char path[4096];
    int status = read_options(&options, argc, argv);
    if (status >= 0 || !options.command)
        return finish(status);
    if (!options.socket)
        options.socket = admin_client_default_path(getenv("XDG_RUNTIME_DIR"), path, sizeof path);

    json_t *answer;
    options.trace.socket = options.socket;
    bool is_trace = strcmp(options.command, "trace") == 0;
    json_t *request = json_pack("{s:s}", "request", options.command);
    if (takes_client(options.command))
        json_object_set_new(request, options.user ? "user" : "client",
                            json_integer(options.client));
    add_changes(&options, request);
    status = is_trace ? (int)tracing_run(&options.trace, &answer, &summary)
                      : (int)admin_client_ask(options.socket, request, &answer);
    json_decref(request);
    if (options.json && answer)
        print_json(&options, answer);
    if (status != ADMIN_OK) {
        const char *text = json_string_value(json_object_get(answer, "text"));
        char shown[800];
        snprintf(shown, sizeof shown, "%s", text ? text : "memory is short");
        table_clean(shown);
        fprintf(stderr, "gpusharectl: %s\n", shown);
        if (status == ADMIN_NO_SERVER && !options.json && strcmp(options.command, "version") == 0)
            puts("gpusharectl " GPUSHARE_VERSION);
    } else if (is_trace && !options.json) {
        print_trace(&options, answer, &summary);
    } else if (!options.json) {
        print_answer(&options, answer);
    }
    json_decref(answer);
    return finish(status);
}
