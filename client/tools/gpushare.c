/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushare: the user's command. */
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "client/gpushare.h"
#include "client/tools/admin_client.h"
#include "client/tools/doctor/doctor.h"
#include "client/tools/info.h"
#include "client/tools/run.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "common/error.h"
#include "common/limits/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/option.h"
#include "common/units.h"

static const char help[] =
    "usage: gpushare [OPTION]... info\n"
    "       gpushare run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "       gpushare doctor [OPTION]...\n"
    "\n"
    "gpushare shows what a program that is started in this environment gets from gpushared.\n"
    "\n"
    "commands:\n"
    "  info    show the device, the limits that the environment's variables ask for, and the\n"
    "          limits that the server grants. Warnings go to standard error (with\n"
    "          GPUSHARE_WARNINGS=0 there are none)\n"
    "  run     execute a CUDA program with gpushare's CUDA libraries; gpushare run --help\n"
    "  doctor  say what is wrong with the machine, the server or this environment, and how to\n"
    "          mend it; gpushare doctor --help\n"
    "\n"
    "options:\n"
    "  --device N     the device's index among the visible ones (default: 0)\n"
    "  --socket PATH  the server's socket (default: $GPUSHARE_SOCKET, else\n"
    "                 $XDG_RUNTIME_DIR/gpushare/gpushare.sock if it exists, else\n"
    "                 /run/gpushare/gpushare.sock)\n"
    "  --json         print JSON; its schema is schemas/gpushare-info.schema.json\n"
    "  --list-messages\n"
    "                 print the messages that programs get, each with its name, and exit\n"
    "  --version, -V  print the versions of this tool and of the client library, and exit\n"
    "  --help, -h     print this text, and exit\n"
    "\n"
    "exit status: 0 done, 1 refused, 2 wrong usage, 3 the server can't be reached\n";

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_NO_SERVER = 3 };

struct options {
    const char *socket;
    uint32_t device;
    bool json;
};

/* format: MESSAGE_TEXT(name). */
__attribute__((format(printf, 1, 2))) static int report_usage(const char *format, ...)
{
    va_list arguments;
    fputs("gpushare: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nTry 'gpushare --help'.\n", stderr);
    return STATUS_USAGE;
}

static int check_command(int count, char **words)
{
    if (count == 0)
        return report_usage(MESSAGE_TEXT(tool_command_missing));
    if (strcmp(words[0], "run") == 0)
        return report_usage(MESSAGE_TEXT(tool_run_options));
    if (strcmp(words[0], "doctor") == 0)
        return report_usage(MESSAGE_TEXT(tool_doctor_options));
    if (strcmp(words[0], "info") != 0)
        return report_usage(MESSAGE_TEXT(ctl_command_unknown), words[0]);
    if (count > 1)
        return report_usage(MESSAGE_TEXT(ctl_argument), words[1]);
    return -1;
}

/* Reads the command line. Returns an exit status, or -1 to go on. */
static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {{"socket", required_argument, NULL, 's'},
                                          {"device", required_argument, NULL, 'd'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"version", no_argument, NULL, 'V'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"list-messages", no_argument, NULL, 'm'},
                                          {NULL, 0, NULL, 0}};
    uint64_t number;
    struct error why;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":hV", longs, NULL)) != -1) {
        switch (option) {
        case 's':
            options->socket = optarg;
            break;
        case 'd':
            if (units_parse_number(optarg, strlen(optarg), DEVICES_MAX, &number) != 0)
                return report_usage(MESSAGE_TEXT(tool_device), optarg);
            options->device = (uint32_t)number;
            break;
        case 'j':
            options->json = true;
            break;
        case 'm':
            messages_print(stdout);
            return STATUS_OK;
        case 'V':
            printf("gpushare " GPUSHARE_VERSION " (library %s)\n", gpushare_version_text());
            return STATUS_OK;
        case 'h':
            fputs(help, stdout);
            return STATUS_OK;
        default:
            option_explain(option, argv, longs, &why);
            return report_usage("%s", why.text);
        }
    }
    return check_command(argc - optind, argv + optind);
}

static const char *read_variable(const char *name, void *context)
{
    (void)context;
    return getenv(name);
}

static int report_failure(const struct options *options, gpushare_error error, const char *text)
{
    char shown[800];
    snprintf(shown, sizeof shown, "%s", text);
    table_clean(shown);
    if (options->json) {
        json_t *answer = admin_client_error(gpushare_error_name(error), "%s", text);
        json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS));
        putchar('\n');
        json_decref(answer);
    }
    log_error("%s", shown);
    return error == GPUSHARE_ERROR_CONNECTION_FAILED ? STATUS_NO_SERVER : STATUS_FAILED;
}

/* If standard error is closed, or is a pipe that is full or broken, the user must still get the
 * answer. Then the warning is left out. */
static void print_warning(void *context, const char *text)
{
    const char *wanted = getenv("GPUSHARE_WARNINGS");
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    (void)context;
    if (wanted && strcmp(wanted, "0") == 0)
        return;
    if (poll(&room, 1, 0) == 1 && room.revents == POLLOUT)
        log_warning(MESSAGE_TEXT(tool_warning), text);
}

static int run_info(const struct options *options)
{
    struct info info;
    struct error why;
    gpushare_error error = (gpushare_error)limits_wish_read(&info.wish, read_variable, NULL, &why);
    if (error != GPUSHARE_SUCCESS)
        return report_failure(options, error, why.text);
    error = info_collect(&info, options->socket, options->device, print_warning);
    if (error != GPUSHARE_SUCCESS)
        return report_failure(options, error, gpushare_error_text());
    if (!options->json) {
        info_show(&info, stdout, show_look(stdout, getenv("NO_COLOR"), getenv("TERM")));
        return STATUS_OK;
    }
    json_t *json = info_json(&info);
    int result =
        json ? json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS))
             : -1;
    putchar('\n');
    json_decref(json);
    return result == 0 ? STATUS_OK : STATUS_FAILED;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    if (argc > 1 && !strcmp(argv[1], "run"))
        return run_command(argc - 1, argv + 1);
    bool doctor = argc > 1 && !strcmp(argv[1], "doctor");
    int status = doctor ? doctor_command(argc - 1, argv + 1) : read_options(&options, argc, argv);
    if (status < 0)
        status = run_info(&options);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("gpushare: cannot write");
    return status ? status : STATUS_FAILED;
}
