/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/run.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/option.h"

static const char help[] =
    "usage: gpushare run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Executes a CUDA program as a client of gpushared, unchanged: PROGRAM and the programs that "
    "it\n"
    "executes find gpushare's libcuda.so.1, libcudart.so.12 and libcudart.so.13, wherever they "
    "look\n"
    "for them. A program with the CUDA runtime linked statically must be linked again (nvcc "
    "-cudart\n"
    "shared).\n"
    "\n"
    "options, each of which sets a variable of PROGRAM's environment:\n"
    "  --threads SHARE      the most of the multiprocessors, 25% (GPUSHARE_THREADS_LIMIT)\n"
    "  --memory SIZE        the most device memory, 4G or 25% (GPUSHARE_MEMORY_LIMIT)\n"
    "  --fraction SHARE     of the device: its memory at most, and its time at least, 0.5\n"
    "                       (GPUSHARE_FRACTION)\n"
    "  --priority N         0 is normal, higher numbers are less urgent "
    "(GPUSHARE_CLIENT_PRIORITY)\n"
    "  --device DEVICES     0,1 or GPU-<uuid>: only these are seen (GPUSHARE_VISIBLE_DEVICES)\n"
    "  --name NAME          in the server's lists and log (GPUSHARE_CLIENT_NAME)\n"
    "  --socket PATH        the server's socket (GPUSHARE_SOCKET)\n"
    "  --help               print this text, and exit\n"
    "\n"
    "exit status: PROGRAM's; 2 wrong usage, 126 it can't be executed, 127 it was not found\n";

enum { STATUS_OK = 0, STATUS_USAGE = 2, STATUS_NO_EXEC = 126, STATUS_NOT_FOUND = 127 };
enum { OPTION_HELP = 256 };

/* getopt's number of an option is its row. */
static const struct row {
    const char *option, *variable;
} rows[] = {
    {"threads", "GPUSHARE_THREADS_LIMIT"},  {"memory", "GPUSHARE_MEMORY_LIMIT"},
    {"fraction", "GPUSHARE_FRACTION"},      {"priority", "GPUSHARE_CLIENT_PRIORITY"},
    {"device", "GPUSHARE_VISIBLE_DEVICES"}, {"name", "GPUSHARE_CLIENT_NAME"},
    {"socket", "GPUSHARE_SOCKET"},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* format: MESSAGE_TEXT(name). */
__attribute__((format(printf, 2, 3))) static int report(int status, const char *format, ...)
{
    va_list arguments;
    fputs("gpushare: run: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs(status == STATUS_USAGE ? "\nTry 'gpushare run --help'.\n" : "\n", stderr);
    return status;
}

/* An option's value under the name of its variable, and nothing else. */
static const char *one_variable(const char *name, void *context)
{
    const char *const *pair = context;
    return strcmp(name, pair[0]) ? NULL : pair[1];
}

/* The library would refuse the value at the program's first call, far from this command line. */
static int set_variable(const struct row *row, const char *value)
{
    static struct limits_wish wish;
    const char *pair[] = {row->variable, value};
    struct error why;
    if (limits_wish_read(&wish, one_variable, pair, &why))
        return report(STATUS_USAGE, MESSAGE_TEXT(run_option), row->option, why.text);
    return setenv(row->variable, value, 1) ? report(STATUS_NO_EXEC, "%s", strerror(errno)) : -1;
}

/* Returns an exit status, or -1 to go on. */
static int read_options(int count, char **words)
{
    struct option longs[ROWS + 2] = {{0}};
    struct error why;
    int option, status = -1;
    for (int i = 0; i < ROWS; i++)
        longs[i] = (struct option){rows[i].option, required_argument, NULL, i};
    longs[ROWS] = (struct option){"help", no_argument, NULL, OPTION_HELP};
    opterr = 0;
    /* "+": an option behind the program's name is the program's. */
    while (status < 0 && (option = getopt_long(count, words, "+:", longs, NULL)) != -1) {
        if (option == OPTION_HELP) {
            fputs(help, stdout);
            return STATUS_OK;
        }
        if (option >= 0 && option < ROWS) {
            status = set_variable(&rows[option], optarg);
        } else {
            option_explain(option, words, longs, &why);
            status = report(STATUS_USAGE, "%s", why.text);
        }
    }
    return status;
}

/* The libraries lie where they were built or installed, beside this program's folder. */
static int set_audit(void)
{
    char path[PATH_MAX], both[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return report(STATUS_NO_EXEC, "/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    const char *before = getenv("LD_AUDIT");
    int bytes = snprintf(both, sizeof both, "%s/../lib/gpushare/libgpushare-audit.so", path);
    /* A space or a colon ends a path for the dynamic linker. */
    if (bytes >= PATH_MAX || access(both, R_OK) || strpbrk(both, ": "))
        return report(STATUS_NO_EXEC, MESSAGE_TEXT(run_libraries), both);
    if (before && *before && !strstr(before, "libgpushare-audit.so"))
        snprintf(both + bytes, sizeof both - (size_t)bytes, ":%s", before);
    return setenv("LD_AUDIT", both, 1) ? report(STATUS_NO_EXEC, "%s", strerror(errno)) : -1;
}

int run_command(int count, char **words)
{
    optind = 1;
    int status = read_options(count, words);
    if (status < 0 && optind == count)
        status = report(STATUS_USAGE, MESSAGE_TEXT(run_no_program));
    if (status < 0)
        status = set_audit();
    if (status >= 0)
        return status;
    execvp(words[optind], words + optind);
    return report(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NO_EXEC, "%s: %s", words[optind],
                  strerror(errno));
}
