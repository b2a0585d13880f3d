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
#include "client/tools/cell.h"
#include "client/tools/change.h"
#include "client/tools/command.h"
#include "client/tools/configuration/check.h"
#include "client/tools/configuration/shown.h"
#include "client/tools/kill.h"
#include "client/tools/live/all.h"
#include "client/tools/live/columns.h"
#include "client/tools/live/events.h"
#include "client/tools/live/overview.h"
#include "client/tools/live/top.h"
#include "client/tools/live/waiting.h"
#include "client/tools/metrics/metrics.h"
#include "client/tools/mps/mps.h"
#include "client/tools/report/report.h"
#include "client/tools/sample.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "client/tools/tracing.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/option.h"
#include "common/units.h"

/* Stands for the command where there is none. */
#define OVERVIEW "overview"
/* Stand for commands of several words, of which the server is asked otherwise or not at all. */
#define GET_ALL      "get-all"
#define CONFIG_CHECK "config-check"

enum { GIVEN_MAX = 24 };

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
    const char *output;       /* trace: the file; clients: the form */
    struct columns columns;   /* clients: the chosen ones; count 0: none were */
    struct kill_whom kill;
    bool wait;        /* drain: until the GPUs are idle */
    uint64_t wait_ns; /* drain: for at most so long; 0: for any time */
    const char *file; /* config check: the file, or NULL */
    int mps_count;    /* mps: words of its command */
    char **mps_words;
    bool follow; /* events: and those to come */
    struct top_options top;
    struct report_options report;
    const char *given[GIVEN_MAX]; /* options that not every command has */
    unsigned given_count;
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

/* Reads the words after get and set. Returns an exit status, or -1 to go on. */
static int check_target(const struct options *options, int count, char **words)
{
    struct error why;
    int used;
    if (change_read_target(options->request, count, words, false, &used, &why))
        return report_usage("%s: %s", options->command, why.text);
    if (is_command(options->command, "set"))
        return check_values(options, count - used, words + used);
    return used < count ? report_usage(MESSAGE_TEXT(ctl_argument), words[used]) : -1;
}

static int check_kill(struct options *options, int count, char **words)
{
    struct error why;
    if (kill_read(&options->kill, options->request, count, words, &why))
        return report_usage("%s", why.text);
    return -1;
}

/* drain, drain 0, drain gpu 0, drain gpu:0. Without a GPU all are meant. */
static int check_gpu(struct options *options, int count, char **words)
{
    uint64_t number;
    int used = 0;
    const char *word = count ? words[used++] : NULL;
    if (word && is_command(word, "gpu"))
        word = used < count ? words[used++] : "";
    else if (word && strncmp(word, "gpu:", 4) == 0)
        word += 4;
    if (word && units_parse_number(word, strlen(word), UINT32_MAX, &number) != 0)
        return report_usage(MESSAGE_TEXT(ctl_gpu_number), word);
    if (word)
        json_object_set_new(options->request, "gpu", json_integer((json_int_t)number));
    return used < count ? report_usage(MESSAGE_TEXT(ctl_argument), words[used]) : -1;
}

/* config check [FILE], and config show. */
static int check_config(struct options *options, int count, char **words)
{
    if (count == 0)
        return report_usage(MESSAGE_TEXT(ctl_config_missing));
    const bool checks = is_command(words[0], "check");
    if (!checks && !is_command(words[0], "show"))
        return report_usage(MESSAGE_TEXT(ctl_config_word), words[0]);
    if (count > 1 + checks)
        return report_usage(MESSAGE_TEXT(ctl_argument), words[1 + checks]);
    options->file = count > 1 ? words[1] : NULL;
    options->command = checks ? CONFIG_CHECK : options->command;
    return -1;
}

/* The form in which clients are printed. */
static int check_output(struct options *options)
{
    struct error why;
    if (!options->output)
        return -1;
    if (options->json || options->wide)
        return report_usage(MESSAGE_TEXT(ctl_output_twice));
    options->json = strcmp(options->output, "json") == 0;
    options->wide = strcmp(options->output, "wide") == 0;
    if (!options->json && !options->wide && columns_parse(options->output, &options->columns, &why))
        return report_usage("%s", why.text);
    return -1;
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
    if (count && is_command(words[0], "mps"))
        mps_explain(stdout);
    return ADMIN_OK;
}

/* Options of one command beside another one. Returns an exit status, or -1 to go on. */
static int check_options(const struct options *options, const char *command)
{
    if (options->trace_option && !is_command(command, "trace"))
        return report_usage(MESSAGE_TEXT(ctl_trace_option), options->trace_option);
    if (options->force && !is_command(command, "kill"))
        return report_usage(MESSAGE_TEXT(ctl_force_option));
    if (options->reset && !is_command(command, "reload"))
        return report_usage(MESSAGE_TEXT(ctl_reset_option));
    if (options->save && !is_command(command, "set"))
        return report_usage(MESSAGE_TEXT(ctl_save_option));
    if (options->wide && !has_brief_form(command))
        return report_usage(MESSAGE_TEXT(ctl_wide_option));
    for (unsigned i = 0; i < options->given_count; i++)
        if (!command_takes(command, options->given[i]))
            return report_usage(MESSAGE_TEXT(ctl_option_other), options->given[i], command,
                                command);
    if (is_command(command, "trace") && !options->output)
        return report_usage(MESSAGE_TEXT(ctl_trace_file));
    return -1;
}

static int check_completion(int count, char **words)
{
    if (count != 1 || strcmp(words[0], "bash") != 0)
        return report_usage(MESSAGE_TEXT(ctl_shell));
    command_complete_bash(stdout);
    return ADMIN_OK;
}

/* Reads the words behind a command. */
static int check_words(struct options *options, int count, char **words)
{
    options->request = is_command(options->command, "metrics")
                           ? metrics_request(METRICS_CLIENTS)
                           : json_pack("{s:s}", "request", options->command);
    if (options->force)
        json_object_set_new(options->request, "force", json_true());
    if (options->reset)
        json_object_set_new(options->request, "reset", json_true());
    if (is_command(options->command, "kill"))
        return check_kill(options, count, words);
    if (is_command(options->command, "config"))
        return check_config(options, count, words);
    if (is_command(options->command, "get") && count == 1 && is_command(words[0], "all")) {
        options->command = GET_ALL;
        return -1;
    }
    if (is_command(options->command, "get") || is_command(options->command, "set"))
        return check_target(options, count, words);
    if (is_command(options->command, "drain") || is_command(options->command, "resume"))
        return check_gpu(options, count, words);
    options->report.files = words;
    options->report.file_count = count;
    if (is_command(options->command, "report"))
        return -1;
    if (count == 1 && is_command(options->command, "log-level"))
        return json_object_set_new(options->request, "level", json_string(words[0])) < 0
                   ? report_usage(MESSAGE_TEXT(ctl_value_text))
                   : -1;
    if (count)
        return report_usage(MESSAGE_TEXT(ctl_argument), words[0]);
    return is_command(options->command, "clients") ? check_output(options) : -1;
}

static int check_command(struct options *options, int count, char **words)
{
    char names[COMMAND_NAMES];
    if (count == 0 && options->given_count)
        return report_usage(MESSAGE_TEXT(ctl_command_missing), command_names(names));
    options->command = count ? words[0] : OVERVIEW;
    if (count == 0)
        return -1;
    if (!command_is_known(words[0]))
        return refuse_command(words[0]);
    if (is_command(words[0], "help"))
        return check_help(count - 1, words + 1);
    int status = check_options(options, words[0]);
    if (status >= 0)
        return status;
    if (is_command(words[0], "completion"))
        return check_completion(count - 1, words + 1);
    return check_words(options, count - 1, words + 1);
}

static int read_trace_option(struct options *options, int option)
{
    uint64_t number;
    if (option == 't') {
        options->trace_option = "--seconds";
        if (tracing_parse_seconds(optarg, &options->trace.seconds) == 0)
            return -1;
        return report_usage(MESSAGE_TEXT(ctl_trace_seconds), optarg, UNITS_DURATIONS);
    }
    options->trace_option = "--gpu";
    if (units_parse_number(optarg, strlen(optarg), UINT32_MAX, &number) != 0)
        return report_usage(MESSAGE_TEXT(ctl_trace_gpu), optarg);
    options->trace.gpu = (uint32_t)number;
    return -1;
}

/* A time limit is one of waiting. */
static int read_timeout(struct options *options)
{
    if (units_parse_seconds(optarg, strlen(optarg), &options->wait_ns) != 0 ||
        options->wait_ns < UNITS_MS || options->wait_ns > UINT64_MAX / 2)
        return report_usage(MESSAGE_TEXT(ctl_drain_time), optarg, UNITS_DURATIONS);
    options->wait = true;
    return -1;
}

static int read_top_option(struct options *options, int option)
{
    char *end;
    if (option == 'b') {
        options->top.text = true;
    } else if (option == 'n') {
        if (units_parse_number(optarg, strlen(optarg), UINT32_MAX, &options->top.looks) != 0 ||
            options->top.looks == 0)
            return report_usage(MESSAGE_TEXT(ctl_top_number), optarg);
    } else {
        options->top.delay = strtod(optarg, &end);
        if (end == optarg || *end || !(options->top.delay >= TOP_DELAY_LEAST) ||
            !(options->top.delay <= TOP_DELAY_MOST))
            return report_usage(MESSAGE_TEXT(ctl_top_delay), optarg);
    }
    return -1;
}

/* clang-format off */
static const struct option long_options[] = {
    {"socket", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
    {"output", required_argument, NULL, 'o'}, {"seconds", required_argument, NULL, 't'},
    {"gpu", required_argument, NULL, 'g'}, {"force", no_argument, NULL, 'f'},
    {"wide", no_argument, NULL, 'w'}, {"reset", no_argument, NULL, 'r'},
    {"save", no_argument, NULL, 'p'}, {"user", required_argument, NULL, 'u'},
    {"all", no_argument, NULL, 'a'}, {"wait", no_argument, NULL, 'W'},
    {"timeout", required_argument, NULL, 'T'}, {"follow", no_argument, NULL, 'F'},
    {"since", required_argument, NULL, 'S'}, {"until", required_argument, NULL, 'U'},
    {"by", required_argument, NULL, 'B'}, {"csv", no_argument, NULL, 'c'},
    {"version", no_argument, NULL, 'V'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
/* clang-format on */

/* Options that not every command has. */
static const struct {
    int option;
    const char *name;
} own_options[] = {{'o', "-o"},      {'t', "--seconds"}, {'g', "--gpu"},     {'f', "--force"},
                   {'w', "--wide"},  {'r', "--reset"},   {'p', "--save"},    {'u', "--user"},
                   {'a', "--all"},   {'W', "--wait"},    {'b', "-b"},        {'n', "-n"},
                   {'d', "-d"},      {'F', "--follow"},  {'T', "--timeout"}, {'S', "--since"},
                   {'U', "--until"}, {'B', "--by"},      {'c', "--csv"}};

static void note_given(struct options *options, int option)
{
    for (size_t i = 0; i < sizeof own_options / sizeof own_options[0]; i++)
        if (own_options[i].option == option && options->given_count < GIVEN_MAX)
            options->given[options->given_count++] = own_options[i].name;
}

static int read_report_option(struct options *options, int option)
{
    struct report_options *report = &options->report;
    report->csv |= option == 'c';
    if (option != 'c')
        *(option == 'S' ? &report->since : option == 'U' ? &report->until : &report->by) = optarg;
    return -1;
}

/* Returns an exit status, or -1 to go on. */
static int take_option(struct options *options, int option)
{
    note_given(options, option);
    switch (option) {
    case 's':
        options->socket = optarg;
        return -1;
    case 'j':
        options->json = true;
        return -1;
    case 'f':
        options->force = true;
        return -1;
    case 'w':
        options->wide = true;
        return -1;
    case 'r':
        options->reset = true;
        return -1;
    case 'p':
        options->save = true;
        return -1;
    case 'u':
        options->kill.user = optarg;
        return -1;
    case 'a':
        options->kill.all = true;
        return -1;
    case 'W':
        options->wait = true;
        return -1;
    case 'F':
        options->follow = true;
        return -1;
    case 'T':
        return read_timeout(options);
    case 'o':
        options->output = options->trace.file = optarg;
        return -1;
    case 'b':
    case 'n':
    case 'd':
        return read_top_option(options, option);
    case 't':
    case 'g':
        return read_trace_option(options, option);
    default:
        return read_report_option(options, option);
    }
}

/* Takes the words behind "mps" out of the command line. */
static int take_mps(struct options *options, int argc, char **argv)
{
    const int at = mps_find(argc, argv);
    if (at == argc)
        return argc;
    options->mps_count = argc - at - 1;
    options->mps_words = argv + at + 1;
    const char *first = options->mps_count ? options->mps_words[0] : "";
    /* That word is an option of gpusharectl, and no command of MPS. */
    return is_command(first, "--help") || is_command(first, "-h") ? at + 2 : at + 1;
}

/* Reads the command line. Returns an exit status, or -1 to go on. */
static int read_options(struct options *options, int argc, char **argv)
{
    argc = take_mps(options, argc, argv);
    struct error why;
    bool help = false;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":hVo:bn:d:", long_options, NULL)) != -1) {
        if (option == 'V') {
            puts("gpusharectl " GPUSHARE_VERSION);
            return ADMIN_OK;
        }
        if (option == '?' || option == ':') {
            option_explain(option, argv, long_options, &why);
            return report_usage("%s", why.text);
        }
        help |= option == 'h';
        int status = option == 'h' ? -1 : take_option(options, option);
        if (status >= 0)
            return status;
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
        sample_take(&sample, options->socket, NULL, 0);
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
    sample_take(&sample, options->socket, of_status ? NULL : answer, 0);
    if (of_status)
        show_status(stdout, answer, &sample, look);
    else
        brief_clients(stdout, &sample, look);
    sample_free(&sample);
}

/* drain and resume. */
static void print_drain(const struct options *options, const json_t *answer)
{
    const json_t *gpus = json_object_get(answer, "gpus"), *gpu;
    char number[CELL_BYTES], clients[CELL_BYTES];
    const bool drains = is_command(options->command, "drain");
    for (size_t i = 0; (gpu = json_array_get(gpus, i)); i++) {
        cell_integer(gpu, "gpu", number);
        if (drains)
            print_line(stdout, MESSAGE_TEXT(ctl_drained), number,
                       cell_integer(gpu, "clients", clients));
        else
            print_line(stdout, MESSAGE_TEXT(ctl_resumed), number);
    }
    if (drains && json_is_false(json_object_get(answer, "saved")))
        puts(MESSAGE_TEXT(ctl_drain_unsaved));
}

static void print_answer(const struct options *options, json_t *answer)
{
    struct table_look look = show_look(stdout, getenv("NO_COLOR"), getenv("TERM"));
    const char *version = json_string_value(json_object_get(answer, "server_version"));
    const char *protocol = json_string_value(json_object_get(answer, "protocol_version"));
    char cell[CELL_BYTES];
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
        kill_print(stdout, answer);
    else if (is_command(options->command, "reload"))
        print_reload(answer);
    else if (is_command(options->command, "drain") || is_command(options->command, "resume"))
        print_drain(options, answer);
    else if (is_command(options->command, "config"))
        shown_print(stdout, answer);
    else if (is_command(options->command, "log-level"))
        print_line(stdout, MESSAGE_TEXT(ctl_log_level), cell_text(answer, "level", cell));
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

/* The sentence of a failure, and what is known without a server. answer: NULL without memory. */
static int print_failure(const struct options *options, json_t *answer, int status)
{
    const char *text = json_string_value(json_object_get(answer, "text"));
    char shown[800];
    if (options->json && answer)
        print_json(options, answer);
    snprintf(shown, sizeof shown, "%s", text ? text : MESSAGE_TEXT(process_no_memory));
    table_clean(shown);
    fprintf(stderr, "gpusharectl: %s\n", shown);
    if (status == ADMIN_NO_SERVER && !options->json && is_command(options->command, "version"))
        puts("gpusharectl " GPUSHARE_VERSION);
    json_decref(answer);
    return status;
}

/* Without a command, and clients in chosen columns. The use of a client is the difference of two
 * looks. */
static int run_overview(const struct options *options)
{
    struct overview overview = {0};
    json_t *failure;
    int status = (int)overview_take(&overview, options->socket, &failure);
    if (status != ADMIN_OK)
        return print_failure(options, failure, status);
    if (options->json) {
        json_t *both = overview_json(&overview);
        print_json(options, both);
        json_decref(both);
    } else {
        struct table_look look = show_look(stdout, getenv("NO_COLOR"), getenv("TERM"));
        json_t *first = overview.sample.after;
        json_decref(overview.sample.before);
        sample_take(&overview.sample, options->socket, first, overview.asked_at);
        json_decref(first);
        if (options->columns.count)
            columns_print(stdout, &options->columns, &overview, look);
        else
            overview_print(stdout, &overview, look);
    }
    overview_free(&overview);
    return ADMIN_OK;
}

static int run_get_all(const struct options *options)
{
    json_t *answer;
    int status = (int)all_take(options->socket, &answer);
    if (status != ADMIN_OK)
        return print_failure(options, answer, status);
    if (options->json)
        print_json(options, answer);
    else
        all_print(stdout, answer, show_look(stdout, getenv("NO_COLOR"), getenv("TERM")));
    json_decref(answer);
    return status;
}

static int run_config_check(const struct options *options)
{
    json_t *answer;
    int status = (int)check_run(options->file, &answer);
    if (status != ADMIN_OK)
        return print_failure(options, answer, status);
    if (options->json)
        print_json(options, answer);
    else
        check_print(answer);
    json_decref(answer);
    return status;
}

static int run_mps(const struct options *options)
{
    if (options->json)
        return report_usage(MESSAGE_TEXT(mps_json));
    return (int)mps_run(options->socket, options->mps_count, options->mps_words);
}

static int run_top(struct options *options)
{
    json_t *failure = NULL;
    options->top.socket = options->socket;
    options->top.json = options->json;
    options->top.no_color = getenv("NO_COLOR");
    options->top.term = getenv("TERM");
    int status = (int)top_run(&options->top, &failure);
    return status == ADMIN_OK ? status : print_failure(options, failure, status);
}

static int run_events(const struct options *options)
{
    const struct events_options events = {
        .socket = options->socket, .follow = options->follow, .json = options->json};
    json_t *failure = NULL;
    int status = (int)events_run(&events, &failure);
    return status == ADMIN_OK ? status : print_failure(options, failure, status);
}

static int run_report(struct options *options)
{
    struct error why;
    options->report.json = options->json;
    options->report.look = show_look(stdout, getenv("NO_COLOR"), getenv("TERM"));
    int status = report_run(&options->report, &why);
    return status == ADMIN_USAGE ? report_usage("%s", why.text) : status;
}

static int run_trace(struct options *options)
{
    struct tracing_summary summary;
    json_t *answer;
    options->trace.socket = options->socket;
    int status = (int)tracing_run(&options->trace, &answer, &summary);
    if (status != ADMIN_OK)
        return print_failure(options, answer, status);
    if (options->json)
        print_json(options, answer);
    else
        print_trace(options, answer, &summary);
    json_decref(answer);
    return status;
}

/* Everything else is a request and its answer. */
static int run_request(const struct options *options)
{
    struct admin_client_wait reload = {.seconds = ADMIN_CLIENT_RELOAD_SECONDS, .enough = -1};
    json_t *answer, *failure;
    int status =
        is_command(options->command, "kill")
            ? (int)kill_run(options->socket, &options->kill, options->request, &answer)
            : (int)admin_client_ask(options->socket, options->request, &answer,
                                    is_command(options->command, "reload") ? &reload : NULL);
    if (status != ADMIN_OK)
        return print_failure(options, answer, status);
    if (!options->json)
        print_answer(options, answer);
    if (options->wait) {
        fflush(stdout);
        status = (int)waiting_run(options->socket, answer, options->wait_ns,
                                  options->json ? NULL : stdout, &failure);
        if (status != ADMIN_OK) {
            json_decref(answer);
            return print_failure(options, failure, status);
        }
        if (!options->json)
            puts(MESSAGE_TEXT(ctl_drain_idle));
    }
    if (options->json)
        print_json(options, answer);
    json_decref(answer);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.trace = {.seconds = TRACING_SECONDS_DEFAULT},
                              .top = {.delay = TOP_DELAY_DEFAULT}};
    char path[4096];
    int status = read_options(&options, argc, argv);
    if (status < 0 && !options.socket)
        options.socket = admin_client_default_path(getenv("GPUSHARE_SOCKET"),
                                                   getenv("XDG_RUNTIME_DIR"), path, sizeof path);
    if (status < 0 && (is_command(options.command, OVERVIEW) || options.columns.count))
        status = run_overview(&options);
    else if (status < 0 && is_command(options.command, GET_ALL))
        status = run_get_all(&options);
    else if (status < 0 && is_command(options.command, CONFIG_CHECK))
        status = run_config_check(&options);
    else if (status < 0 && is_command(options.command, "mps"))
        status = run_mps(&options);
    else if (status < 0 && is_command(options.command, "top"))
        status = run_top(&options);
    else if (status < 0 && is_command(options.command, "events"))
        status = run_events(&options);
    else if (status < 0 && is_command(options.command, "report"))
        status = run_report(&options);
    else if (status < 0 && is_command(options.command, "trace"))
        status = run_trace(&options);
    else if (status < 0)
        status = run_request(&options);
    json_decref(options.request);
    return finish_output(status);
}
