/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * schedule: how the clients of one device share it, as administrators write it.
 *
 * The parts of a schedule are mode, lease, precision, quantum, window_limit, local_memory,
 * departed_time_limit, watchdog_warning, watchdog_limit and standby. They have these names in the
 * configuration, on command lines and in JSON. The message worker_schedule tells a worker of them
 * and has their ranges. The last three are the supervisor's alone. The sizes of partitions
 * are nobody's to write: they follow from the limits of a configuration (sizes.h), and are told to
 * the worker with the rest. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_SCHEDULE_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/units.h"
#include "protocol.h"

/* The parts of a schedule, as bits. */
enum schedule_part {
    SCHEDULE_MODE = 1,
    SCHEDULE_LEASE = 2,
    SCHEDULE_PRECISION = 4,
    SCHEDULE_QUANTUM = 8,
    SCHEDULE_WINDOW_LIMIT = 16,
    SCHEDULE_LOCAL_MEMORY = 32,
    SCHEDULE_DEPARTED_LIMIT = 64,
    SCHEDULE_WATCHDOG_WARNING = 128,
    SCHEDULE_WATCHDOG_LIMIT = 256,
    SCHEDULE_PARTITION_SIZES = 512,
    SCHEDULE_STANDBY = 1024,
    SCHEDULE_WATCHDOG = SCHEDULE_WATCHDOG_WARNING | SCHEDULE_WATCHDOG_LIMIT,
    SCHEDULE_SUPERVISOR = SCHEDULE_WATCHDOG | SCHEDULE_STANDBY, /* no worker is told of them */
    SCHEDULE_WHOLE = 2047
};

/* How far a process is prepared that stands by to become the next worker. */
enum schedule_standby {
    SCHEDULE_STANDBY_NONE,    /* there is none */
    SCHEDULE_STANDBY_DRIVER,  /* the driver is initialised; there is no context */
    SCHEDULE_STANDBY_CONTEXT, /* all that a worker makes before its first client */
    SCHEDULE_STANDBYS
};

/* "none", "driver", "context". Static. */
const char *schedule_standby_name(enum schedule_standby standby);

struct schedule {
    enum proto_mode mode;
    uint32_t precision;         /* hundredths of a per cent; a plan is lease / precision */
    uint64_t lease_ns;          /* in modes strict and fair */
    uint64_t quantum_ns;        /* in mode turns */
    uint64_t window_limit_ns;   /* the longest work beside which a quiet window begins */
    uint64_t local_memory;      /* bytes a thread that the device has room for beforehand */
    uint64_t departed_limit_ns; /* time for work whose client is gone, while others wait; 0: any */
    uint64_t watchdog_warning_ns; /* a worker that is silent for so long is shown; 0: never */
    uint64_t watchdog_limit_ns;   /* and is replaced after so long; 0: never */
    enum schedule_standby standby;
    /* Parts of the multiprocessors for which there are partitions beforehand, in hundredths of a
     * per cent; 0 after the last. */
    uint32_t partition_sizes[PROTO_PARTITION_SIZES_MAX];
};

/* The form of each part, for messages. A test compares the numbers with the ranges. */
#define SCHEDULE_FORM_MODE "one of concurrent, strict, fair and turns"
#define SCHEDULE_FORM_LEASE                                                                        \
    "a time from 5ms to 10s (units: " UNITS_DURATIONS "), like 50ms, or a class by its name or "   \
    "number: default or 0 (250ms), "                                                               \
    "short or 1 (10ms), medium or 2 (100ms), long or 3 (1s)"
#define SCHEDULE_FORM_PRECISION    "a share from 1% to 50%, like 5% or 0.05"
#define SCHEDULE_FORM_QUANTUM      "a time from 5ms to 1h (units: " UNITS_DURATIONS "), like 30s or 5min"
#define SCHEDULE_FORM_WINDOW_LIMIT "a time from 1ms to 10s (units: " UNITS_DURATIONS "), like 500ms"
#define SCHEDULE_FORM_LOCAL_MEMORY "a size from 1K to 512K, like 4K"
#define SCHEDULE_FORM_STANDBY      "one of none, driver and context"
#define SCHEDULE_FORM_LIMIT                                                                        \
    "0, or a time from 100ms to 24h (units: " UNITS_DURATIONS "), like 500ms, 5s or 2min"

/* concurrent, lease 250ms, precision 5%, quantum 30s, window_limit 500ms, local_memory 1K,
 * departed_time_limit 0, watchdog_warning 2s, watchdog_limit 10s, standby none. */
struct schedule schedule_default(void);

/* Whether clients' shares of time have an effect in this mode: in strict and fair. */
bool schedule_time_enforced(enum proto_mode mode);

/* The part with this name, such as "lease"; 0 if there is none. */
unsigned schedule_part_of(const char *name, size_t length);

/* The names of parts (bits), in the order in which people write them: the one at `index`; NULL
 * after the last. Parts that nobody writes have none. Static. */
const char *schedule_part_name(unsigned which, size_t index);

/*
 * Sets one part of a schedule from what people write: a mode's name; a lease like "50ms"
 * or one of NVIDIA's classes, by name or number (default|short|medium|long, 0 to 3); a
 * precision like "5%" or "0.05"; a quantum or window_limit like "30s"; local_memory like "4K"; a
 * standby's name; a limit of departed clients or of the watchdog as for schedule_read_limit. An
 * error names value and form; nothing has changed then.
 */
uint32_t schedule_set(struct schedule *schedule, enum schedule_part part, const char *value,
                      size_t length, struct error *why);

/* So long may a worker take to start, ns, before it is given up; 0: as long as it likes. */
uint64_t schedule_start_limit_ns(const struct schedule *schedule);

/* Reads a time that has a limit or none: SCHEDULE_FORM_LIMIT, where "0" is none. Returns 0, or
 * -errno: *ns has not changed then. */
int schedule_read_limit(const char *text, size_t length, uint64_t *ns);

/* Copies the parts (bits) of `from` to *schedule. */
void schedule_merge(struct schedule *schedule, const struct schedule *from, unsigned parts);

/* The parts, as bits, in which the two differ. */
unsigned schedule_differs(const struct schedule *a, const struct schedule *b);

/* "mode fair, lease 50ms, precision 5%, ...": each part that people write, with its value. Returns
 * text. */
enum { SCHEDULE_TEXT = 352 };
const char *schedule_format(const struct schedule *schedule, char *text, size_t size);

/* The message that tells a worker this schedule. */
struct proto_worker_schedule schedule_message(const struct schedule *schedule);

#endif
