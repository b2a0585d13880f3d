/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/doctor.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/tools/admin_client.h"
#include "client/tools/doctor/bundle.h"
#include "client/tools/doctor/checks.h"
#include "common/messages.h"
#include "common/option.h"

static const char help[] =
    "usage: gpushare doctor [OPTION]...\n"
    "\n"
    "Looks at the machine, the server and this environment, and prints a line for each thing:\n"
    "ok, warn or FAIL, what it is about, what is so, and the remedy. It changes nothing, and "
    "needs\n"
    "neither a GPU nor a server.\n"
    "\n"
    "options:\n"
    "  --socket PATH  the server's socket for clients, beside which that for administrators lies\n"
    "                 (default: as for gpushare info)\n"
    "  --bundle FILE.tar.gz\n"
    "                 write what a report of a fault needs: these lines, versions, the variables\n"
    "                 GPUSHARE_* and CUDA_*, the server's state, clients, configuration and "
    "journal;\n"
    "                 names of users and arguments of programs are replaced\n"
    "  --json         print JSON; its schema is schemas/gpushare-doctor.schema.json\n"
    "  --root DIR     look at DIR/proc, DIR/dev, DIR/sys, DIR/run and DIR/usr in the place of "
    "this\n"
    "                 machine's, for tests\n"
    "  --help, -h     print this text, and exit\n"
    "\n"
    "exit status: 0 nothing fails (there may be warnings), 1 something fails, 2 wrong usage\n";

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

struct options {
    const char *socket, *bundle;
    char root[PATH_MAX];
    bool json;
};

/* format: MESSAGE_TEXT(name). */
__attribute__((format(printf, 1, 2))) static int report_usage(const char *format, ...)
{
    va_list arguments;
    fputs("gpushare: doctor: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nTry 'gpushare doctor --help'.\n", stderr);
    return STATUS_USAGE;
}

/* The driver's library can be opened by an absolute path alone. */
static int set_root(struct options *options, const char *folder)
{
    if (!realpath(folder, options->root) || access(options->root, X_OK) < 0)
        return report_usage(MESSAGE_TEXT(doctor_root), folder, strerror(errno));
    if (!strcmp(options->root, "/"))
        options->root[0] = '\0';
    return -1;
}

/* Returns an exit status, or -1 to go on. */
static int read_options(struct options *options, int count, char **words)
{
    static const struct option longs[] = {
        {"socket", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
        {"root", required_argument, NULL, 'r'},   {"help", no_argument, NULL, 'h'},
        {"bundle", required_argument, NULL, 'b'}, {NULL, 0, NULL, 0},
    };
    struct error why;
    int option, status = -1;
    optind = 1;
    opterr = 0;
    while (status < 0 && (option = getopt_long(count, words, ":h", longs, NULL)) != -1) {
        switch (option) {
        case 's':
            options->socket = optarg;
            break;
        case 'j':
            options->json = true;
            break;
        case 'b':
            options->bundle = optarg;
            break;
        case 'r':
            status = set_root(options, optarg);
            break;
        case 'h':
            fputs(help, stdout);
            return STATUS_OK;
        default:
            option_explain(option, words, longs, &why);
            status = report_usage("%s", why.text);
        }
    }
    if (status < 0 && optind < count)
        status = report_usage(MESSAGE_TEXT(ctl_argument), words[optind]);
    return status;
}

/* As the library chooses (client/session/environment.c). */
static void choose_sockets(struct exam *exam, const char *named)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    exam->usual = !named && !exam->place.root[0];
    if (!named)
        named = getenv("GPUSHARE_SOCKET");
    if (named)
        snprintf(exam->client, sizeof exam->client, "%s", named);
    else if (!runtime || !*runtime || exam->place.root[0] ||
             snprintf(exam->client, sizeof exam->client, "%s/gpushare/gpushare.sock", runtime) >=
                 (int)sizeof exam->client ||
             access(exam->client, F_OK) < 0)
        place_path(&exam->place, "/run/gpushare/gpushare.sock", exam->client);
    admin_client_default_path(exam->client, NULL, exam->admin, sizeof exam->admin);
}

static void run_checks(struct exam *exam)
{
    check_container_run(exam);
    check_driver_run(exam);
    check_nodes_run(exam);
    check_sockets_run(exam);
    check_server_run(exam);
    check_systemd_run(exam);
    check_machine_run(exam);
    check_environment_run(exam);
}

static void write_bundle(struct exam *exam, const char *path)
{
    struct error why;
    if (bundle_write(exam, path, &why))
        report_note(&exam->report, REPORT_FAIL, "bundle", "%s", why.text);
    else
        report_note(&exam->report, REPORT_OK, "bundle", MESSAGE_TEXT(doctor_bundled), path);
}

static int print_json(const struct report *report)
{
    json_t *json = report_json(report);
    int result =
        json ? json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS))
             : -1;
    putchar('\n');
    json_decref(json);
    return result;
}

int doctor_command(int count, char **words)
{
    static struct options options;
    static struct exam exam;
    int status = read_options(&options, count, words);
    if (status >= 0)
        return status;
    exam.place.root = options.root;
    choose_sockets(&exam, options.socket);
    run_checks(&exam);
    if (options.bundle)
        write_bundle(&exam, options.bundle);
    if (!options.json)
        report_print(&exam.report, stdout);
    else if (print_json(&exam.report) < 0)
        exam.report.cut = true;
    bool well = report_count(&exam.report, REPORT_FAIL) == 0 && !exam.report.cut;
    json_decref(exam.version);
    json_decref(exam.status);
    report_free(&exam.report);
    return well ? STATUS_OK : STATUS_FAILED;
}
