/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: Debian has no C library that writes metrics, and the two formats are lines of text.
 */
#include "client/tools/metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

/* The first bound that is written, and the last one: 2 us and 33.6 s. */
#define BOUND_FIRST 0
#define BOUND_LAST  24
#define BOUND_STEP  2

const char *exposition_media_type(enum exposition_form form)
{
    return form == EXPOSITION_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

static const char *suffix_of(enum exposition_type type)
{
    switch (type) {
    case EXPOSITION_COUNTER:
        return "_total";
    case EXPOSITION_INFO:
        return "_info";
    default:
        return "";
    }
}

static const char *type_name(const struct exposition *text)
{
    switch (text->family->type) {
    case EXPOSITION_COUNTER:
        return "counter";
    case EXPOSITION_HISTOGRAM:
        return "histogram";
    case EXPOSITION_INFO:
        return text->form == EXPOSITION_OPENMETRICS ? "info" : "gauge";
    default:
        return "gauge";
    }
}

/* OpenMetrics names families, the older format the samples. */
static const char *family_suffix(const struct exposition *text)
{
    return text->form == EXPOSITION_OPENMETRICS ? "" : suffix_of(text->family->type);
}

void exposition_begin(struct exposition *text, const struct exposition_family *family)
{
    text->family = family;
    const char *suffix = family_suffix(text);
    fprintf(text->out, "# HELP %s%s %s\n", family->name, suffix, family->help);
    fprintf(text->out, "# TYPE %s%s %s\n", family->name, suffix, type_name(text));
    if (family->unit && text->form == EXPOSITION_OPENMETRICS)
        fprintf(text->out, "# UNIT %s %s\n", family->name, family->unit);
}

static void put_escaped(FILE *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            fputs("\\n", out);
        else if (*value == '\\' || *value == '"')
            fprintf(out, "\\%c", *value);
        else
            fputc(*value, out);
    }
}

/* bound: of a bucket, as a further label; NULL: none. */
static void put_labels(FILE *out, const struct exposition_labels *labels, const char *bound)
{
    size_t count = labels ? labels->count : 0;
    if (!count && !bound)
        return;
    fputc('{', out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s%s=\"", i ? "," : "", labels->of[i].name);
        put_escaped(out, labels->of[i].value);
        fputc('"', out);
    }
    if (bound)
        fprintf(out, "%sle=\"%s\"", count ? "," : "", bound);
    fputc('}', out);
}

/* A locale must not change the decimal point: these programs set none. */
static void put_value(FILE *out, double value)
{
    fprintf(out, " %.15g\n", value);
}

void exposition_sample(struct exposition *text, const struct exposition_labels *labels,
                       double value)
{
    fprintf(text->out, "%s%s", text->family->name, suffix_of(text->family->type));
    put_labels(text->out, labels, NULL);
    put_value(text->out, value);
}

/* One and a half times a bucket's lower bound. The first one begins at nothing. */
static double estimated_sum(const uint64_t counts[EXPOSITION_BUCKETS])
{
    double sum = (double)counts[0] * 1e-6;
    for (int i = 1; i < EXPOSITION_BUCKETS; i++)
        sum += (double)counts[i] * 1.5e-6 * (double)(UINT64_C(1) << i);
    return sum;
}

static void put_bucket(struct exposition *text, const struct exposition_labels *labels,
                       const char *bound, uint64_t count)
{
    fprintf(text->out, "%s_bucket", text->family->name);
    put_labels(text->out, labels, bound);
    fprintf(text->out, " %" PRIu64 "\n", count);
}

void exposition_histogram(struct exposition *text, const struct exposition_labels *labels,
                          const uint64_t counts[EXPOSITION_BUCKETS], double sum)
{
    uint64_t all = 0;
    char bound[32];
    for (int i = 0; i < EXPOSITION_BUCKETS; i++) {
        all += counts[i];
        if (i < BOUND_FIRST || i > BOUND_LAST || (i - BOUND_FIRST) % BOUND_STEP)
            continue;
        snprintf(bound, sizeof bound, "%.15g", 2e-6 * (double)(UINT64_C(1) << i));
        put_bucket(text, labels, bound, all);
    }
    put_bucket(text, labels, "+Inf", all);
    fprintf(text->out, "%s_sum", text->family->name);
    put_labels(text->out, labels, NULL);
    put_value(text->out, sum < 0 ? estimated_sum(counts) : sum);
    fprintf(text->out, "%s_count", text->family->name);
    put_labels(text->out, labels, NULL);
    fprintf(text->out, " %" PRIu64 "\n", all);
}

void exposition_end(struct exposition *text)
{
    if (text->form == EXPOSITION_OPENMETRICS)
        fputs("# EOF\n", text->out);
}
