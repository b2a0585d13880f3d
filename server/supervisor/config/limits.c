/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/limits.h"

#include <stdio.h>
#include <string.h>

#include "common/dialect.h"
#include "common/limits.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/config/config.h"

const struct config_limits config_limits_none = {.memory = PROTO_UNSET,
                                                 .memory_request = PROTO_UNSET,
                                                 .memory_request_share = CONFIG_UNSAID,
                                                 .host_memory = PROTO_UNSET,
                                                 .host_request = PROTO_UNSET,
                                                 .thread_request = CONFIG_UNSAID,
                                                 .time_request = CONFIG_UNSAID};

/* CONFIG_UNSAID is the largest value. */
void config_limits_tighten(struct config_limits *to, const struct config_limits *by)
{
    to->memory = limits_tighter(to->memory, by->memory);
    to->memory_share = limits_tighter_percentage(to->memory_share, by->memory_share);
    to->memory_request = limits_tighter(to->memory_request, by->memory_request);
    to->memory_request_share = min(to->memory_request_share, by->memory_request_share);
    to->host_memory = limits_tighter(to->host_memory, by->host_memory);
    to->host_request = limits_tighter(to->host_request, by->host_request);
    to->threads = limits_tighter_percentage(to->threads, by->threads);
    to->thread_request = min(to->thread_request, by->thread_request);
    to->time = limits_tighter_percentage(to->time, by->time);
    to->time_request = min(to->time_request, by->time_request);
    to->priority = limits_tighter_priority(to->priority, by->priority);
}

void config_limits_replicate(struct config_limits *to, uint64_t n)
{
    struct config_limits by = config_limits_none;
    by.memory_share = by.threads = (uint32_t)(PROTO_PERCENT_WHOLE / n);
    config_limits_tighten(to, &by);
}

/* ---- one resource: {request: ..., limit: ...} ---- */

enum resource { THREADS, TIME, MEMORY, HOST_MEMORY, RESOURCES };

static const struct dial {
    const char *name, *form;
    int (*parse)(const char *text, size_t length, struct dialect_amount *amount);
} dials[RESOURCES] = {
    [THREADS] = {"threads", DIALECT_FORM_SHARE, dialect_parse_share},
    [TIME] = {"time", DIALECT_FORM_SHARE, dialect_parse_share},
    [MEMORY] = {"memory", DIALECT_FORM_AMOUNT, dialect_parse_amount},
    [HOST_MEMORY] = {"host_memory", DIALECT_FORM_SIZE, dialect_parse_size},
};

/* A block while it is read. */
struct block {
    struct config_limits limits;
    unsigned line[RESOURCES]; /* of its request */
    uint64_t replicas;        /* 0: unsaid */
};

struct pair {
    const struct dial *dial;
    struct dialect_amount request, limit;
    unsigned line; /* of the request; 0: there is none */
};

static int refuse_amount(struct config_reader *reader, const struct config_node *value,
                         const struct pair *pair, const char *which, const char * or)
{
    bool text = value->kind == CONFIG_TEXT;
    return config_refuse(reader, value->line, "%s.%s%s%.64s%s must be %s%s", pair->dial->name,
                         which, text ? " \"" : "", value->text, text ? "\"" : "", pair->dial->form,
                         or);
}

/* That nothing may be reserved is said with a plain zero, of whatever unit. */
static bool is_zero(const struct config_node *value)
{
    return value->kind == CONFIG_TEXT && (!strcmp(value->text, "0") || !strcmp(value->text, "0%"));
}

static int read_request(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair *pair = to;
    pair->line = value->line;
    if (is_zero(value)) {
        pair->request.unit = pair->dial == &dials[HOST_MEMORY] ? DIALECT_BYTES : DIALECT_SHARE;
        return 0;
    }
    if (value->kind == CONFIG_TEXT &&
        !pair->dial->parse(value->text, value->length, &pair->request))
        return 0;
    return refuse_amount(reader, value, pair, "request", ", or 0 so that nothing is reserved");
}

static int read_limit(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair *pair = to;
    if (value->kind == CONFIG_TEXT && !pair->dial->parse(value->text, value->length, &pair->limit))
        return 0;
    return refuse_amount(reader, value, pair, "limit", "");
}

static int read_pair(struct config_reader *reader, const struct config_node *value,
                     enum resource resource, struct block *block, struct pair *pair)
{
    static const struct config_field fields[] = {{"request", read_request}, {"limit", read_limit}};
    struct config_table table = CONFIG_TABLE(fields, pair);
    *pair = (struct pair){.dial = &dials[resource]};
    const char *what = pair->dial->name;
    if (value->kind != CONFIG_MAP)
        return config_refuse(reader, value->line,
                             "%s must be a mapping: %s: {request: ..., limit: ...}", what, what);
    int result = config_reader_read_map(reader, value, what, &table, 1);
    if (pair->line)
        block->line[resource] = pair->line;
    return result;
}

static int read_threads(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair pair;
    struct block *block = to;
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, THREADS, block, &pair);
    by.threads = (uint32_t)pair.limit.value;
    if (pair.line)
        by.thread_request = (uint32_t)pair.request.value;
    config_limits_tighten(&block->limits, &by);
    return result;
}

static int read_time(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair pair;
    struct block *block = to;
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, TIME, block, &pair);
    by.time = (uint32_t)pair.limit.value;
    if (pair.line)
        by.time_request = (uint32_t)pair.request.value;
    config_limits_tighten(&block->limits, &by);
    if (!reader->config->time_line)
        reader->config->time_line = value->line;
    return result;
}

static int read_memory(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair pair;
    struct block *block = to;
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, MEMORY, block, &pair);
    if (pair.limit.unit == DIALECT_BYTES)
        by.memory = pair.limit.value;
    else
        by.memory_share = (uint32_t)pair.limit.value;
    if (pair.request.unit == DIALECT_BYTES)
        by.memory_request = pair.request.value;
    else if (pair.line)
        by.memory_request_share = (uint32_t)pair.request.value;
    config_limits_tighten(&block->limits, &by);
    return result;
}

static int read_host_memory(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair pair;
    struct block *block = to;
    struct config_limits by = config_limits_none;
    int result = read_pair(reader, value, HOST_MEMORY, block, &pair);
    if (pair.limit.unit)
        by.host_memory = pair.limit.value;
    if (pair.line)
        by.host_request = pair.request.value;
    config_limits_tighten(&block->limits, &by);
    return result;
}

/* ---- other spellings ---- */

/* Run:ai's: memory, and where time is shared, a guarantee of as much time. */
static int read_fraction(struct config_reader *reader, const struct config_node *value, void *to)
{
    char said[CONFIG_SAID];
    struct dialect_amount share;
    struct block *block = to;
    struct config_limits by = config_limits_none;
    if (value->kind != CONFIG_TEXT || dialect_parse_share(value->text, value->length, &share) < 0)
        return config_refuse(reader, value->line, "fraction must be %s%s", DIALECT_FORM_SHARE,
                             config_reader_said(value, said));
    by.memory_share = by.time_request = (uint32_t)share.value;
    block->line[TIME] = value->line;
    config_limits_tighten(&block->limits, &by);
    if (!reader->config->time_line)
        reader->config->time_line = value->line;
    return 0;
}

/* NVIDIA's for MPS: each of n gets one n-th of memory and threads. */
static int read_replicas(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct block *block = to;
    int result = config_reader_read_number(reader, value, "replicas", 1, CONFIG_REPLICAS_MAX,
                                           &block->replicas);
    if (result == 0)
        config_limits_replicate(&block->limits, block->replicas);
    return result;
}

static int read_priority(struct config_reader *reader, const struct config_node *value, void *to)
{
    uint64_t priority;
    struct block *block = to;
    struct config_limits by = config_limits_none;
    int result =
        config_reader_read_number(reader, value, "priority", 0, LIMITS_PRIORITY_MAX, &priority);
    if (result < 0)
        return result;
    by.priority = (uint32_t)priority;
    config_limits_tighten(&block->limits, &by);
    return 0;
}

/* ---- the block ---- */

static int check_replicas(struct config_reader *reader, const struct block *block)
{
    const struct config_limits *limits = &block->limits;
    uint32_t requests[RESOURCES] = {
        [THREADS] = limits->thread_request,
        [TIME] = limits->time_request,
        [MEMORY] = limits->memory_request_share,
        [HOST_MEMORY] = CONFIG_UNSAID,
    };
    for (int i = 0; i < RESOURCES; i++) {
        char each[UNITS_TEXT], all[UNITS_TEXT];
        uint64_t sum = requests[i] * block->replicas;
        if (requests[i] == CONFIG_UNSAID || sum <= PROTO_PERCENT_WHOLE)
            continue;
        return config_refuse(
            reader, block->line[i],
            "%s: %llu replicas that request %s %% each come to %s %%, and there are 100 %%",
            dials[i].name, (unsigned long long)block->replicas,
            units_format_percentage(requests[i], each),
            units_format_percentage((uint32_t)sum, all));
    }
    return 0;
}

static int check_request(struct config_reader *reader, const struct block *block,
                         enum resource resource, enum dialect_unit unit, uint64_t request,
                         uint64_t limit)
{
    char asked[UNITS_TEXT], most[UNITS_TEXT];
    if (request <= limit)
        return 0;
    return config_refuse(reader, block->line[resource], "%s: the request %s exceeds the limit %s",
                         dials[resource].name,
                         dialect_format((struct dialect_amount){unit, request}, asked),
                         dialect_format((struct dialect_amount){unit, limit}, most));
}

/* A share that nothing limits, or that nobody requests. */
static uint64_t limit_of(uint32_t share)
{
    return share ? share : PROTO_PERCENT_WHOLE;
}

static uint64_t request_of(uint32_t share)
{
    return share == CONFIG_UNSAID ? 0 : share;
}

/* What only the whole block shows. Sizes and shares of memory can't be compared here. */
static int block_check(struct config_reader *reader, const struct block *block)
{
    const struct config_limits *limits = &block->limits;
    uint64_t memory = limits->memory_request == PROTO_UNSET ? 0 : limits->memory_request;
    uint64_t host = limits->host_request == PROTO_UNSET ? 0 : limits->host_request;
    int result = check_replicas(reader, block);
    if (result == 0)
        result = check_request(reader, block, THREADS, DIALECT_SHARE,
                               request_of(limits->thread_request), limit_of(limits->threads));
    if (result == 0)
        result = check_request(reader, block, TIME, DIALECT_SHARE, request_of(limits->time_request),
                               limit_of(limits->time));
    if (result == 0)
        result =
            check_request(reader, block, MEMORY, DIALECT_SHARE,
                          request_of(limits->memory_request_share), limit_of(limits->memory_share));
    if (result == 0)
        result = check_request(reader, block, MEMORY, DIALECT_BYTES, memory, limits->memory);
    if (result == 0)
        result =
            check_request(reader, block, HOST_MEMORY, DIALECT_BYTES, host, limits->host_memory);
    return result;
}

int config_limits_read(struct config_reader *reader, const struct config_node *map,
                       const char *what, const struct config_table *other, struct config_limits *to)
{
    static const struct config_field fields[] = {
        {"threads", read_threads},   {"memory", read_memory},     {"host_memory", read_host_memory},
        {"time", read_time},         {"fraction", read_fraction}, {"replicas", read_replicas},
        {"priority", read_priority},
    };
    struct block block = {.limits = config_limits_none};
    struct config_table tables[] = {CONFIG_TABLE(fields, &block), {0}};
    if (other) {
        tables[1] = tables[0];
        tables[0] = *other;
    }
    int result = config_reader_read_map(reader, map, what, tables, other ? 2 : 1);
    if (result == 0)
        result = block_check(reader, &block);
    *to = block.limits;
    return result;
}

/* ---- totals ---- */

static int refuse_request(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair *pair = to;
    return config_refuse(reader, value->line,
                         "%s.request is of one client: clients together have a limit only",
                         pair->dial->name);
}

static int read_total(struct config_reader *reader, const struct config_node *value,
                      enum resource resource, struct pair *pair)
{
    static const struct config_field fields[] = {{"limit", read_limit},
                                                 {"request", refuse_request}};
    struct config_table table = CONFIG_TABLE(fields, pair);
    *pair = (struct pair){.dial = &dials[resource]};
    const char *what = pair->dial->name;
    if (value->kind != CONFIG_MAP)
        return config_refuse(reader, value->line, "%s must be a mapping: %s: {limit: ...}", what,
                             what);
    return config_reader_read_map(reader, value, what, &table, 1);
}

static int read_total_memory(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    struct pair pair;
    struct config_limits *limits = to;
    int result = read_total(reader, value, MEMORY, &pair);
    if (pair.limit.unit == DIALECT_BYTES)
        limits->memory = pair.limit.value;
    else
        limits->memory_share = (uint32_t)pair.limit.value;
    return result;
}

static int read_total_host(struct config_reader *reader, const struct config_node *value, void *to)
{
    struct pair pair;
    struct config_limits *limits = to;
    int result = read_total(reader, value, HOST_MEMORY, &pair);
    if (pair.limit.unit)
        limits->host_memory = pair.limit.value;
    return result;
}

const struct config_field config_total_fields[2] = {{"memory", read_total_memory},
                                                    {"host_memory", read_total_host}};
