/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/report/report.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/tools/command.h"
#include "client/tools/report/lines.h"
#include "client/tools/report/moment.h"
#include "client/tools/report/rows.h"
#include "client/tools/report/sums.h"
#include "common/array.h"
#include "common/messages.h"

/* Of damaged lines so many are named. */
enum { NAMED_MAX = 20 };

struct report {
    struct sums sums;
    uint64_t damaged; /* lines */
    bool failed;      /* something was said on standard error */
    char **paths;
    size_t path_count, path_room;
};

__attribute__((format(printf, 2, 3))) static void complain(struct report *report,
                                                           const char *format, ...)
{
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    table_clean(text);
    fprintf(stderr, "gpusharectl: %s\n", text);
    report->failed = true;
}

/* ---- files ---- */

/* A file that two patterns find is read once. */
static bool path_add(struct report *report, const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s%s", folder, name) < 0)
        return false;
    for (size_t i = 0; i < report->path_count; i++)
        if (strcmp(report->paths[i], path) == 0) {
            free(path);
            return true;
        }
    if (array_reserve(report->paths, report->path_room, report->path_count + 1) < 0) {
        free(path);
        return false;
    }
    report->paths[report->path_count++] = path;
    return true;
}

/* The file and those that logrotate has made of it. */
static bool find_files(struct report *report, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    char *folder = slash ? strndup(file, (size_t)(base - file)) : strdup("");
    const char *listed = folder && *folder ? folder : ".";
    DIR *listing = folder ? opendir(listed) : NULL;
    const size_t before = report->path_count;
    bool fits = folder != NULL;
    const struct dirent *entry;
    /* The file may be readable all the same, without those that were made of it. */
    if (folder && !listing && errno != ENOENT && errno != ENOTDIR)
        complain(report, MESSAGE_TEXT(report_folder), listed, strerror(errno));
    while (fits && listing && (entry = readdir(listing)))
        if (lines_is_rotated(entry->d_name, base))
            fits = path_add(report, folder, entry->d_name);
        else if (lines_is_packed(entry->d_name, base))
            complain(report, MESSAGE_TEXT(report_packed), folder, entry->d_name);
    if (listing)
        closedir(listing);
    /* To open it says what is wrong with it. */
    if (fits && report->path_count == before)
        fits = path_add(report, "", file);
    free(folder);
    return fits;
}

static void add_line(struct report *report, const char *path, uint64_t number, const char *text,
                     size_t bytes, bool whole)
{
    struct error why;
    if (bytes == 0 && whole)
        return;
    if (!whole)
        error_set(&why, MESSAGE(report_line_max), LINES_BYTES_MAX);
    else if (!sums_add(&report->sums, text, bytes, &why))
        return;
    if (report->damaged++ < NAMED_MAX)
        complain(report, MESSAGE_TEXT(report_damaged), path, (unsigned long long)number, why.text);
}

static void read_file(struct report *report, const char *path)
{
    struct lines *lines;
    struct error why;
    const char *text;
    size_t bytes;
    bool whole;
    int got;
    if (lines_open(&lines, path, &why)) {
        complain(report, "%s", why.text);
        return;
    }
    for (uint64_t number = 1; (got = lines_next(lines, &text, &bytes, &whole, &why)) > 0; number++)
        add_line(report, path, number, text, bytes, whole);
    if (got < 0)
        complain(report, "%s", why.text);
    lines_close(lines);
}

static int path_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_all(struct report *report, const struct report_options *options)
{
    bool fits = true;
    if (options->file_count == 0)
        fits = find_files(report, COMMAND_REPORT_FILE);
    for (int i = 0; i < options->file_count; i++)
        fits &= find_files(report, options->files[i]);
    if (!fits)
        complain(report, MESSAGE_TEXT(process_no_memory));
    /* A folder has no order, and what is said of several files should have one. */
    if (report->path_count)
        qsort(report->paths, report->path_count, sizeof *report->paths, path_compare);
    for (size_t i = 0; i < report->path_count; i++)
        read_file(report, report->paths[i]);
    if (report->damaged > NAMED_MAX)
        complain(report, MESSAGE_TEXT(report_damaged_more),
                 (unsigned long long)(report->damaged - NAMED_MAX));
}

/* ---- options ---- */

static uint32_t read_moment(const char *option, const char *text, double *moment, struct error *why)
{
    if (text && moment_parse(text, time(NULL), moment) < 0)
        return error_set(why, MESSAGE(report_moment), option, text);
    return 0;
}

static uint32_t read_options(const struct report_options *options, struct sums_options *sums,
                             struct error *why)
{
    *sums = (struct sums_options){.since = -INFINITY, .until = INFINITY};
    if (options->json && options->csv)
        return error_set(why, MESSAGE(report_forms));
    uint32_t error = sums_parse_by(options->by ? options->by : sums_key_name(SUMS_USER), sums, why);
    if (!error)
        error = read_moment("--since", options->since, &sums->since, why);
    if (!error)
        error = read_moment("--until", options->until, &sums->until, why);
    if (!error && sums->until <= sums->since)
        return error_set(why, MESSAGE(report_nothing));
    return error;
}

static void print(const struct report *report, const struct report_options *options)
{
    if (options->json)
        rows_print_json(stdout, &report->sums, report->damaged, !report->failed);
    else if (options->csv)
        rows_print_csv(stdout, &report->sums);
    else
        rows_print_table(stdout, &report->sums, options->look);
}

int report_run(const struct report_options *options, struct error *why)
{
    struct sums_options wanted;
    struct report report = {0};
    if (read_options(options, &wanted, why))
        return 2;
    if (sums_open(&report.sums, &wanted)) {
        read_all(&report, options);
        sums_finish(&report.sums);
        print(&report, options);
    } else {
        complain(&report, MESSAGE_TEXT(process_no_memory));
    }
    sums_close(&report.sums);
    for (size_t i = 0; i < report.path_count; i++)
        free(report.paths[i]);
    free(report.paths);
    return report.failed ? 1 : 0;
}
