/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/report.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 700, EARLIER_MAX = 1000 };

static int fail(const char *path, const char *remedy)
{
    int error = errno ? errno : EIO;
    fprintf(stderr, "checks: %s: %s%s\n", path, strerror(error), remedy);
    return -error;
}

static void name_file(const struct report *report, const char *name, const char *suffix, char *path)
{
    snprintf(path, PATH_SIZE, "%s/%s%s", report->folder, name, suffix);
}

static bool find_newest(char *folder, size_t size)
{
    glob_t found;
    if (glob("gpu-results-*/results.json", 0, NULL, &found) != 0)
        return false;
    /* Names hold date and time, and glob sorts. */
    const char *last = found.gl_pathv[found.gl_pathc - 1];
    snprintf(folder, size, "%.*s", (int)(strrchr(last, '/') - last), last);
    globfree(&found);
    return true;
}

static void name_new(char *folder, size_t size)
{
    struct tm now;
    time_t seconds = time(NULL);
    gmtime_r(&seconds, &now);
    strftime(folder, size, "gpu-results-%Y%m%d-%H%M%S", &now);
}

static void load_earlier(struct report *report)
{
    for (size_t i = 0; i < step_count; i++) {
        char path[PATH_SIZE];
        json_error_t error;
        name_file(report, step_table[i].name, ".json", path);
        if (access(path, F_OK) != 0)
            continue;
        json_t *json = json_load_file(path, 0, &error);
        if (!json || !result_load(&report->results[i], &step_table[i], json))
            fprintf(stderr, "checks: %s is not a result of that step; it is left as it is\n", path);
        json_decref(json);
    }
}

/* Two runs in one folder would write each other's results. */
static int lock_folder(struct report *report)
{
    char outputs[PATH_SIZE];
    report->lock = open(report->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (report->lock < 0 || flock(report->lock, LOCK_EX | LOCK_NB) < 0)
        return fail(report->folder, ": another run uses it, or it can't be locked");
    name_file(report, "outputs", "", outputs);
    if (mkdir(outputs, 0755) < 0 && errno != EEXIST)
        return fail(outputs, "");
    char *absolute = realpath(outputs, NULL);
    setenv("CHECKS_OUTPUTS", absolute ? absolute : outputs, 1);
    free(absolute);
    return 0;
}

int report_open(struct report *report, const char *folder, bool resume, const char *driver)
{
    *report = (struct report){.results = calloc(step_count, sizeof *report->results), .lock = -1};
    if (!report->results)
        return -ENOMEM;
    snprintf(report->driver, sizeof report->driver, "%s", driver);
    if (folder)
        snprintf(report->folder, sizeof report->folder, "%s", folder);
    else if (!resume || !find_newest(report->folder, sizeof report->folder))
        name_new(report->folder, sizeof report->folder);
    if (mkdir(report->folder, 0755) < 0 && errno != EEXIST)
        return fail(report->folder, ": name a folder that can be written with --results");
    if (access(report->folder, W_OK) < 0)
        return fail(report->folder, ": name a folder that can be written with --results");
    int error = lock_folder(report);
    if (error)
        return error;
    load_earlier(report);
    return 0;
}

struct result *report_result(struct report *report, const struct step *step)
{
    return &report->results[step - step_table];
}

/* Renames what is there, so that nothing is lost. */
static int keep_earlier(const char *path)
{
    char other[PATH_SIZE + 16];
    if (access(path, F_OK) != 0)
        return 0;
    for (int i = 1; i < EARLIER_MAX; i++) {
        snprintf(other, sizeof other, "%s.%d", path, i);
        if (access(other, F_OK) != 0)
            return rename(path, other) < 0 ? fail(path, "") : 0;
    }
    errno = EEXIST;
    return fail(path, "");
}

FILE *report_open_log(struct report *report, const struct step *step)
{
    char path[PATH_SIZE];
    name_file(report, step->name, ".log", path);
    if (keep_earlier(path) < 0)
        return NULL;
    FILE *file = fopen(path, "we");
    if (!file)
        fail(path, "");
    return file;
}

/* ---- the page --------------------------------------------------------------------------- */
static void write_cell(FILE *page, const char *text)
{
    for (; *text; text++)
        if (*text == '|')
            fputs("\\|", page);
        else
            fputc(*text == '\n' ? ' ' : *text, page);
}

static void write_row(FILE *page, const char *const cells[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i ? " | " : "| ", page);
        write_cell(page, cells[i]);
    }
    fputs(" |\n", page);
}

static void write_facts(const struct report *report, FILE *page)
{
    fputs("| | |\n|---|---|\n", page);
    write_row(page, (const char *[]){"driver", report->driver}, 2);
    for (size_t i = 0; i < step_count; i++) {
        json_t *facts = json_object_get(report->results[i].json, "facts");
        for (void *at = json_object_iter(facts); at; at = json_object_iter_next(facts, at))
            write_row(page,
                      (const char *[]){json_object_iter_key(at),
                                       json_string_value(json_object_iter_value(at))},
                      2);
    }
}

static void write_steps(const struct report *report, FILE *page)
{
    fputs("\n## Steps\n\n| step | outcome | seconds | verdict |\n|---|---|---|---|\n", page);
    for (size_t i = 0; i < step_count; i++) {
        const struct result *result = &report->results[i];
        char seconds[24];
        if (!result->json)
            continue;
        snprintf(seconds, sizeof seconds, "%.1f",
                 json_real_value(json_object_get(result->json, "seconds")));
        write_row(page,
                  (const char *[]){step_table[i].name, outcome_name(result->outcome), seconds,
                                   result_verdict(result)},
                  4);
    }
}

static void write_measures(const struct report *report, FILE *page)
{
    fputs("\n## Measures\n\n| step | measure | value | unit |\n|---|---|---|---|\n", page);
    for (size_t i = 0; i < step_count; i++) {
        json_t *measures = json_object_get(report->results[i].json, "measures");
        for (void *at = json_object_iter(measures); at; at = json_object_iter_next(measures, at)) {
            const json_t *measure = json_object_iter_value(at);
            char value[40];
            snprintf(value, sizeof value, "%.6g",
                     json_real_value(json_object_get(measure, "value")));
            write_row(page,
                      (const char *[]){step_table[i].name, json_object_iter_key(at), value,
                                       json_string_value(json_object_get(measure, "unit"))},
                      4);
        }
    }
}

/* The verdict on an assumption; NULL: none yet. */
static const json_t *find_judgement(const struct report *report, const struct step_assumption *a)
{
    const struct step *step = step_find(a->step);
    const json_t *rows =
        step ? json_object_get(report->results[step - step_table].json, "assumptions") : NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!strcmp(json_string_value(json_object_get(row, "name")), a->name))
            return row;
    }
    return NULL;
}

static void write_assumptions(const struct report *report, FILE *page)
{
    static const char *const verdicts[] = {"false", "unknown", "held"};
    unsigned counts[3] = {0};
    fputs("\n## Assumptions of the design\n\n"
          "| assumption | verdict | seen | what depends on it | what changes if it is false |\n"
          "|---|---|---|---|---|\n",
          page);
    for (size_t v = 0; v < 3; v++)
        for (size_t i = 0; i < step_assumption_count; i++) {
            const struct step_assumption *a = &step_assumptions[i];
            const json_t *row = find_judgement(report, a);
            const char *verdict =
                row ? json_string_value(json_object_get(row, "verdict")) : "unknown";
            const char *seen = row ? json_string_value(json_object_get(row, "text")) : "not run";
            if (strcmp(verdict, verdicts[v]) != 0)
                continue;
            counts[v]++;
            write_row(page, (const char *[]){a->statement, verdict, seen, a->depends, a->if_false},
                      5);
        }
    fprintf(page, "\n%u held, %u false, %u unknown.\n", counts[2], counts[0], counts[1]);
}

static int write_page(const struct report *report)
{
    char path[PATH_SIZE], temporary[PATH_SIZE];
    name_file(report, "page", ".md", path);
    name_file(report, "page", ".md.new", temporary);
    FILE *page = fopen(temporary, "we");
    if (!page)
        return fail(temporary, "");
    unsigned counts[OUTCOMES];
    report_count(report, counts);
    fputs("# gpushare on this machine\n\n", page);
    write_facts(report, page);
    fputs("\nSteps by outcome:", page);
    for (int i = 0; i < OUTCOMES; i++)
        if (counts[i])
            fprintf(page, " %u %s;", counts[i], outcome_name((enum outcome)i));
    fputs("\n", page);
    write_steps(report, page);
    write_measures(report, page);
    write_assumptions(report, page);
    bool bad = ferror(page) || fflush(page) != 0 || fsync(fileno(page)) < 0;
    if (fclose(page) != 0 || bad || rename(temporary, path) < 0)
        return fail(path, "");
    return 0;
}

/* Whole or not at all: a full disk leaves the earlier one. */
static int write_json(json_t *json, const char *path)
{
    char temporary[PATH_SIZE + 8];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "we");
    if (!file)
        return fail(temporary, "");
    errno = 0;
    bool bad = json_dumpf(json, file, JSON_INDENT(1)) < 0 || fputc('\n', file) == EOF ||
               fflush(file) != 0 || fsync(fileno(file)) < 0;
    if (fclose(file) != 0 || bad || rename(temporary, path) < 0)
        return fail(path, "");
    return 0;
}

static int write_index(const struct report *report)
{
    char path[PATH_SIZE], date[40];
    struct tm now;
    time_t seconds = time(NULL);
    gmtime_r(&seconds, &now);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &now);
    json_t *index = json_pack("{s:s, s:s, s:s, s:{}, s:[]}", "written", date, "driver",
                              report->driver, "gpushare", GPUSHARE_VERSION, "outcomes", "steps");
    for (size_t i = 0; i < step_count; i++)
        if (report->results[i].json) {
            json_object_set_new(json_object_get(index, "outcomes"), step_table[i].name,
                                json_string(outcome_name(report->results[i].outcome)));
            json_array_append(json_object_get(index, "steps"), report->results[i].json);
        }
    name_file(report, "results", ".json", path);
    int error = write_json(index, path);
    json_decref(index);
    return error;
}

int report_save(struct report *report, const struct step *step)
{
    char path[PATH_SIZE];
    name_file(report, step->name, ".json", path);
    /* One that fails says nothing of the others. */
    int error = keep_earlier(path);
    if (!error)
        error = write_json(report_result(report, step)->json, path);
    int index_error = write_index(report), page_error = write_page(report);
    return error ? error : index_error ? index_error : page_error;
}

void report_count(const struct report *report, unsigned counts[OUTCOMES])
{
    memset(counts, 0, OUTCOMES * sizeof *counts);
    for (size_t i = 0; i < step_count; i++)
        if (report->results[i].json)
            counts[report->results[i].outcome]++;
}

void report_close(struct report *report)
{
    for (size_t i = 0; report->results && i < step_count; i++)
        result_clear(&report->results[i]);
    free(report->results);
    if (report->lock >= 0)
        close(report->lock);
    *report = (struct report){0};
}
