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

#include "client/gpushare.h"
#include "client/tools/explain/explain.h"
#include "client/tools/explain/ready.h"
#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/option.h"

static const char help[] = "usage: gpushare run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
                           "\n"
                           "Executes a CUDA program as a client of gpushared, unchanged: PROGRAM "
                           "and the programs that it\n"
                           "executes find gpushare's libcuda.so.1, libcudart.so.12 and "
                           "libcudart.so.13, wherever they look\n"
                           "for them. A program with the CUDA runtime linked statically must be "
                           "linked again (nvcc -cudart\n"
                           "shared).\n"
                           "\n"
                           "options, each of which sets a variable of PROGRAM's environment:\n";

static const char help_end[] =
    "  --fraction SHARE     of the device: its memory at most, and its time at least\n"
    "                       (" ALLOWANCE_FRACTION_VARIABLE ")\n"
    "  --device DEVICES     0,1 or GPU-<uuid>: only these are seen (GPUSHARE_VISIBLE_DEVICES)\n"
    "  --profile NAME       of the server's configuration (GPUSHARE_PROFILE)\n"
    "  --name NAME          in the server's lists and log (GPUSHARE_CLIENT_NAME)\n"
    "  --socket PATH        the server's socket (GPUSHARE_SOCKET)\n"
    "\n"
    "and:\n"
    "  --explain            do not execute PROGRAM: say what is in its way, and how to mend it;\n"
    "                       PROGRAM may be a folder, such as a Python environment\n"
    "  --help, -h           print this text, and exit\n"
    "\n"
    "exit status: PROGRAM's; 2 wrong usage, 125 the server can't be reached or refuses, 126 "
    "PROGRAM\n"
    "can't be executed, 127 it was not found; with --explain 0 if nothing is in its way, 1 if\n"
    "something is\n";

static const char softgpu_help[] =
    "usage: softgpu run [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Executes a CUDA program on the software GPU, in its own process and without a server. PROGRAM "
    "and\n"
    "the programs that it executes find the software GPU's libcuda.so.1 and gpushare's "
    "libcudart.so.12\n"
    "and libcudart.so.13, wherever they look for them. docs/softgpu.md has the variables that the\n"
    "software GPU reads.\n"
    "\n"
    "options:\n"
    "  --help, -h     print this text, and exit\n"
    "  --version, -V  of softgpu, in the place of run: print its version, and exit\n"
    "\n"
    "exit status: PROGRAM's; 2 wrong usage, 126 it can't be executed, 127 it was not found\n";

enum {
    STATUS_OK = 0,
    STATUS_IN_ITS_WAY = 1,
    STATUS_USAGE = 2,
    STATUS_NO_SERVER = 125,
    STATUS_NO_EXEC = 126,
    STATUS_NOT_FOUND = 127
};
enum { OPTION_HELP = 256, OPTION_EXPLAIN };

/* The options that are no resource or scalar of the table. */
static const struct row {
    const char *option, *variable;
} others[] = {
    {"fraction", ALLOWANCE_FRACTION_VARIABLE},
    {"device", "GPUSHARE_VISIBLE_DEVICES"},
    {"profile", "GPUSHARE_PROFILE"},
    {"name", "GPUSHARE_CLIENT_NAME"},
    {"socket", "GPUSHARE_SOCKET"},
};

enum { OTHERS = sizeof others / sizeof *others, ROWS_MAX = 2 * RESOURCES + SCALARS + OTHERS };

/* getopt's number of an option is its row. */
static struct {
    struct row rows[ROWS_MAX];
    char names[ROWS_MAX][32];
    int count;
} options;

/* An option has the name of the table's key: host_memory is --host-memory. */
static void add_row(const char *key, const char *behind, const char *variable)
{
    char *name = options.names[options.count];
    snprintf(name, sizeof options.names[0], "%s%s", key, behind);
    for (char *at = name; (at = strchr(at, '_')); at++)
        *at = '-';
    options.rows[options.count++] = (struct row){name, variable};
}

static void make_rows(void)
{
    options.count = 0;
    for (int i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *resource = allowance_resource((enum resource)i);
        add_row(resource->name, "", resource->limit_variable);
        add_row(resource->name, "-request", resource->request_variable);
    }
    for (int i = 0; i < SCALARS; i++)
        add_row(allowance_scalar((enum scalar)i)->name, "",
                allowance_scalar((enum scalar)i)->variable);
    for (int i = 0; i < OTHERS; i++)
        add_row(others[i].option, "", others[i].variable);
}

static void print_row(int row, const char *what, const char *form)
{
    printf("  --%-18s %s%s\n                       (%s)\n", options.rows[row].option, what, form,
           options.rows[row].variable);
}

static void print_help(void)
{
    fputs(help, stdout);
    for (int i = 0; i < RESOURCES; i++) {
        const char *form = allowance_resource((enum resource)i)->form;
        print_row(2 * i, "the limit: ", form);
        print_row(2 * i + 1, "guaranteed: ", form);
    }
    for (int i = 0; i < SCALARS; i++)
        print_row(2 * RESOURCES + i, "", allowance_scalar((enum scalar)i)->form);
    fputs(help_end, stdout);
}

static const char *tool = "gpushare";

/* format: MESSAGE_TEXT(name). */
__attribute__((format(printf, 2, 3))) static int report(int status, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: run: ", tool);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (status == STATUS_USAGE)
        fprintf(stderr, "Try '%s run --help'.\n", tool);
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
static int read_options(int count, char **words, bool *explain)
{
    struct option longs[ROWS_MAX + 3] = {{0}};
    struct error why;
    int option, status = -1;
    make_rows();
    for (int i = 0; i < options.count; i++)
        longs[i] = (struct option){options.rows[i].option, required_argument, NULL, i};
    longs[options.count] = (struct option){"help", no_argument, NULL, OPTION_HELP};
    longs[options.count + 1] = (struct option){"explain", no_argument, NULL, OPTION_EXPLAIN};
    opterr = 0;
    /* "+": an option behind the program's name is the program's. */
    while (status < 0 && (option = getopt_long(count, words, "+:h", longs, NULL)) != -1) {
        if (option == OPTION_HELP || option == 'h') {
            print_help();
            return STATUS_OK;
        }
        if (option == OPTION_EXPLAIN) {
            *explain = true;
        } else if (option >= 0 && option < options.count) {
            status = set_variable(&options.rows[option], optarg);
        } else {
            option_explain(option, words, longs, &why);
            status = report(STATUS_USAGE, "%s", why.text);
        }
    }
    return status;
}

/* Gives the path of a file that lies beside this program's folder, where it was built or installed.
 */
static int find_beside(const char *const names[], char path[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return report(STATUS_NO_EXEC, "/proc/self/exe: %s", strerror(errno));
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (; *names; names++) {
        int bytes = snprintf(path, PATH_MAX, "%s/../lib/%s", self, *names);
        /* A space or a colon ends a path for the dynamic linker. */
        if (bytes < PATH_MAX && !access(path, R_OK) && !strpbrk(path, ": "))
            return -1;
    }
    return report(STATUS_NO_EXEC, MESSAGE_TEXT(run_libraries), path);
}

/* A list with colons between its entries, as PATH is. */
static bool is_in_list(const char *list, const char *entry, size_t length)
{
    while (*list) {
        size_t here = strcspn(list, ":");
        if (here == length && !memcmp(list, entry, length))
            return true;
        list += here + (list[here] == ':');
    }
    return false;
}

/* Some programs look for the driver's library as a file, and never load it where they find none:
 * the dynamic linker is not asked, so LD_AUDIT can't answer. Last, for nothing but these names may
 * come from the folder. */
static int add_search_folder(const char *library)
{
    const char *before = getenv("LD_LIBRARY_PATH"), *slash = strrchr(library, '/');
    int length = (int)(slash - library);
    char *both = NULL;
    if (!before || !*before) {
        if (asprintf(&both, "%.*s", length, library) < 0)
            return report(STATUS_NO_EXEC, "%s", strerror(errno));
    } else if (!is_in_list(before, library, (size_t)length) &&
               asprintf(&both, "%s:%.*s", before, length, library) < 0) {
        return report(STATUS_NO_EXEC, "%s", strerror(errno));
    }
    int failed = both && setenv("LD_LIBRARY_PATH", both, 1);
    free(both);
    return failed ? report(STATUS_NO_EXEC, "%s", strerror(errno)) : -1;
}

static int set_audit(void)
{
    static const char *const names[] = {"gpushare/libgpushare-audit.so", NULL};
    char path[PATH_MAX], both[2 * PATH_MAX];
    const char *before = getenv("LD_AUDIT");
    int status = find_beside(names, path);
    if (status >= 0)
        return status;
    bool more = before && *before && !strstr(before, "libgpushare-audit.so");
    snprintf(both, sizeof both, "%s%s%s", path, more ? ":" : "", more ? before : "");
    if (setenv("LD_AUDIT", both, 1))
        return report(STATUS_NO_EXEC, "%s", strerror(errno));
    return add_search_folder(path);
}

/* Built, and installed. */
static int set_softgpu(void)
{
    static const char *const names[] = {"softgpu/libcuda.so.1", "gpushare/softgpu/libcuda.so.1",
                                        NULL};
    char path[PATH_MAX];
    int status = find_beside(names, path);
    if (status >= 0)
        return status;
    if (setenv("GPUSHARE_AUDIT_DRIVER", path, 1))
        return report(STATUS_NO_EXEC, "%s", strerror(errno));
    return add_search_folder(path);
}

/* found: gets the program's path. Returns an exit status, or -1 to go on. */
static int check_program(const char *program, char found[PATH_MAX])
{
    struct error why;
    uint32_t error = ready_check(program, getenv("PATH"), found, &why);
    if (!error)
        return -1;
    return report(error == PROTO_ERROR_NOT_FOUND ? STATUS_NOT_FOUND : STATUS_NO_EXEC, "%s",
                  why.text);
}

/* The program would meet the same refusal at its first call of CUDA, and most programs print a
 * number in its place. The variables are set by then, so that a value which came with the
 * environment is read too. */
static int check_server(void)
{
    struct gpushare_options none = {.size = sizeof none};
    uint32_t devices;
    if (gpushare_device_count(&none, &devices) == GPUSHARE_SUCCESS)
        return -1;
    return report(STATUS_NO_SERVER, "%s", gpushare_error_text());
}

/* The file is there, and it is executable. */
static int execute(const char *found, char **words)
{
    execvp(found, words);
    if (errno == ENOENT)
        return report(STATUS_NO_EXEC, MESSAGE_TEXT(run_interpreter), found, found);
    return report(STATUS_NO_EXEC, MESSAGE_TEXT(run_format), found, strerror(errno), found);
}

static int explain_to_user(const char *program)
{
    unsigned problems;
    struct error why;
    uint32_t error = explain_path(program, getenv("LD_LIBRARY_PATH"), stdout, &problems, &why);
    if (error)
        return report(error == PROTO_ERROR_NOT_FOUND ? STATUS_NOT_FOUND : STATUS_NO_EXEC, "%s",
                      why.text);
    if (fflush(stdout) || ferror(stdout))
        return report(STATUS_NO_EXEC, "%s", strerror(errno));
    return problems ? STATUS_IN_ITS_WAY : STATUS_OK;
}

int run_command(int count, char **words)
{
    bool explain = false;
    char found[PATH_MAX];
    optind = 1;
    int status = read_options(count, words, &explain);
    if (status < 0 && optind == count)
        status = report(STATUS_USAGE, MESSAGE_TEXT(run_no_program), tool);
    if (status < 0 && explain)
        return explain_to_user(words[optind]);
    if (status < 0)
        status = check_program(words[optind], found);
    if (status < 0)
        status = set_audit();
    if (status < 0)
        status = check_server();
    /* A child of `softgpu run` that is to be a client of the server. */
    unsetenv("GPUSHARE_AUDIT_DRIVER");
    return status >= 0 ? status : execute(found, words + optind);
}

int run_softgpu(int count, char **words)
{
    static const struct option longs[] = {{"help", no_argument, NULL, OPTION_HELP},
                                          {NULL, 0, NULL, 0}};
    struct error why;
    char found[PATH_MAX];
    int option, status;
    tool = "softgpu";
    optind = 1;
    opterr = 0;
    option = getopt_long(count, words, "+:h", longs, NULL);
    if (option == OPTION_HELP || option == 'h') {
        fputs(softgpu_help, stdout);
        return STATUS_OK;
    }
    if (option != -1) {
        option_explain(option, words, longs, &why);
        return report(STATUS_USAGE, "%s", why.text);
    }
    if (optind == count)
        return report(STATUS_USAGE, MESSAGE_TEXT(run_no_program), tool);
    status = check_program(words[optind], found);
    if (status < 0)
        status = set_softgpu();
    if (status < 0)
        status = set_audit();
    return status >= 0 ? status : execute(found, words + optind);
}
