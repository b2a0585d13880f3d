/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/schedule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits/dialect.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"

/* Shorter times would be over before a busy machine has run a healthy worker. */
#define LIMIT_LEAST_NS      (100 * UNITS_MS)
#define DEPARTED_LIMIT_NS   (10000 * UNITS_MS)
#define WATCHDOG_WARNING_NS (2000 * UNITS_MS)
#define WATCHDOG_LIMIT_NS   (10000 * UNITS_MS)
/* The driver's own start takes seconds, many where several GPUs start at once: a worker that
 * starts may be silent for so many times the watchdog's limit. */
#define START_LIMITS 12

/* NVIDIA's classes of time slices, by their numbers. */
static const struct {
    const char *name;
    uint64_t lease_ns;
} classes[] = {{"default", PROTO_LEASE_DEFAULT},
               {"short", 10 * UNITS_MS},
               {"medium", 100 * UNITS_MS},
               {"long", 1000 * UNITS_MS}};

static const struct {
    const char *name;
    enum schedule_part part;
    const char *form;
} parts[] = {
    {"mode", SCHEDULE_MODE, SCHEDULE_FORM_MODE},
    {"lease", SCHEDULE_LEASE, SCHEDULE_FORM_LEASE},
    {"precision", SCHEDULE_PRECISION, SCHEDULE_FORM_PRECISION},
    {"quantum", SCHEDULE_QUANTUM, SCHEDULE_FORM_QUANTUM},
    {"window_limit", SCHEDULE_WINDOW_LIMIT, SCHEDULE_FORM_WINDOW_LIMIT},
    {"local_memory", SCHEDULE_LOCAL_MEMORY, SCHEDULE_FORM_LOCAL_MEMORY},
    {"departed_time_limit", SCHEDULE_DEPARTED_LIMIT, SCHEDULE_FORM_LIMIT},
    {"watchdog_warning", SCHEDULE_WATCHDOG_WARNING, SCHEDULE_FORM_LIMIT},
    {"watchdog_limit", SCHEDULE_WATCHDOG_LIMIT, SCHEDULE_FORM_LIMIT},
    {"standby", SCHEDULE_STANDBY, SCHEDULE_FORM_STANDBY},
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

const char *schedule_standby_name(enum schedule_standby standby)
{
    static const char *const names[SCHEDULE_STANDBYS] = {"none", "driver", "context"};
    return names[standby];
}

struct schedule schedule_default(void)
{
    return (struct schedule){.mode = PROTO_MODE_CONCURRENT,
                             .precision = PROTO_PRECISION_DEFAULT,
                             .lease_ns = PROTO_LEASE_DEFAULT,
                             .quantum_ns = PROTO_QUANTUM_DEFAULT,
                             .window_limit_ns = PROTO_WINDOW_LIMIT_DEFAULT,
                             .local_memory = PROTO_LOCAL_MEMORY_DEFAULT,
                             .departed_limit_ns = DEPARTED_LIMIT_NS,
                             .watchdog_warning_ns = WATCHDOG_WARNING_NS,
                             .watchdog_limit_ns = WATCHDOG_LIMIT_NS};
}

bool schedule_time_enforced(enum proto_mode mode)
{
    return mode == PROTO_MODE_STRICT || mode == PROTO_MODE_FAIR;
}

static bool word_equals(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

unsigned schedule_part_of(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(parts); i++)
        if (word_equals(parts[i].name, name, length))
            return parts[i].part;
    return 0;
}

const char *schedule_part_name(unsigned which, size_t index)
{
    for (size_t i = 0; i < COUNT(parts); i++)
        if ((which & parts[i].part) && index-- == 0)
            return parts[i].name;
    return NULL;
}

static int read_mode(const char *text, size_t length, enum proto_mode *mode)
{
    for (uint32_t i = 0; i < PROTO_MODE_COUNT; i++) {
        if (word_equals(proto_mode_name(i), text, length)) {
            *mode = (enum proto_mode)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_standby(const char *text, size_t length, enum schedule_standby *standby)
{
    for (unsigned i = 0; i < SCHEDULE_STANDBYS; i++) {
        if (word_equals(schedule_standby_name((enum schedule_standby)i), text, length)) {
            *standby = (enum schedule_standby)i;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_time(const char *text, size_t length, uint64_t least, uint64_t most, uint64_t *ns)
{
    uint64_t read;
    int result = units_parse_duration(text, length, &read);
    if (result == 0 && (read < least || read > most))
        result = -ERANGE;
    if (result == 0)
        *ns = read;
    return result;
}

int schedule_read_limit(const char *text, size_t length, uint64_t *ns)
{
    if (word_equals("0", text, length)) {
        *ns = 0;
        return 0;
    }
    return read_time(text, length, LIMIT_LEAST_NS, PROTO_WORKER_SCHEDULE_DEPARTED_LIMIT_MAX, ns);
}

static int read_lease(const char *text, size_t length, uint64_t *ns)
{
    for (size_t i = 0; i < COUNT(classes); i++) {
        const char number[2] = {(char)('0' + i), '\0'};
        if (word_equals(classes[i].name, text, length) || word_equals(number, text, length)) {
            *ns = classes[i].lease_ns;
            return 0;
        }
    }
    return read_time(text, length, PROTO_WORKER_SCHEDULE_LEASE_MIN, PROTO_WORKER_SCHEDULE_LEASE_MAX,
                     ns);
}

static int read_precision(const char *text, size_t length, uint32_t *precision)
{
    struct dialect_amount amount;
    int result = dialect_parse_share(text, length, &amount);
    if (result == 0 && (amount.value < PROTO_WORKER_SCHEDULE_PRECISION_MIN ||
                        amount.value > PROTO_WORKER_SCHEDULE_PRECISION_MAX))
        result = -ERANGE;
    if (result == 0)
        *precision = (uint32_t)amount.value;
    return result;
}

static int read_local_memory(const char *text, size_t length, uint64_t *bytes)
{
    uint64_t read;
    int result = units_parse_size(text, length, &read);
    if (result == 0 && (read < PROTO_WORKER_SCHEDULE_LOCAL_MEMORY_MIN ||
                        read > PROTO_WORKER_SCHEDULE_LOCAL_MEMORY_MAX))
        result = -ERANGE;
    if (result == 0)
        *bytes = read;
    return result;
}

uint32_t schedule_set(struct schedule *schedule, enum schedule_part part, const char *value,
                      size_t length, struct error *why)
{
    int result = -EINVAL;
    if (part == SCHEDULE_MODE)
        result = read_mode(value, length, &schedule->mode);
    else if (part == SCHEDULE_LEASE)
        result = read_lease(value, length, &schedule->lease_ns);
    else if (part == SCHEDULE_PRECISION)
        result = read_precision(value, length, &schedule->precision);
    else if (part == SCHEDULE_QUANTUM)
        result = read_time(value, length, PROTO_WORKER_SCHEDULE_QUANTUM_MIN,
                           PROTO_WORKER_SCHEDULE_QUANTUM_MAX, &schedule->quantum_ns);
    else if (part == SCHEDULE_WINDOW_LIMIT)
        result = read_time(value, length, PROTO_WORKER_SCHEDULE_WINDOW_LIMIT_MIN,
                           PROTO_WORKER_SCHEDULE_WINDOW_LIMIT_MAX, &schedule->window_limit_ns);
    else if (part == SCHEDULE_LOCAL_MEMORY)
        result = read_local_memory(value, length, &schedule->local_memory);
    else if (part == SCHEDULE_DEPARTED_LIMIT)
        result = schedule_read_limit(value, length, &schedule->departed_limit_ns);
    else if (part == SCHEDULE_WATCHDOG_WARNING)
        result = schedule_read_limit(value, length, &schedule->watchdog_warning_ns);
    else if (part == SCHEDULE_WATCHDOG_LIMIT)
        result = schedule_read_limit(value, length, &schedule->watchdog_limit_ns);
    else if (part == SCHEDULE_STANDBY)
        result = read_standby(value, length, &schedule->standby);
    for (size_t i = 0; result < 0 && i < COUNT(parts); i++)
        if (parts[i].part == part)
            return error_set(why, MESSAGE(schedule_value), parts[i].name,
                             (int)min(length, (size_t)48), value, parts[i].form);
    return 0;
}

void schedule_merge(struct schedule *schedule, const struct schedule *from, unsigned which)
{
    if (which & SCHEDULE_MODE)
        schedule->mode = from->mode;
    if (which & SCHEDULE_LEASE)
        schedule->lease_ns = from->lease_ns;
    if (which & SCHEDULE_PRECISION)
        schedule->precision = from->precision;
    if (which & SCHEDULE_QUANTUM)
        schedule->quantum_ns = from->quantum_ns;
    if (which & SCHEDULE_WINDOW_LIMIT)
        schedule->window_limit_ns = from->window_limit_ns;
    if (which & SCHEDULE_LOCAL_MEMORY)
        schedule->local_memory = from->local_memory;
    if (which & SCHEDULE_DEPARTED_LIMIT)
        schedule->departed_limit_ns = from->departed_limit_ns;
    if (which & SCHEDULE_WATCHDOG_WARNING)
        schedule->watchdog_warning_ns = from->watchdog_warning_ns;
    if (which & SCHEDULE_WATCHDOG_LIMIT)
        schedule->watchdog_limit_ns = from->watchdog_limit_ns;
    if (which & SCHEDULE_STANDBY)
        schedule->standby = from->standby;
    if (which & SCHEDULE_PARTITION_SIZES)
        memcpy(schedule->partition_sizes, from->partition_sizes, sizeof schedule->partition_sizes);
}

unsigned schedule_differs(const struct schedule *a, const struct schedule *b)
{
    return (a->mode != b->mode ? SCHEDULE_MODE : 0) |
           (a->lease_ns != b->lease_ns ? SCHEDULE_LEASE : 0) |
           (a->precision != b->precision ? SCHEDULE_PRECISION : 0) |
           (a->quantum_ns != b->quantum_ns ? SCHEDULE_QUANTUM : 0) |
           (a->window_limit_ns != b->window_limit_ns ? SCHEDULE_WINDOW_LIMIT : 0) |
           (a->local_memory != b->local_memory ? SCHEDULE_LOCAL_MEMORY : 0) |
           (a->departed_limit_ns != b->departed_limit_ns ? SCHEDULE_DEPARTED_LIMIT : 0) |
           (a->watchdog_warning_ns != b->watchdog_warning_ns ? SCHEDULE_WATCHDOG_WARNING : 0) |
           (a->watchdog_limit_ns != b->watchdog_limit_ns ? SCHEDULE_WATCHDOG_LIMIT : 0) |
           (a->standby != b->standby ? SCHEDULE_STANDBY : 0) |
           (memcmp(a->partition_sizes, b->partition_sizes, sizeof a->partition_sizes)
                ? SCHEDULE_PARTITION_SIZES
                : 0);
}

uint64_t schedule_start_limit_ns(const struct schedule *schedule)
{
    return saturating_mul(START_LIMITS, schedule->watchdog_limit_ns);
}

static const char *format_limit(uint64_t ns, char text[UNITS_TEXT])
{
    return ns ? units_format_duration(ns, text) : "0";
}

const char *schedule_format(const struct schedule *schedule, char *text, size_t size)
{
    char lease[UNITS_TEXT], precision[UNITS_TEXT], quantum[UNITS_TEXT], window[UNITS_TEXT],
        local[UNITS_TEXT], departed[UNITS_TEXT], warning[UNITS_TEXT], limit[UNITS_TEXT];
    snprintf(text, size,
             "mode %s, lease %s, precision %s%%, quantum %s, window_limit %s, local_memory %s, "
             "departed_time_limit %s, watchdog_warning %s, watchdog_limit %s, standby %s",
             proto_mode_name(schedule->mode), units_format_duration(schedule->lease_ns, lease),
             units_format_percentage(schedule->precision, precision),
             units_format_duration(schedule->quantum_ns, quantum),
             units_format_duration(schedule->window_limit_ns, window),
             units_format_size(schedule->local_memory, local),
             format_limit(schedule->departed_limit_ns, departed),
             format_limit(schedule->watchdog_warning_ns, warning),
             format_limit(schedule->watchdog_limit_ns, limit),
             schedule_standby_name(schedule->standby));
    return text;
}

struct proto_worker_schedule schedule_message(const struct schedule *schedule)
{
    struct proto_worker_schedule message = {.mode = schedule->mode,
                                            .precision = schedule->precision,
                                            .lease = schedule->lease_ns,
                                            .quantum = schedule->quantum_ns,
                                            .window_limit = schedule->window_limit_ns,
                                            .local_memory = schedule->local_memory,
                                            .departed_limit = schedule->departed_limit_ns};
    _Static_assert(sizeof message.partition_sizes == sizeof schedule->partition_sizes,
                   "the same sizes");
    memcpy(message.partition_sizes, schedule->partition_sizes, sizeof message.partition_sizes);
    return message;
}
