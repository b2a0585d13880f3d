/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sums: adds up lines of the accounting by chosen members. A line that comes twice counts once. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_REPORT_SUMS_H
#define GPUSHARE_CLIENT_TOOLS_REPORT_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"

/* Members by which lines are grouped. */
enum sums_key { SUMS_USER, SUMS_NAME, SUMS_GPU, SUMS_DAY, SUMS_PROGRAM, SUMS_CGROUP, SUMS_KEYS };
enum { SUMS_KEYS_MAX = 4, SUMS_NAMES = 96 };

/* Sums of a line's members, in the order of lines. */
enum sums_value {
    SUMS_CONNECTED,
    SUMS_GPU_SECONDS,
    SUMS_MULTIPROCESSOR,
    SUMS_LAUNCHES,
    SUMS_COPIES,
    SUMS_COPIED,
    SUMS_MEMORY,
    SUMS_MEMORY_PEAK, /* the highest */
    SUMS_HOST,
    SUMS_HOST_PEAK,
    SUMS_VALUES
};

/* One member of a line, and of the report. */
struct sums_member {
    const char *name;
    bool whole; /* a whole number */
    bool peak;  /* of which the highest counts */
};
const struct sums_member *sums_member(enum sums_value value);

/* The name of a key for --by, and the member of a line that has it. */
const char *sums_key_name(enum sums_key key);
const char *sums_key_member(enum sums_key key);
/* "user, name, gpu, ..." Returns text. */
const char *sums_key_names(char text[SUMS_NAMES]);

struct sums_group {
    json_t *of[SUMS_KEYS_MAX];       /* the members of a line; null where it has none */
    long double values[SUMS_VALUES]; /* 64 bits and more of a whole number stay whole */
    json_t *clients;                 /* an object with a member for each */
};

struct sums_options {
    enum sums_key by[SUMS_KEYS_MAX];
    unsigned by_count;
    double since, until; /* seconds since 1970 of a line's begin, since <= begin < until */
};

struct sums {
    const struct sums_options *options;
    struct sums_group **groups; /* sorted by sums_finish */
    size_t count, room;
    struct sums_group total;
    json_t *by_name; /* group numbers by the text of their keys */
    json_t *seen;    /* ids of lines */
    uint64_t lines, copies;
};

/* Reads "user" or "user,day". Returns 0, or an error number that *why explains. */
uint32_t sums_parse_by(const char *text, struct sums_options *options, struct error *why);

/* options: stay the caller's. Returns false without memory. */
bool sums_open(struct sums *sums, const struct sums_options *options);
void sums_close(struct sums *sums);

/* Adds a line. Returns 0; or an error number, and *why says what is wrong with the line: nothing of
 * it counts. */
uint32_t sums_add(struct sums *sums, const char *text, size_t bytes, struct error *why);

/* Sorts the groups. */
void sums_finish(struct sums *sums);

#endif
