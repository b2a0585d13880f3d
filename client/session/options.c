/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/options.h"

#include "client/session/limit_members.h"
#include "client/session/failure.h"
#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"

static uint64_t to_hundredths(double percentage)
{
    return (uint64_t)(percentage * 100 + 0.5);
}

/* Written so that a NaN is refused. */
static gpushare_error read_share(const struct limit_members *row, double percentage,
                                 struct dialect_amount *amount)
{
    if (row == limit_members(RESOURCE_THREADS, ALLOWANCE_LIMIT) &&
        !(percentage >= 1 && percentage <= 100))
        return failure(MESSAGE(options_thread_percentage), percentage);
    if (!(percentage >= 0.01 && percentage <= 100))
        return failure(MESSAGE(options_share), row->name, percentage);
    *amount = (struct dialect_amount){DIALECT_SHARE, to_hundredths(percentage)};
    return GPUSHARE_SUCCESS;
}

static gpushare_error read_row(const struct gpushare_options *options, enum resource resource,
                               enum allowance_bound bound, struct allowance *allowance)
{
    const struct limit_members *row = limit_members(resource, bound);
    const char *member = (const char *)options + row->option;
    struct dialect_amount amount = {0};
    gpushare_error error = GPUSHARE_SUCCESS;
    if (allowance_resource(resource)->unit == DIALECT_BYTES) {
        uint64_t bytes = *(const uint64_t *)(const void *)member;
        /* The largest number is how an allowance says that nothing is asked for. */
        uint64_t asked = min(bytes, ALLOWANCE_UNSET - 1);
        if (bytes)
            amount = (struct dialect_amount){DIALECT_BYTES, asked};
    } else {
        double percentage = *(const double *)(const void *)member;
        if (percentage != 0)
            error = read_share(row, percentage, &amount);
    }
    allowance_put(allowance, resource, bound, amount);
    return error;
}

static gpushare_error read_scalar(const struct gpushare_options *options, enum scalar scalar,
                                  struct allowance *allowance)
{
    const struct allowance_scalar *row = allowance_scalar(scalar);
    uint64_t value = limit_members_option(options, scalar);
    if ((value || !row->least) && (value < row->least || value > row->most))
        return row->unit == ALLOWANCE_TIME
                   ? failure(MESSAGE(options_kernel_time), row->name, (unsigned long long)value,
                             row->form)
                   : failure(MESSAGE(options_priority), row->name, (unsigned long long)value,
                             (unsigned long long)row->least, (unsigned long long)row->most);
    allowance->scalar[scalar] = allowance_scalar_said(scalar, value);
    return GPUSHARE_SUCCESS;
}

static gpushare_error read_option_fraction(double fraction, struct allowance *allowance)
{
    struct allowance by = allowance_none;
    if (!(fraction >= 0 && fraction <= 1))
        return failure(MESSAGE(options_fraction), fraction);
    if (fraction == 0)
        return GPUSHARE_SUCCESS;
    if (fraction < 0.0001)
        return failure(MESSAGE(options_fraction_small), fraction);
    by.part[RESOURCE_MEMORY].limit = by.time.request = to_hundredths(fraction * 100);
    allowance_tighten(allowance, &by);
    return GPUSHARE_SUCCESS;
}

static gpushare_error refuse_above_limit(const struct allowance_excess *excess)
{
    char asked[UNITS_TEXT], limit[UNITS_TEXT];
    const char *name = limit_members(excess->resource, ALLOWANCE_REQUEST)->name;
    if (excess->request.unit == DIALECT_SHARE)
        return failure(MESSAGE(options_share_request), name, (double)excess->request.value / 100,
                       (double)excess->limit.value / 100);
    return failure(MESSAGE(options_memory_request), name, dialect_format(excess->request, asked),
                   dialect_format(excess->limit, limit));
}

gpushare_error options_read(const struct gpushare_options *options, struct allowance *allowance)
{
    const struct allowance_source source = {ALLOWANCE_BY_SELF, PROTO_SOURCE_OPTIONS};
    struct allowance_excess excess;
    gpushare_error error;
    *allowance = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++)
        for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++)
            if ((error = read_row(options, i, bound, allowance)))
                return error;
    if ((error = read_option_fraction(options->fraction, allowance)))
        return error;
    for (enum scalar i = 0; i < SCALARS; i++)
        if ((error = read_scalar(options, i, allowance)))
            return error;
    if (allowance_exceeds(allowance, &excess))
        return refuse_above_limit(&excess);
    allowance_attribute(allowance, source);
    return GPUSHARE_SUCCESS;
}
