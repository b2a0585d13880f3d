/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/limit_members.h"

#include <stddef.h>

#define ROW(member)                                                                                \
    {                                                                                              \
#member, offsetof(struct gpushare_options, member),                                        \
            offsetof(struct gpushare_limits, member##_asked),                                      \
            offsetof(struct gpushare_limits, member)                                               \
    }

static const struct limit_members rows[RESOURCES][2] = {
    [RESOURCE_THREADS] =
        {[ALLOWANCE_REQUEST] = ROW(thread_request), [ALLOWANCE_LIMIT] = ROW(thread_percentage)},
    [RESOURCE_TIME] =
        {[ALLOWANCE_REQUEST] = ROW(time_request), [ALLOWANCE_LIMIT] = ROW(time_limit)},
    [RESOURCE_MEMORY] =
        {[ALLOWANCE_REQUEST] = ROW(memory_request), [ALLOWANCE_LIMIT] = ROW(memory_limit)},
    [RESOURCE_HOST_MEMORY] = {[ALLOWANCE_REQUEST] = ROW(host_memory_request),
                              [ALLOWANCE_LIMIT] = ROW(host_memory_limit)},
};

#define SCALAR_ROW(member)                                                                         \
    {                                                                                              \
        .of = ROW(member), .bytes = sizeof(((struct gpushare_options *)NULL)->member)              \
    }

/* The members of a scalar, each a uint32_t or a uint64_t. */
static const struct {
    struct limit_members of;
    size_t bytes;
} scalars[SCALARS] = {
    [SCALAR_PRIORITY] = SCALAR_ROW(priority),
    [SCALAR_KERNEL_TIME] = SCALAR_ROW(kernel_time_limit),
};

const struct limit_members *limit_members(enum resource resource, enum allowance_bound bound)
{
    return &rows[resource][bound];
}

static void write_scalar(char *member, enum scalar scalar, uint64_t value)
{
    uint64_t said = value == ALLOWANCE_UNSET ? 0 : value;
    if (scalars[scalar].bytes == sizeof(uint32_t))
        *(uint32_t *)(void *)member = (uint32_t)said;
    else
        *(uint64_t *)(void *)member = said;
}

static uint64_t read_scalar(const char *member, enum scalar scalar)
{
    return scalars[scalar].bytes == sizeof(uint32_t) ? *(const uint32_t *)(const void *)member
                                                     : *(const uint64_t *)(const void *)member;
}

uint64_t limit_members_option(const struct gpushare_options *options, enum scalar scalar)
{
    return read_scalar((const char *)options + scalars[scalar].of.option, scalar);
}

static void write_value(char *member, enum dialect_unit unit, uint64_t value)
{
    uint64_t said = value == ALLOWANCE_UNSET ? 0 : value;
    if (unit == DIALECT_BYTES)
        *(uint64_t *)(void *)member = said;
    else
        *(double *)(void *)member = (double)said / 100;
}

static uint64_t read_value(const char *member, enum dialect_unit unit)
{
    if (unit == DIALECT_BYTES)
        return *(const uint64_t *)(const void *)member;
    return (uint64_t)(*(const double *)(const void *)member * 100 + 0.5);
}

void limit_members_write(struct gpushare_limits *limits, const struct proto_allowance *asked,
                         const struct proto_allowance *granted)
{
    static const struct proto_allowance_sources unsaid;
    const struct allowance from = allowance_from_wire(asked, &unsaid);
    const struct allowance to = allowance_from_wire(granted, &unsaid);
    char *base = (char *)limits;
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct limit_members *request = &rows[i][ALLOWANCE_REQUEST];
        const struct limit_members *limit = &rows[i][ALLOWANCE_LIMIT];
        enum dialect_unit unit = allowance_resource(i)->unit;
        write_value(base + request->asked, unit, from.of[i].request);
        write_value(base + request->granted, unit, to.of[i].request);
        write_value(base + limit->asked, unit, from.of[i].limit);
        write_value(base + limit->granted, unit, to.of[i].limit);
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        write_scalar(base + scalars[i].of.asked, i, from.scalar[i]);
        write_scalar(base + scalars[i].of.granted, i, to.scalar[i]);
    }
}

static uint64_t unset_if_zero(uint64_t asked)
{
    return asked ? asked : ALLOWANCE_UNSET;
}

void limit_members_read(const struct gpushare_limits *limits, struct allowance *asked,
                        struct allowance *granted)
{
    const char *base = (const char *)limits;
    *asked = *granted = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct limit_members *request = &rows[i][ALLOWANCE_REQUEST];
        const struct limit_members *limit = &rows[i][ALLOWANCE_LIMIT];
        enum dialect_unit unit = allowance_resource(i)->unit;
        asked->of[i].request = unset_if_zero(read_value(base + request->asked, unit));
        asked->of[i].limit = unset_if_zero(read_value(base + limit->asked, unit));
        granted->of[i].request = read_value(base + request->granted, unit);
        granted->of[i].limit = read_value(base + limit->granted, unit);
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        asked->scalar[i] = allowance_scalar_said(i, read_scalar(base + scalars[i].of.asked, i));
        granted->scalar[i] = read_scalar(base + scalars[i].of.granted, i);
    }
}
