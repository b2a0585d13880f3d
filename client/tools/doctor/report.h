/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: what was found, a line for each thing: whether it is as it should be, what it is about,
 * and a sentence that ends with the remedy where there is something to do. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_REPORT_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

enum report_status {
    REPORT_OK,
    REPORT_WARN, /* works, and less well than it could, or not for all */
    REPORT_FAIL, /* does not work */
};

enum { REPORT_SUBJECT = 32, REPORT_TEXT = 900 };

struct report_line {
    enum report_status status;
    char subject[REPORT_SUBJECT];
    const char *message; /* the name of its row in common/messages.h; NULL: another's sentence */
    char text[REPORT_TEXT];
};

struct report {
    struct report_line *lines; /* in the order in which they were noted */
    size_t count, room;
    bool cut; /* memory was short, and lines are missing */
};

/* Adds a line. format: MESSAGE_TEXT(name), or "%s" for a sentence that was made elsewhere. The
 * text may come from others: what is no printable character becomes '?'. */
void report_note(struct report *report, enum report_status status, const char *subject,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The number of lines of this status. */
size_t report_count(const struct report *report, enum report_status status);

/* Prints a line for each. */
void report_print(const struct report *report, FILE *out);

/* Returns it as schemas/gpushare-doctor.schema.json describes. The caller owns it; NULL without
 * memory. */
json_t *report_json(const struct report *report);

void report_free(struct report *report);

#endif
