/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/limits/allowance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

static const struct allowance_resource resources[RESOURCES] = {
    [RESOURCE_THREADS] = {.name = "threads",
                          .request_variable = "GPUSHARE_THREADS_REQUEST",
                          .limit_variable = "GPUSHARE_THREADS_LIMIT",
                          .limit_alias = "GPUSHARE_ACTIVE_THREAD_PERCENTAGE",
                          .limit_namesake = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                          .alias_form = DIALECT_FORM_PERCENTAGE,
                          .parse_alias = dialect_parse_percentage,
                          .form = DIALECT_FORM_SHARE,
                          .phrase = "threads",
                          .heading = "THREADS",
                          .unit = DIALECT_SHARE,
                          .by_worker = true,
                          .has_total = true,
                          .divided = true,
                          .parse = dialect_parse_share},
    [RESOURCE_TIME] = {.name = "time",
                       .request_variable = "GPUSHARE_TIME_REQUEST",
                       .limit_variable = "GPUSHARE_TIME_LIMIT",
                       .form = DIALECT_FORM_SHARE,
                       .phrase = "time",
                       .heading = "TIME",
                       .unit = DIALECT_SHARE,
                       .by_worker = true,
                       .has_total = true,
                       .parse = dialect_parse_share},
    [RESOURCE_MEMORY] = {.name = "memory",
                         .request_variable = "GPUSHARE_MEMORY_REQUEST",
                         .limit_variable = "GPUSHARE_MEMORY_LIMIT",
                         .limit_alias = "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
                         .limit_namesake = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                         .form = DIALECT_FORM_AMOUNT,
                         .phrase = "device memory",
                         .heading = "MEMORY",
                         .unit = DIALECT_BYTES,
                         .of_device = true,
                         .quota = "device memory limit of this client",
                         .whole_quota = "device memory of all clients together",
                         .has_total = true,
                         .divided = true,
                         .parse = dialect_parse_amount},
    [RESOURCE_HOST_MEMORY] = {.name = "host_memory",
                              .request_variable = "GPUSHARE_HOST_MEMORY_REQUEST",
                              .limit_variable = "GPUSHARE_HOST_MEMORY_LIMIT",
                              .limit_alias = "GPUSHARE_PINNED_HOST_MEM_LIMIT",
                              .alias_form = DIALECT_FORM_SIZE,
                              .parse_alias = dialect_parse_size,
                              .form = DIALECT_FORM_SIZE,
                              .phrase = "pinned host memory",
                              .heading = "HOST",
                              .unit = DIALECT_BYTES,
                              .quota = "pinned host memory limit of this client",
                              .whole_quota =
                                  "pinned host memory limit of the server (--host-memory-total)",
                              .has_total = true,
                              .parse = dialect_parse_size},
};

/* The place of a scalar in the message. */
#define WIRE(member)                                                                               \
    .wire = offsetof(struct proto_allowance, member),                                              \
    .wire_bytes = sizeof(((struct proto_allowance *)NULL)->member)

static const struct allowance_scalar scalars[SCALARS] = {
    [SCALAR_PRIORITY] = {.name = "priority",
                         .variable = "GPUSHARE_CLIENT_PRIORITY",
                         .namesake = "CUDA_MPS_CLIENT_PRIORITY",
                         .form = "a whole number from 0 (normal) to 1000 (lowest)",
                         .heading = "PRIORITY",
                         .key = "priority",
                         .at_zero = "normal",
                         .above_zero = "behind 0",
                         .unit = ALLOWANCE_NUMBER,
                         .greatest_holds = true,
                         .most = 1000,
                         WIRE(priority)},
    /* The worker looks at what runs every few milliseconds, so it can't enforce less. */
    [SCALAR_KERNEL_TIME] = {.name = "kernel_time_limit",
                            .variable = "GPUSHARE_KERNEL_TIME_LIMIT",
                            .form = "a time from 100ms to 24h (units: " UNITS_DURATIONS
                                    "), like 30s or 5min",
                            .heading = "KERNEL TIME",
                            .key = "kernel_time_limit_seconds",
                            .source_key = "kernel_time_limited_by",
                            .at_zero = "any",
                            .unit = ALLOWANCE_TIME,
                            .least = UINT64_C(100000000),
                            .most = UINT64_C(86400000000000),
                            WIRE(kernel_time)},
};

#define RANGE_NONE                                                                                 \
    {                                                                                              \
        ALLOWANCE_UNSET, ALLOWANCE_UNSET                                                           \
    }

const struct allowance allowance_none = {
    .of = {[0 ... RESOURCES - 1] = RANGE_NONE},
    .part = {[0 ... RESOURCES - 1] = RANGE_NONE},
    .scalar = {[0 ... SCALARS - 1] = ALLOWANCE_UNSET},
};

/* Code reads a resource by name or by number: both have to be the same place. */
_Static_assert(offsetof(struct allowance, threads) ==
                   offsetof(struct allowance, of[RESOURCE_THREADS]),
               "threads");
_Static_assert(offsetof(struct allowance, time) == offsetof(struct allowance, of[RESOURCE_TIME]),
               "time");
_Static_assert(offsetof(struct allowance, memory) ==
                   offsetof(struct allowance, of[RESOURCE_MEMORY]),
               "memory");
_Static_assert(offsetof(struct allowance, host_memory) ==
                   offsetof(struct allowance, of[RESOURCE_HOST_MEMORY]),
               "host_memory");
_Static_assert(offsetof(struct allowance, part) == RESOURCES * sizeof(struct allowance_range),
               "a resource has a number and no member, or a member and no number");

_Static_assert(offsetof(struct allowance, priority) ==
                   offsetof(struct allowance, scalar[SCALAR_PRIORITY]),
               "priority");
_Static_assert(offsetof(struct allowance, kernel_time) ==
                   offsetof(struct allowance, scalar[SCALAR_KERNEL_TIME]),
               "kernel_time");
_Static_assert(offsetof(struct allowance, of_from) ==
                   offsetof(struct allowance, scalar) + SCALARS * sizeof(uint64_t),
               "a scalar has a number and no member, or a member and no number");

const struct allowance_resource *allowance_resource(enum resource resource)
{
    return &resources[resource];
}

static const char *join_names(const char *const *names, unsigned count, const char *before,
                              const char *after, const char *last, char text[ALLOWANCE_NAMES])
{
    size_t used = 0;
    *text = '\0';
    for (unsigned i = 0; i < count && used < ALLOWANCE_NAMES; i++)
        used += (size_t)snprintf(text + used, ALLOWANCE_NAMES - used, "%s%s%s%s",
                                 !i               ? ""
                                 : i == count - 1 ? last
                                                  : ", ",
                                 before, names[i], after);
    return text;
}

const char *allowance_names(bool totals, const char *before, const char *after, const char *last,
                            char text[ALLOWANCE_NAMES])
{
    const char *names[RESOURCES];
    unsigned count = 0;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (!totals || resources[i].has_total)
            names[count++] = resources[i].name;
    return join_names(names, count, before, after, last, text);
}

enum resource allowance_quota_from(enum resource resource)
{
    while (resource < RESOURCES && resources[resource].by_worker)
        resource++;
    return resource;
}

enum resource allowance_find(const char *name)
{
    enum resource i = 0;
    while (i < RESOURCES && strcmp(resources[i].name, name) != 0)
        i++;
    return i;
}

/* ---- parse, format ---- */

int allowance_parse(enum resource resource, enum allowance_bound bound, const char *text,
                    size_t length, struct dialect_amount *amount)
{
    bool zero = (length == 1 && *text == '0') || (length == 2 && memcmp(text, "0%", 2) == 0);
    if (bound == ALLOWANCE_REQUEST && zero) {
        *amount = (struct dialect_amount){.unit = resources[resource].unit};
        return 0;
    }
    return resources[resource].parse(text, length, amount);
}

const char *allowance_form(enum resource resource, const char *text, char room[DIALECT_FORM_ROOM])
{
    const struct allowance_resource *row = &resources[resource];
    if (row->unit != DIALECT_BYTES)
        return row->form;
    return dialect_form(row->form, row->parse == dialect_parse_amount, text, strlen(text), room);
}

static uint64_t *bound_in(struct allowance_range *range, enum allowance_bound bound)
{
    return bound == ALLOWANCE_REQUEST ? &range->request : &range->limit;
}

static uint64_t bound_of(const struct allowance_range *range, enum allowance_bound bound)
{
    return bound == ALLOWANCE_REQUEST ? range->request : range->limit;
}

static struct allowance_source *source_in(struct allowance_range_source *from,
                                          enum allowance_bound bound)
{
    return bound == ALLOWANCE_REQUEST ? &from->request : &from->limit;
}

static struct allowance_source source_of(const struct allowance_range_source *from,
                                         enum allowance_bound bound)
{
    return bound == ALLOWANCE_REQUEST ? from->request : from->limit;
}

void allowance_put(struct allowance *allowance, enum resource resource, enum allowance_bound bound,
                   struct dialect_amount amount)
{
    if (amount.unit == DIALECT_UNSET)
        return;
    bool own = amount.unit == resources[resource].unit;
    struct allowance_range *range = own ? allowance->of : allowance->part;
    struct allowance_range_source *from = own ? allowance->of_from : allowance->part_from;
    *bound_in(&range[resource], bound) = amount.value;
    *source_in(&from[resource], bound) = (struct allowance_source){0};
}

bool allowance_has(const struct allowance *allowance, enum resource resource,
                   enum allowance_bound bound)
{
    return bound_of(&allowance->of[resource], bound) != ALLOWANCE_UNSET ||
           bound_of(&allowance->part[resource], bound) != ALLOWANCE_UNSET;
}

const char *allowance_format(enum resource resource, uint64_t value, char *text)
{
    if (resources[resource].unit == DIALECT_BYTES)
        return units_format_bytes(value, text);
    return dialect_format((struct dialect_amount){resources[resource].unit, value}, text);
}

/* ---- scalars ---- */

const struct allowance_scalar *allowance_scalar(enum scalar scalar)
{
    return &scalars[scalar];
}

enum scalar allowance_find_scalar(const char *name)
{
    enum scalar i = 0;
    while (i < SCALARS && strcmp(scalars[i].name, name) != 0)
        i++;
    return i;
}

const char *allowance_scalar_names(const char *before, const char *after, const char *last,
                                   char text[ALLOWANCE_NAMES])
{
    const char *names[SCALARS];
    for (enum scalar i = 0; i < SCALARS; i++)
        names[i] = scalars[i].name;
    return join_names(names, SCALARS, before, after, last, text);
}

int allowance_parse_scalar(enum scalar scalar, const char *text, size_t length, uint64_t *value)
{
    const struct allowance_scalar *row = &scalars[scalar];
    uint64_t read;
    int result = row->unit == ALLOWANCE_TIME ? units_parse_duration(text, length, &read)
                                             : units_parse_number(text, length, row->most, &read);
    if (result == 0 && (read < row->least || read > row->most))
        result = -ERANGE;
    if (result == 0)
        *value = read;
    return result;
}

const char *allowance_format_scalar(enum scalar scalar, uint64_t value, char *text)
{
    if (scalars[scalar].unit == ALLOWANCE_TIME && value)
        return units_format_duration(value, text);
    if (scalars[scalar].unit == ALLOWANCE_TIME)
        return strcpy(text, "none");
    snprintf(text, UNITS_TEXT, "%llu", (unsigned long long)value);
    return text;
}

uint64_t allowance_scalar_said(enum scalar scalar, uint64_t number)
{
    uint64_t least = scalars[scalar].least;
    return !number && least ? ALLOWANCE_UNSET : max(number, least);
}

const char *allowance_scalar_variable(const struct allowance *allowance, enum scalar scalar)
{
    struct allowance_source source = allowance->scalar_from[scalar];
    if (source.origin != ALLOWANCE_BY_SELF)
        return NULL;
    return source.detail == PROTO_SOURCE_VARIABLE   ? scalars[scalar].variable
           : source.detail == PROTO_SOURCE_NAMESAKE ? scalars[scalar].namesake
                                                    : NULL;
}

static bool scalar_is_tighter(enum scalar scalar, uint64_t value, uint64_t than)
{
    if (value == ALLOWANCE_UNSET || than == ALLOWANCE_UNSET)
        return value != ALLOWANCE_UNSET;
    if (scalars[scalar].greatest_holds)
        return value > than;
    /* 0 is no limit. */
    return value && (!than || value < than);
}

/* ---- sources ---- */

static void range_attribute(const struct allowance_range *range,
                            struct allowance_range_source *from, struct allowance_source source)
{
    for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++)
        if (bound_of(range, bound) != ALLOWANCE_UNSET)
            *source_in(from, bound) = source;
}

void allowance_attribute(struct allowance *allowance, struct allowance_source source)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        range_attribute(&allowance->of[i], &allowance->of_from[i], source);
        range_attribute(&allowance->part[i], &allowance->part_from[i], source);
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (allowance->scalar[i] != ALLOWANCE_UNSET)
            allowance->scalar_from[i] = source;
}

void allowance_explain(struct allowance *to, const struct allowance *by)
{
    for (enum resource i = 0; i < RESOURCES; i++)
        for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++) {
            bool alike = bound_of(&to->of[i], bound) == bound_of(&by->of[i], bound);
            if (alike)
                *source_in(&to->of_from[i], bound) = source_of(&by->of_from[i], bound);
        }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (to->scalar[i] == by->scalar[i])
            to->scalar_from[i] = by->scalar_from[i];
}

struct allowance_source allowance_source(const struct allowance *allowance, enum resource resource,
                                         enum allowance_bound bound)
{
    return source_of(&allowance->of_from[resource], bound);
}

const char *allowance_variable(enum resource resource, enum allowance_bound bound,
                               enum proto_source source)
{
    const struct allowance_resource *row = &resources[resource];
    bool request = bound == ALLOWANCE_REQUEST;
    switch (source) {
    case PROTO_SOURCE_VARIABLE:
        return request ? row->request_variable : row->limit_variable;
    case PROTO_SOURCE_ALIAS:
        return request ? NULL : row->limit_alias;
    case PROTO_SOURCE_NAMESAKE:
        return request ? NULL : row->limit_namesake;
    case PROTO_SOURCE_FRACTION:
        return ALLOWANCE_FRACTION_VARIABLE;
    case PROTO_SOURCE_NONE:
    case PROTO_SOURCE_OPTIONS:
        return NULL;
    }
    return NULL;
}

const char *allowance_variable_of(const struct allowance *allowance, enum resource resource,
                                  enum allowance_bound bound)
{
    struct allowance_source source = source_of(&allowance->of_from[resource], bound);
    if (source.origin != ALLOWANCE_BY_SELF)
        return NULL;
    return allowance_variable(resource, bound, (enum proto_source)source.detail);
}

/* ---- tighten, change ---- */

/* ALLOWANCE_UNSET is the largest value, so it never wins against one that is set. */
static void range_tighten(struct allowance_range *to, struct allowance_range_source *to_from,
                          const struct allowance_range *by,
                          const struct allowance_range_source *by_from)
{
    for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++) {
        if (bound_of(by, bound) >= bound_of(to, bound))
            continue;
        *bound_in(to, bound) = bound_of(by, bound);
        *source_in(to_from, bound) = source_of(by_from, bound);
    }
}

void allowance_tighten(struct allowance *to, const struct allowance *by)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        range_tighten(&to->of[i], &to->of_from[i], &by->of[i], &by->of_from[i]);
        range_tighten(&to->part[i], &to->part_from[i], &by->part[i], &by->part_from[i]);
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (scalar_is_tighter(i, by->scalar[i], to->scalar[i])) {
            to->scalar[i] = by->scalar[i];
            to->scalar_from[i] = by->scalar_from[i];
        }
}

void allowance_change(struct allowance *to, const struct allowance *by)
{
    for (enum resource i = 0; i < RESOURCES; i++)
        for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++) {
            if (!allowance_has(by, i, bound))
                continue;
            *bound_in(&to->of[i], bound) = bound_of(&by->of[i], bound);
            *bound_in(&to->part[i], bound) = bound_of(&by->part[i], bound);
            *source_in(&to->of_from[i], bound) = source_of(&by->of_from[i], bound);
            *source_in(&to->part_from[i], bound) = source_of(&by->part_from[i], bound);
        }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (by->scalar[i] != ALLOWANCE_UNSET) {
            to->scalar[i] = by->scalar[i];
            to->scalar_from[i] = by->scalar_from[i];
        }
}

void allowance_take(struct allowance *to, const struct allowance *by, unsigned requests,
                    unsigned limits, unsigned scalar_bits)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (requests & RESOURCE_BIT(i)) {
            to->of[i].request = by->of[i].request;
            to->of_from[i].request = by->of_from[i].request;
        }
        if (limits & RESOURCE_BIT(i)) {
            to->of[i].limit = by->of[i].limit;
            to->of_from[i].limit = by->of_from[i].limit;
        }
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (scalar_bits & (1U << i)) {
            to->scalar[i] = by->scalar[i];
            to->scalar_from[i] = by->scalar_from[i];
        }
}

/* ---- compare ---- */

bool allowance_equal(const struct allowance *a, const struct allowance *b)
{
    /* The values stand first, and are nothing but 64-bit words: there are no bytes between them. */
    return memcmp(a, b, offsetof(struct allowance, of_from)) == 0;
}

static bool range_exceeds(const struct allowance_range *range,
                          const struct allowance_range_source *from, enum dialect_unit unit,
                          struct allowance_excess *excess)
{
    if (range->request == ALLOWANCE_UNSET || range->request <= range->limit)
        return false;
    excess->request = (struct dialect_amount){unit, range->request};
    excess->limit = (struct dialect_amount){unit, range->limit};
    excess->request_from = from->request;
    excess->limit_from = from->limit;
    return true;
}

bool allowance_exceeds(const struct allowance *allowance, struct allowance_excess *excess)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        excess->resource = i;
        if (range_exceeds(&allowance->part[i], &allowance->part_from[i], DIALECT_SHARE, excess) ||
            range_exceeds(&allowance->of[i], &allowance->of_from[i], resources[i].unit, excess))
            return true;
    }
    return false;
}

/* ---- parts ---- */

uint64_t allowance_part(uint64_t bytes, uint64_t part)
{
    /* 128 bits: an exbibyte times a share does not fit into 64. */
    return (uint64_t)((unsigned __int128)bytes * part / ALLOWANCE_WHOLE);
}

void allowance_resolve(struct allowance *allowance, enum resource resource, uint64_t whole)
{
    struct allowance_range *part = &allowance->part[resource];
    struct allowance_range bytes = RANGE_NONE;
    if (part->request != ALLOWANCE_UNSET)
        bytes.request = allowance_part(whole, part->request);
    if (part->limit != ALLOWANCE_UNSET)
        bytes.limit = allowance_part(whole, part->limit);
    range_tighten(&allowance->of[resource], &allowance->of_from[resource], &bytes,
                  &allowance->part_from[resource]);
    *part = (struct allowance_range)RANGE_NONE;
    allowance->part_from[resource] = (struct allowance_range_source){0};
}

/* ---- in messages ---- */

/* The message holds the same words in the same order, so they are copied as a block. */
#define ALLOWANCE_WIRE_BYTES (RESOURCES * sizeof(struct allowance_range))
_Static_assert(offsetof(struct proto_allowance, threads) == offsetof(struct allowance, threads) &&
                   offsetof(struct proto_allowance, time) == offsetof(struct allowance, time) &&
                   offsetof(struct proto_allowance, memory) == offsetof(struct allowance, memory) &&
                   offsetof(struct proto_allowance, host_memory) ==
                       offsetof(struct allowance, host_memory) &&
                   offsetof(struct proto_allowance, priority) == ALLOWANCE_WIRE_BYTES,
               "the resources of the message");
_Static_assert(ALLOWANCE_UNSET == PROTO_UNSET && ALLOWANCE_WHOLE == PROTO_PERCENT_WHOLE, "units");

/* A scalar is a u32 or a u64 there. */
static void scalar_to_wire(struct proto_allowance *wire, enum scalar scalar, uint64_t value)
{
    char *to = (char *)wire + scalars[scalar].wire;
    const uint32_t narrow = (uint32_t)value;
    if (scalars[scalar].wire_bytes == sizeof narrow)
        memcpy(to, &narrow, sizeof narrow);
    else
        memcpy(to, &value, sizeof value);
}

static uint64_t scalar_from_wire(const struct proto_allowance *wire, enum scalar scalar)
{
    const char *from = (const char *)wire + scalars[scalar].wire;
    uint32_t narrow;
    uint64_t value;
    if (scalars[scalar].wire_bytes == sizeof narrow) {
        memcpy(&narrow, from, sizeof narrow);
        return narrow;
    }
    memcpy(&value, from, sizeof value);
    return value;
}

struct proto_allowance allowance_to_wire(const struct allowance *allowance)
{
    struct proto_allowance wire = {0};
    memcpy(&wire, allowance->of, ALLOWANCE_WIRE_BYTES);
    for (enum scalar i = 0; i < SCALARS; i++)
        if (allowance->scalar[i] != ALLOWANCE_UNSET)
            scalar_to_wire(&wire, i, allowance->scalar[i]);
    return wire;
}

_Static_assert(sizeof(struct proto_allowance_sources) ==
                       RESOURCES * sizeof(struct proto_range_source) &&
                   offsetof(struct proto_allowance_sources, host_memory) ==
                       RESOURCE_HOST_MEMORY * sizeof(struct proto_range_source),
               "the sources have the resources' order");

/* Of a value that this process said itself; another's word is not passed on as ours. */
static uint32_t source_to_wire(struct allowance_source source)
{
    return source.origin == ALLOWANCE_BY_SELF ? source.detail : PROTO_SOURCE_NONE;
}

struct proto_allowance_sources allowance_sources_to_wire(const struct allowance *allowance)
{
    struct proto_range_source rows[RESOURCES];
    struct proto_allowance_sources wire;
    for (enum resource i = 0; i < RESOURCES; i++)
        rows[i] = (struct proto_range_source){source_to_wire(allowance->of_from[i].request),
                                              source_to_wire(allowance->of_from[i].limit)};
    memcpy(&wire, rows, sizeof wire);
    return wire;
}

struct allowance allowance_from_wire(const struct proto_allowance *wire,
                                     const struct proto_allowance_sources *sources)
{
    struct proto_range_source rows[RESOURCES];
    struct allowance allowance = allowance_none;
    memcpy(allowance.of, wire, ALLOWANCE_WIRE_BYTES);
    for (enum scalar i = 0; i < SCALARS; i++) {
        allowance.scalar[i] = allowance_scalar_said(i, scalar_from_wire(wire, i));
        if (allowance.scalar[i] != ALLOWANCE_UNSET)
            allowance.scalar_from[i] = (struct allowance_source){.origin = ALLOWANCE_BY_CLIENT};
    }
    memcpy(rows, sources, sizeof rows);
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct allowance_range_source *from = &allowance.of_from[i];
        from->request = (struct allowance_source){ALLOWANCE_BY_CLIENT, rows[i].request};
        from->limit = (struct allowance_source){ALLOWANCE_BY_CLIENT, rows[i].limit};
    }
    return allowance;
}
