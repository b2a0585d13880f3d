/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/gpushare.h"
#include "client/tools/admin_client.h"
#include "common/array.h"
#include "common/messages.h"
#include "common/printable.h"

static const char *const names[] = {
    [REPORT_OK] = "ok", [REPORT_WARN] = "warn", [REPORT_FAIL] = "FAIL"};
/* JSON has no emphasis. */
static const char *const keys[] = {
    [REPORT_OK] = "ok", [REPORT_WARN] = "warn", [REPORT_FAIL] = "fail"};

/* Finds a row by its format. Texts are compared, since each file has its own copy of the table's. A
 * format may stand in several rows if it is as short as "%s: %s", and the doctor's own is meant. */
static const char *name_of(const char *format)
{
    static const char own[] = "doctor_";
    const char *found = NULL;
    const struct message *row;
    if (!strcmp(format, "%s"))
        return NULL;
    for (size_t i = 0; (row = messages_at(i)); i++)
        if (!strcmp(row->format, format) && (!found || !strncmp(row->name, own, strlen(own))))
            found = row->name;
    return found;
}

void report_note(struct report *report, enum report_status status, const char *subject,
                 const char *format, ...)
{
    va_list arguments;
    if (array_reserve(report->lines, report->room, report->count + 1) < 0) {
        report->cut = true;
        return;
    }
    struct report_line *line = &report->lines[report->count++];
    line->status = status;
    line->message = name_of(format);
    snprintf(line->subject, sizeof line->subject, "%s", subject);
    va_start(arguments, format);
    vsnprintf(line->text, sizeof line->text, format, arguments);
    va_end(arguments);
    printable_replace(line->text);
}

size_t report_count(const struct report *report, enum report_status status)
{
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++)
        count += report->lines[i].status == status;
    return count;
}

void report_print(const struct report *report, FILE *out)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct report_line *line = &report->lines[i];
        fprintf(out, "%-4s %s: %s\n", names[line->status], line->subject, line->text);
    }
}

static json_t *line_json(const struct report_line *line)
{
    return json_pack("{s:s, s:s, s:s?, s:s}", "status", keys[line->status], "subject",
                     line->subject, "message", line->message, "text", line->text);
}

json_t *report_json(const struct report *report)
{
    json_t *checks = json_array();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(checks, line_json(&report->lines[i]));
    return json_pack("{s:i, s:b, s:s, s:I, s:I, s:o}", "schema_version",
                     ADMIN_CLIENT_SCHEMA_VERSION, "ok", report_count(report, REPORT_FAIL) == 0,
                     "library_version", gpushare_version_text(), "failures",
                     (json_int_t)report_count(report, REPORT_FAIL), "warnings",
                     (json_int_t)report_count(report, REPORT_WARN), "checks", checks);
}

void report_free(struct report *report)
{
    free(report->lines);
    *report = (struct report){0};
}
