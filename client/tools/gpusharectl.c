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
#include "client/tools/brief.h"
#include "client/tools/change.h"
#include "client/tools/command.h"
#include "client/tools/metrics/metrics.h"
#include "client/tools/sample.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "client/tools/tracing.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/option.h"
#include "common/units.h"

struct options {
    const char *socket;
    const char *command;
    bool json;
    bool wide; /* status and clients: everything that is known */
    json_t *request;
    struct tracing_options trace;
    bool force;               /* kill: even if others end too */
    bool reset;               /* reload: what administrators have set goes back */
    bool save;                /* set: the values outlive the server */
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

/* Reads the words after the target of set. */
static int check_values(const struct options *options, int count, char **words)
{
    struct error why;
    if (change_read_values(options->request, count, words, &why))
        return report_usage("%s", why.text);
    if (options->save)
        json_object_set_new(options->request, "save", json_true());
    return -1;
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
        return check_values(options, count - used, words + used);
    return used < count ? report_usage(MESSAGE_TEXT(ctl_argument), words[used]) : -1;
}

static bool has_brief_form(const char *command)
{
    return is_command(command, "status") || is_command(command, "clients");
}

static int refuse_command(const char *word)
{
    char names[COMMAND_NAMES];
    const char *meant = command_nearest(word);
    return meant ? report_usage(MESSAGE_TEXT(ctl_command_misspelt), word, meant)
                 : report_usage(MESSAGE_TEXT(ctl_command_none), word, command_names(names));
}

/* Prints the help for the first word, or all of it without one. */
static int check_help(int count, char **words)
{
    if (count == 0)
        command_explain_all(stdout);
    else if (command_is_known(words[0]))
        command_explain(stdout, words[0]);
    else
        return refuse_command(words[0]);
    return ADMIN_OK;
}

static int check_command(struct options *options, int count, char **words)
{
    char names[COMMAND_NAMES];
    if (count == 0)
        return report_usage(MESSAGE_TEXT(ctl_command_missing), command_names(names));
    if (!command_is_known(words[0]))
        return refuse_command(words[0]);
    if (is_command(words[0], "help"))
        return check_help(count - 1, words + 1);
    options->command = words[0];
    if (options->trace_option && !is_command(words[0], "trace"))
        return report_usage(MESSAGE_TEXT(ctl_trace_option), options->trace_option);
    if (options->force && !is_command(words[0], "kill"))
        return report_usage(MESSAGE_TEXT(ctl_force_option));
    if (options->reset && !is_command(words[0], "reload"))
        return report_usage(MESSAGE_TEXT(ctl_reset_option));
    if (options->save && !is_command(words[0], "set"))
        return report_usage(MESSAGE_TEXT(ctl_save_option));
    if (options->wide && !has_brief_form(words[0]))
        return report_usage(MESSAGE_TEXT(ctl_wide_option));
    if (is_command(words[0], "trace") && !options->trace.file)
        return report_usage(MESSAGE_TEXT(ctl_trace_file));
    options->request = is_command(words[0], "metrics") ? metrics_request(METRICS_CLIENTS)
                                                       : json_pack("{s:s}", "request", words[0]);
    if (options->force)
        json_object_set_new(options->request, "force", json_true());
    if (options->reset)
        json_object_set_new(options->request, "reset", json_true());
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
        return report_usage(MESSAGE_TEXT(ctl_trace_seconds), optarg, UNITS_DURATIONS);
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
    static const struct option longs[] = {
        {"socket", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
        {"output", required_argument, NULL, 'o'}, {"seconds", required_argument, NULL, 't'},
        {"gpu", required_argument, NULL, 'g'},    {"force", no_argument, NULL, 'f'},
        {"wide", no_argument, NULL, 'w'},         {"reset", no_argument, NULL, 'r'},
        {"save", no_argument, NULL, 'p'},         {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    struct error why;
    bool help = false;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":hVo:", longs, NULL)) != -1) {
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
        case 'w':
            options->wide = true;
            break;
        case 'r':
            options->reset = true;
            break;
        case 'p':
            options->save = true;
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
            help = true;
            break;
        default:
            option_explain(option, argv, longs, &why);
            return report_usage("%s", why.text);
        }
    }
    return help ? check_help(argc - optind, argv + optind)
                : check_command(options, argc - optind, argv + optind);
}

static long long count_in(const json_t *answer, const char *of)
{
    return (long long)json_integer_value(json_object_get(answer, of));
}

static void print_reload(const json_t *answer)
{
    const char *file = json_string_value(json_object_get(answer, "file"));
    char shown[4096];
    if (file) {
        snprintf(shown, sizeof shown, "%s", file);
        table_clean(shown);
        print_line(stdout, MESSAGE_TEXT(ctl_reloaded), shown, count_in(answer, "profiles"),
                   count_in(answer, "rules"), count_in(answer, "gpus"), count_in(answer, "users"),
                   count_in(answer, "groups"), count_in(answer, "cgroups"));
    } else {
        puts(MESSAGE_TEXT(ctl_no_configuration));
    }
    print_line(stdout, MESSAGE_TEXT(ctl_reload_changed), count_in(answer, "changed_clients"),
               count_in(answer, "changed_settings"));
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

/* The answer is about GPUs, about clients, about a user (its clients, then their total), or about a
 * group or a control group (a total alone). */
static void print_limits(const struct options *options, const json_t *answer,
                         struct table_look look)
{
    const json_t *clients = json_object_get(answer, "clients");
    const json_t *of = json_object_get(answer, "total");
    bool total = of != NULL;
    /* A sample says what a user uses now. After a set nobody asked for that. */
    bool samples = is_command(options->command, "get") && json_object_get(of, "user");
    struct sample sample = {0};
    if (samples)
        sample_take(&sample, options->socket, NULL);
    if (json_object_get(answer, "gpus"))
        show_gpus(stdout, answer, look);
    if (json_array_size(clients) || (clients && !total))
        show_limits(stdout, answer, look);
    if (json_array_size(clients) && total)
        putchar('\n');
    if (total)
        show_total(stdout, answer, samples ? &sample : NULL, look);
    sample_free(&sample);
}

/* status and clients, with what each uses now. */
static void print_brief(const struct options *options, json_t *answer, struct table_look look)
{
    struct sample sample;
    bool of_status = is_command(options->command, "status");
    sample_take(&sample, options->socket, of_status ? NULL : answer);
    if (of_status)
        show_status(stdout, answer, &sample, look);
    else
        brief_clients(stdout, &sample, look);
    sample_free(&sample);
}

static void print_answer(const struct options *options, json_t *answer)
{
    struct table_look look = show_look(stdout, getenv("NO_COLOR"), getenv("TERM"));
    const char *version = json_string_value(json_object_get(answer, "server_version"));
    const char *protocol = json_string_value(json_object_get(answer, "protocol_version"));
    if (has_brief_form(options->command) && !options->wide)
        print_brief(options, answer, look);
    else if (is_command(options->command, "status"))
        show_status(stdout, answer, NULL, look);
    else if (is_command(options->command, "clients"))
        show_clients(stdout, answer, look);
    else if (is_command(options->command, "version"))
        printf("gpusharectl %s\ngpushared %s (protocol %s)\n", GPUSHARE_VERSION,
               version ? version : "-", protocol ? protocol : "-");
    else if (is_command(options->command, "get") || is_command(options->command, "set"))
        print_limits(options, answer, look);
    else if (is_command(options->command, "metrics"))
        metrics_write(stdout, EXPOSITION_TEXT, answer, NULL);
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
