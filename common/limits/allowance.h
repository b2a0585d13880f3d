/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * allowance: for each resource, the amount that a client is guaranteed (its request) and the amount
 * that it never exceeds (its limit); and the scalars, which are single numbers: the client's
 * priority, and the time that a kernel of it may run.
 *
 * The same type holds what is configured, asked for, granted and changed. A value that was not
 * given is ALLOWANCE_UNSET everywhere; 0 is a value. A resource is a row of the table behind
 * allowance_resource() and a member of struct allowance; a scalar is a row of the table behind
 * allowance_scalar() and a member beside them.
 *
 * `of` is in the resource's own unit: hundredths of a per cent for threads and time,
 * bytes for memory. `part` is the same amount as hundredths of a per cent of what there
 * is, for as long as the bytes are not known; allowance_resolve turns it into bytes.
 * Both may be set: then the lower holds.
 *
 * Each value remembers what said so, for sentences alone: two allowances are equal if
 * their values are. Pure functions; any thread.
 */
#ifndef GPUSHARE_COMMON_LIMITS_ALLOWANCE_H
#define GPUSHARE_COMMON_LIMITS_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/limits/dialect.h"
#include "protocol.h"

#define ALLOWANCE_UNSET UINT64_MAX
#define ALLOWANCE_WHOLE UINT64_C(10000) /* hundredths of a per cent: the whole of a resource */
/* The most of a resource in bytes that has no end: messages carry no unset grant, and this is the
 * largest number of JSON. */
#define ALLOWANCE_ENDLESS ((uint64_t)INT64_MAX)

enum resource {
    RESOURCE_THREADS,
    RESOURCE_TIME,
    RESOURCE_MEMORY,
    RESOURCE_HOST_MEMORY,
    RESOURCES /* the number of resources */
};

enum scalar {
    SCALAR_PRIORITY,
    SCALAR_KERNEL_TIME,
    SCALARS /* the number of scalars */
};

/* A set of resources is a word with one bit for each. */
#define RESOURCE_BIT(resource) (1u << (resource))

enum allowance_bound { ALLOWANCE_REQUEST, ALLOWANCE_LIMIT };

struct allowance_range {
    uint64_t request, limit;
};

/* The origin of a value: a client, the server's own environment, its file or an administrator. */
enum allowance_origin {
    ALLOWANCE_BY_NOBODY, /* it is unset, or what there is at most */
    ALLOWANCE_BY_SELF,   /* this process's environment or options; detail: enum proto_source */
    ALLOWANCE_BY_CLIENT, /* a client's, as its message says; detail: enum proto_source */
    ALLOWANCE_BY_FILE,   /* the configuration; detail: the line */
    ALLOWANCE_BY_ADMIN,  /* gpusharectl set */
};

struct allowance_source {
    enum allowance_origin origin;
    uint32_t detail;
};

struct allowance_range_source {
    struct allowance_source request, limit;
};

struct allowance {
    union {
        struct allowance_range
            of[RESOURCES]; /* indexed by enum resource; the members beside it are the same places */
        struct {
            struct allowance_range threads, time, memory, host_memory;
        };
    };
    struct allowance_range part[RESOURCES];
    union {
        uint64_t scalar[SCALARS]; /* indexed by enum scalar; likewise */
        struct {
            uint64_t priority;    /* 0 normal, 1 and above lower */
            uint64_t kernel_time; /* ns that a kernel may run; 0: any time */
        };
    };
    struct allowance_range_source of_from[RESOURCES], part_from[RESOURCES];
    struct allowance_source scalar_from[SCALARS];
};

struct allowance_resource {
    const char *name;                              /* the key in YAML, JSON and options */
    const char *request_variable, *limit_variable; /* the environment variables */
    const char *limit_alias, *limit_namesake;      /* as MPS names the limit: ours and its own */
    const char *form;       /* describes the form of a value, within a sentence */
    const char *alias_form; /* of the alias's and the namesake's */
    const char *phrase;     /* the name within a sentence */
    const char *heading;    /* the name above a column */
    enum dialect_unit unit; /* of the amounts in `of` */
    bool by_worker;         /* the worker enforces it; the supervisor has quotas of the others */
    bool of_device;         /* of a quota: each device has its own; else the server has one */
    /* Names within a sentence, of a quota: a client's, and that of all clients. */
    const char *quota, *whole_quota;
    /* A user or a group can have a limit for the total of its clients; where by_worker, a request
     * too. */
    bool has_total;
    bool divided; /* `replicas: n` gives each replica one n-th of it */
    int (*parse)(const char *text, size_t length, struct dialect_amount *amount);
    /* Of the alias and the namesake; NULL: they hold a list (common/limits/limits.h). */
    int (*parse_alias)(const char *text, size_t length, struct dialect_amount *amount);
};

/* The row of a resource, which is below RESOURCES. Static. */
const struct allowance_resource *allowance_resource(enum resource resource);

enum allowance_scalar_unit {
    ALLOWANCE_NUMBER, /* a whole number, in JSON too */
    ALLOWANCE_TIME,   /* ns; a text with its unit, but a number of seconds where JSON shows it */
};

/* 0 is the loosest value of each scalar, and is in force where nobody said one. */
struct allowance_scalar {
    const char *name;       /* the key in YAML, in requests and of gpusharectl set */
    const char *variable;   /* the environment variable */
    const char *namesake;   /* CUDA's own; NULL: there is none */
    const char *form;       /* describes a value that can be asked for, in a sentence */
    const char *heading;    /* the name above a column */
    const char *key;        /* of the value where answers show it beside others */
    const char *source_key; /* of what said so; NULL: answers don't show that */
    const char *at_zero;    /* describes what 0 means, for people */
    const char *above_zero; /* of a number: what another value means */
    enum allowance_scalar_unit unit;
    bool greatest_holds;     /* of two values the greater is the tighter; else the lower */
    uint64_t least, most;    /* of what can be asked for; 0 is then no wish, if below */
    size_t wire, wire_bytes; /* its place in struct proto_allowance */
};

/* The row of a scalar, which is below SCALARS. Static. */
const struct allowance_scalar *allowance_scalar(enum scalar scalar);

/* The scalar of this name, or SCALARS if there is none. */
enum scalar allowance_find_scalar(const char *name);

/* Reads a value as people write it: "3", "30s". Returns 0; -EINVAL if the text is no such value;
 * -ERANGE if it is not from least to most. *value is written on success only. */
int allowance_parse_scalar(enum scalar scalar, const char *text, size_t length, uint64_t *value);

/* Writes a value as allowance_parse_scalar reads it, or "none" for a time of 0. text: UNITS_TEXT
 * bytes. Returns text. */
const char *allowance_format_scalar(enum scalar scalar, uint64_t value, char *text);

/* The wish that a sent number means: 0 is none, where 0 can't be asked for, and a number below the
 * least is taken as that one. */
uint64_t allowance_scalar_said(enum scalar scalar, uint64_t number);

/* The variable of this process's environment that said a scalar; NULL: none did. Static. */
const char *allowance_scalar_variable(const struct allowance *allowance, enum scalar scalar);

/*
 * Writes the names of all resources, or of those with totals, as a list within a sentence:
 * "memory= or host_memory=". before, after: stand around each name. last: stands before the last
 * name, as ", " stands before the others. Returns text.
 */
enum { ALLOWANCE_NAMES = 160 };
const char *allowance_names(bool totals, const char *before, const char *after, const char *last,
                            char text[ALLOWANCE_NAMES]);

/* The same of the scalars: "priority= or kernel_time_limit=". */
const char *allowance_scalar_names(const char *before, const char *after, const char *last,
                                   char text[ALLOWANCE_NAMES]);

/* The next resource, from this one on, of which the supervisor has quotas; RESOURCES: none. All
 * of them are memory within clients' windows of addresses. */
enum resource allowance_quota_from(enum resource resource);

/* Visits each of them: QUOTA_FOR_EACH (i) statement, where i is new. */
#define QUOTA_FOR_EACH(i)                                                                          \
    for (enum resource i = allowance_quota_from(0); i < RESOURCES; i = allowance_quota_from(i + 1))

/* The resource of this name, or RESOURCES if there is none. */
enum resource allowance_find(const char *name);

/* Every value unset. */
extern const struct allowance allowance_none;

/*
 * Reads an amount as people write it. A request of any unit may also be "0" or "0%": then nothing
 * is reserved. Returns 0; or -EINVAL or -ERANGE, as the parsers of common/limits/dialect.h do.
 * *amount is written on success only.
 */
int allowance_parse(enum resource resource, enum allowance_bound bound, const char *text,
                    size_t length, struct dialect_amount *amount);

/* The form of a resource's amounts for the sentence that refuses `text`, with the remedy where the
 * text lacks a unit. Returns the row's form or room. */
const char *allowance_form(enum resource resource, const char *text, char room[DIALECT_FORM_ROOM]);

/* Stores an amount in `of` or in `part`, as its unit demands. An amount of DIALECT_UNSET changes
 * nothing. */
void allowance_put(struct allowance *allowance, enum resource resource, enum allowance_bound bound,
                   struct dialect_amount amount);

/* Notes this source for every value that is set. */
void allowance_attribute(struct allowance *allowance, struct allowance_source source);

/* Takes over the sources of those values that `by` has alike, and drops the other ones. */
void allowance_explain(struct allowance *to, const struct allowance *by);

/* Returns the source of a value of `of`: the resource's own, without its part. */
struct allowance_source allowance_source(const struct allowance *allowance, enum resource resource,
                                         enum allowance_bound bound);

/* The variable that a source is for this value; NULL: none is. Static. */
const char *allowance_variable(enum resource resource, enum allowance_bound bound,
                               enum proto_source source);

/* The same of a value of `of` that this process's environment said; NULL otherwise. */
const char *allowance_variable_of(const struct allowance *allowance, enum resource resource,
                                  enum allowance_bound bound);

/* Whether a value was given, in `of` or in `part`. */
bool allowance_has(const struct allowance *allowance, enum resource resource,
                   enum allowance_bound bound);

/* Writes an amount for a person, sizes rounded: "25%", "1.5 GiB". value: in the resource's own
 * unit. text: UNITS_TEXT bytes. Returns text. */
const char *allowance_format(enum resource resource, uint64_t value, char *text);

/* Tightens *to by *by: of each request and each limit it keeps the lower one, of each scalar the
 * tighter one. The lower priority is the greater number. */
void allowance_tighten(struct allowance *to, const struct allowance *by);

/* Changes *to to the values that are set in *by; the other values stay. A value in either form
 * replaces both forms. */
void allowance_change(struct allowance *to, const struct allowance *by);

/* Puts into *to the requests and limits of *by whose resources are named by RESOURCE_BITs, and the
 * scalars whose bit 1 << scalar is set, with their sources. */
void allowance_take(struct allowance *to, const struct allowance *by, unsigned requests,
                    unsigned limits, unsigned scalar_bits);

bool allowance_equal(const struct allowance *a, const struct allowance *b);

/* Returns the allowance as messages carry it. Every `part` has to be resolved before. A scalar that
 * is unset becomes 0. */
struct proto_allowance allowance_to_wire(const struct allowance *allowance);

/* Returns the sources of its values, as a client's message carries them. */
struct proto_allowance_sources allowance_sources_to_wire(const struct allowance *allowance);

/* Both back, as a client's wish; scalars as allowance_scalar_said has them. wire and sources:
 * checked. */
struct allowance allowance_from_wire(const struct proto_allowance *wire,
                                     const struct proto_allowance_sources *sources);

/* Returns the given hundredths of a per cent of `bytes`, rounded down. part: at most
 * ALLOWANCE_WHOLE. */
uint64_t allowance_part(uint64_t bytes, uint64_t part);

/* Turns `part` of one resource into bytes, given that the whole is `whole` bytes. If bytes were
 * set too, the lower amount remains. `part` is unset afterwards. */
void allowance_resolve(struct allowance *allowance, enum resource resource, uint64_t whole);

/* The variable that limits memory and gives time: a part of the device. */
#define ALLOWANCE_FRACTION_VARIABLE "GPUSHARE_FRACTION"

/* A request that is above its limit. Bytes and parts are not compared with each other. */
struct allowance_excess {
    enum resource resource;
    struct dialect_amount request, limit;
    struct allowance_source request_from, limit_from;
};

/* Finds the first such resource, in the order of enum resource. Returns false if there is none;
 * *excess is of no use then. */
bool allowance_exceeds(const struct allowance *allowance, struct allowance_excess *excess);

#endif
