/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/limits.h"

#include <string.h>

#include "common/limits/allowance.h"
#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/units.h"
#include "server/supervisor/config/config.h"

static struct allowance_source by_line(unsigned line)
{
    return (struct allowance_source){ALLOWANCE_BY_FILE, line};
}

void config_limits_replicate(struct allowance *to, uint64_t n, unsigned line)
{
    struct allowance by = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->divided)
            allowance_put(&by, i, ALLOWANCE_LIMIT,
                          (struct dialect_amount){DIALECT_SHARE, ALLOWANCE_WHOLE / n});
    allowance_attribute(&by, by_line(line));
    allowance_tighten(to, &by);
}

/* ---- one resource: {request: ..., limit: ...} ---- */

/* A block that is being read. */
struct block {
    struct allowance limits;
    unsigned line[RESOURCES]; /* of each resource's request */
    uint64_t replicas;        /* 0: the block does not say it */
};

/* One resource of a block or of a total that is being read. */
struct entry {
    enum resource resource;
    struct allowance *limits;
    unsigned *line; /* set to the request's line */
    bool total;
};

static const char *name_of(const struct entry *entry)
{
    return allowance_resource(entry->resource)->name;
}

static uint32_t read_bound(struct config_reader *reader, const struct config_node *value,
                           const struct entry *entry, enum allowance_bound bound)
{
    struct dialect_amount amount;
    struct allowance by = allowance_none;
    bool text = value->kind == CONFIG_TEXT, request = bound == ALLOWANCE_REQUEST;
    if (text && !allowance_parse(entry->resource, bound, value->text, value->length, &amount)) {
        allowance_put(&by, entry->resource, bound, amount);
        allowance_attribute(&by, by_line(value->line));
        allowance_tighten(entry->limits, &by);
        return 0;
    }
    const char *name = name_of(entry), *form = allowance_resource(entry->resource)->form;
    char room[DIALECT_FORM_ROOM];
    if (text)
        form = allowance_form(entry->resource, value->text, room);
    if (!text)
        return request ? config_refuse(reader, value->line, MESSAGE(config_bound_request_form),
                                       name, form)
                       : config_refuse(reader, value->line, MESSAGE(config_bound_form), name, form);
    if (request)
        return config_refuse(reader, value->line, MESSAGE(config_bound_request), name, value->text,
                             form);
    return config_refuse(reader, value->line, MESSAGE(config_bound), name, value->text, form);
}

static uint32_t read_request(struct config_reader *reader, const struct config_node *value,
                             void *to)
{
    const struct entry *entry = to;
    if (entry->total && !allowance_resource(entry->resource)->by_worker)
        return config_refuse(reader, value->line, MESSAGE(config_total_request), name_of(entry));
    *entry->line = value->line;
    return read_bound(reader, value, entry, ALLOWANCE_REQUEST);
}

static uint32_t read_limit(struct config_reader *reader, const struct config_node *value, void *to)
{
    return read_bound(reader, value, to, ALLOWANCE_LIMIT);
}

static uint32_t read_resource_limits(struct config_reader *reader, const struct config_node *value,
                                     void *to)
{
    static const struct config_field block[] = {{"request", read_request}, {"limit", read_limit}};
    static const struct config_field total[] = {{"limit", read_limit}, {"request", read_request}};
    const struct entry *entry = to;
    struct config_table table = {entry->total ? total : block, 2, to};
    const char *name = name_of(entry);
    if (value->kind != CONFIG_MAP)
        return entry->total
                   ? config_refuse(reader, value->line, MESSAGE(config_total_mapping), name, name)
                   : config_refuse(reader, value->line, MESSAGE(config_resource_mapping), name,
                                   name);
    if (entry->resource == RESOURCE_TIME && !reader->config->time_line)
        reader->config->time_line = value->line;
    return config_reader_read_map(reader, value, name, &table, 1);
}

/* The tables of a mapping with a key for each resource, in the order in which a sentence lists
 * them. */
struct resource_tables {
    struct config_field fields[RESOURCES];
    struct entry entries[RESOURCES];
};

static size_t resource_tables_fill(struct resource_tables *resources, struct config_table *tables,
                                   struct block *block, const struct config_totals *total)
{
    size_t count = 0;
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *row = allowance_resource(i);
        if (total && (!row->has_total || (total->by_worker && !row->by_worker)))
            continue;
        resources->entries[i] = (struct entry){i, &block->limits, &block->line[i], total != NULL};
        resources->fields[i] =
            (struct config_field){allowance_resource(i)->name, read_resource_limits};
        tables[count++] = (struct config_table){&resources->fields[i], 1, &resources->entries[i]};
    }
    return count;
}

/* ---- other spellings ---- */

/* Run:ai's: memory, and where time is shared, a guarantee of as much time. */
static uint32_t read_fraction_key(struct config_reader *reader, const struct config_node *value,
                                  void *to)
{
    struct dialect_amount share;
    struct block *block = to;
    struct allowance by = allowance_none;
    if (value->kind != CONFIG_TEXT)
        return config_refuse(reader, value->line, MESSAGE(config_fraction), DIALECT_FORM_SHARE);
    if (dialect_parse_share(value->text, value->length, &share) < 0)
        return config_refuse(reader, value->line, MESSAGE(config_fraction_not), DIALECT_FORM_SHARE,
                             value->text);
    by.part[RESOURCE_MEMORY].limit = by.time.request = share.value;
    allowance_attribute(&by, by_line(value->line));
    block->line[RESOURCE_TIME] = value->line;
    allowance_tighten(&block->limits, &by);
    if (!reader->config->time_line)
        reader->config->time_line = value->line;
    return 0;
}

/* NVIDIA's for MPS: each of n gets one n-th of memory and threads. */
static uint32_t read_replicas(struct config_reader *reader, const struct config_node *value,
                              void *to)
{
    struct block *block = to;
    uint32_t error = config_reader_read_number(reader, value, "replicas", 1, CONFIG_REPLICAS_MAX,
                                               &block->replicas);
    if (!error)
        config_limits_replicate(&block->limits, block->replicas, value->line);
    return error;
}

/* ---- scalars ---- */

/* One scalar of a block that is being read. */
struct single {
    enum scalar scalar;
    struct allowance *limits;
};

static uint32_t read_number(struct config_reader *reader, const struct config_node *value,
                            const struct allowance_scalar *row, uint64_t *number)
{
    return config_reader_read_number(reader, value, row->name, row->least, row->most, number);
}

static uint32_t read_time(struct config_reader *reader, const struct config_node *value,
                          enum scalar scalar, uint64_t *ns)
{
    const struct allowance_scalar *row = allowance_scalar(scalar);
    if (value->kind != CONFIG_TEXT)
        return config_refuse(reader, value->line, MESSAGE(config_kernel_time_form), row->name,
                             row->form);
    if (allowance_parse_scalar(scalar, value->text, value->length, ns) < 0)
        return config_refuse(reader, value->line, MESSAGE(config_kernel_time), row->name, row->form,
                             value->text);
    return 0;
}

static uint32_t read_scalar(struct config_reader *reader, const struct config_node *value, void *to)
{
    const struct single *single = to;
    const struct allowance_scalar *row = allowance_scalar(single->scalar);
    struct allowance by = allowance_none;
    uint64_t *read = &by.scalar[single->scalar];
    uint32_t error = row->unit == ALLOWANCE_TIME ? read_time(reader, value, single->scalar, read)
                                                 : read_number(reader, value, row, read);
    if (error)
        return error;
    allowance_attribute(&by, by_line(value->line));
    allowance_tighten(single->limits, &by);
    return 0;
}

/* The tables of a mapping with a key for each scalar. */
struct scalar_tables {
    struct config_field fields[SCALARS];
    struct single singles[SCALARS];
};

static size_t scalar_tables_fill(struct scalar_tables *scalars, struct config_table *tables,
                                 struct allowance *limits)
{
    for (enum scalar i = 0; i < SCALARS; i++) {
        scalars->singles[i] = (struct single){i, limits};
        scalars->fields[i] = (struct config_field){allowance_scalar(i)->name, read_scalar};
        tables[i] = (struct config_table){&scalars->fields[i], 1, &scalars->singles[i]};
    }
    return SCALARS;
}

/* ---- the block ---- */

static uint64_t request_as_part(const struct allowance *limits, enum resource resource)
{
    return allowance_resource(resource)->unit == DIALECT_SHARE ? limits->of[resource].request
                                                               : limits->part[resource].request;
}

static uint32_t check_replicas(struct config_reader *reader, const struct block *block)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        char each[UNITS_TEXT], all[UNITS_TEXT];
        uint64_t request = request_as_part(&block->limits, i);
        uint64_t sum = request * block->replicas;
        if (request == ALLOWANCE_UNSET || sum <= ALLOWANCE_WHOLE)
            continue;
        return config_refuse(reader, block->line[i], MESSAGE(config_replicas_sum),
                             allowance_resource(i)->name, (unsigned long long)block->replicas,
                             units_format_percentage((uint32_t)request, each),
                             units_format_percentage((uint32_t)sum, all));
    }
    return 0;
}

/* A size for people, rounded; a share as it is written. */
static void format_amount(struct dialect_amount amount, char text[UNITS_TEXT])
{
    if (amount.unit == DIALECT_BYTES)
        units_format_bytes(amount.value, text);
    else
        dialect_format(amount, text);
}

/* Checks that need the whole block. Sizes and shares of memory can't be compared here. */
static uint32_t block_check(struct config_reader *reader, const struct block *block)
{
    struct allowance_excess excess;
    char asked[UNITS_TEXT], limit[UNITS_TEXT];
    uint32_t error = check_replicas(reader, block);
    if (error || !allowance_exceeds(&block->limits, &excess))
        return error;
    format_amount(excess.request, asked);
    format_amount(excess.limit, limit);
    /* Rounded sizes that look the same would not show the mistake. */
    if (strcmp(asked, limit) == 0) {
        dialect_format(excess.request, asked);
        dialect_format(excess.limit, limit);
    }
    return config_refuse(reader, block->line[excess.resource], MESSAGE(config_request_over_limit),
                         allowance_resource(excess.resource)->name, asked, limit);
}

uint32_t config_limits_read(struct config_reader *reader, const struct config_node *map,
                            const char *what, const struct config_table *other,
                            struct allowance *to)
{
    static const struct config_field fields[] = {
        {"fraction", read_fraction_key},
        {"replicas", read_replicas},
    };
    struct block block = {.limits = allowance_none};
    struct resource_tables resources;
    struct scalar_tables scalars;
    struct config_table tables[RESOURCES + SCALARS + 2];
    size_t count = 0;
    if (other)
        tables[count++] = *other;
    count += resource_tables_fill(&resources, tables + count, &block, NULL);
    tables[count++] = (struct config_table)CONFIG_TABLE(fields, &block);
    count += scalar_tables_fill(&scalars, tables + count, &block.limits);
    uint32_t error = config_reader_read_map(reader, map, what, tables, count);
    if (!error)
        error = block_check(reader, &block);
    *to = block.limits;
    return error;
}

uint32_t config_limits_read_total(struct config_reader *reader, const struct config_node *map,
                                  const struct config_totals *totals, struct allowance *to)
{
    struct block block = {.limits = allowance_none};
    struct resource_tables resources;
    struct config_table tables[RESOURCES + 1] = {totals->id};
    size_t count = 1 + resource_tables_fill(&resources, tables + 1, &block, totals);
    uint32_t error = config_reader_read_map(reader, map, totals->what, tables, count);
    if (!error)
        error = block_check(reader, &block);
    *to = block.limits;
    return error;
}
