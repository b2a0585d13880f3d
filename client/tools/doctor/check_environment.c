/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/tools/doctor/checks.h"
#include "common/limits/allowance.h"
#include "common/limits/limits.h"
#include "common/limits/variables.h"
#include "common/messages.h"

#define ENVIRONMENT "environment"

static const char *read_variable(const char *name, void *context)
{
    (void)context;
    return getenv(name);
}

static void note_unknown(void *context, const struct error *told)
{
    struct exam *exam = context;
    report_note(&exam->report, REPORT_WARN, ENVIRONMENT, "%s", told->text);
}

/* CUDA's namesake is read where gpushare's own variable is not set. */
static void check_pair(struct exam *exam, const char *own, const char *namesake)
{
    const char *ours = own ? getenv(own) : NULL, *theirs = namesake ? getenv(namesake) : NULL;
    if (ours && theirs && strcmp(ours, theirs) != 0)
        report_note(&exam->report, REPORT_WARN, ENVIRONMENT, MESSAGE_TEXT(doctor_variable_hidden),
                    namesake, theirs, own, ours);
}

static void check_both(struct exam *exam, const char *own, const char *alias)
{
    if (own && alias && getenv(own) && getenv(alias))
        report_note(&exam->report, REPORT_WARN, ENVIRONMENT, MESSAGE_TEXT(doctor_variable_twice),
                    own, alias);
}

static void check_pairs(struct exam *exam)
{
    for (int i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *row = allowance_resource((enum resource)i);
        check_both(exam, row->limit_variable, row->limit_alias);
        check_pair(exam, row->limit_variable, row->limit_namesake);
        check_pair(exam, row->limit_alias, row->limit_namesake);
    }
    for (int i = 0; i < SCALARS; i++)
        check_pair(exam, allowance_scalar((enum scalar)i)->variable,
                   allowance_scalar((enum scalar)i)->namesake);
    check_pair(exam, "GPUSHARE_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES");
}

void check_environment_run(struct exam *exam)
{
    static struct limits_wish wish;
    struct error why;
    size_t before = exam->report.count;
    if (limits_wish_read(&wish, read_variable, NULL, &why))
        report_note(&exam->report, REPORT_FAIL, ENVIRONMENT, "%s", why.text);
    variables_check(environ, note_unknown, exam);
    check_pairs(exam);
    if (exam->report.count == before)
        report_note(&exam->report, REPORT_OK, ENVIRONMENT, MESSAGE_TEXT(doctor_environment));
}
