/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * exposition: metrics as text, in Prometheus's format 0.0.4 or as OpenMetrics 1.0.
 *
 * A family is written before its samples, and these come one after the other: both formats want
 * that. Values of labels may be any text that is UTF-8; they are escaped here. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_METRICS_EXPOSITION_H
#define GPUSHARE_CLIENT_TOOLS_METRICS_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum exposition_form { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS };

/* The media type for an HTTP header. The string is static. */
const char *exposition_media_type(enum exposition_form form);

enum exposition_type {
    EXPOSITION_GAUGE,
    EXPOSITION_COUNTER,
    EXPOSITION_INFO, /* a 1 with labels */
    EXPOSITION_HISTOGRAM,
};

struct exposition_family {
    const char *name; /* without _total and _info, which follow from the type */
    enum exposition_type type;
    const char *unit; /* "seconds", "bytes", "ratio": the end of the name; NULL: none */
    const char *help; /* one sentence */
};

struct exposition_label {
    const char *name, *value;
};

/* Labels of one sample; the caller adds them one by one. */
enum { EXPOSITION_LABELS_MAX = 8 };
struct exposition_labels {
    struct exposition_label of[EXPOSITION_LABELS_MAX];
    size_t count;
};

static inline void exposition_label(struct exposition_labels *labels, const char *name,
                                    const char *value)
{
    if (labels->count < EXPOSITION_LABELS_MAX)
        labels->of[labels->count++] = (struct exposition_label){name, value};
}

struct exposition {
    FILE *out; /* the caller's; its errors are the caller's to ask for */
    enum exposition_form form;
    const struct exposition_family *family; /* whose samples come */
};

void exposition_begin(struct exposition *text, const struct exposition_family *family);

/* labels: NULL for none. */
void exposition_sample(struct exposition *text, const struct exposition_labels *labels,
                       double value);

/*
 * A histogram. counts: of buckets of which number i has 2^i microseconds and more (0 also less),
 * below 2^(i+1). Every second bound is written, up to half a minute. sum: of all that is counted,
 * in seconds; negative: not known, and estimated from the buckets' middles.
 */
enum { EXPOSITION_BUCKETS = 32 };
void exposition_histogram(struct exposition *text, const struct exposition_labels *labels,
                          const uint64_t counts[EXPOSITION_BUCKETS], double sum);

/* The end of all text. */
void exposition_end(struct exposition *text);

#endif
