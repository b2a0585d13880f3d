/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * bill: the sums of one client's use for the accounting, since its latest line there.
 *
 * Counts come from the worker and only grow; the bill remembers how much of them is in lines
 * already. Memory is integrated over time: the client's quotas tell each change of what is charged
 * (quota.h). A bill is kept as its bytes lie, so it has no pointers. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_BILL_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_BILL_H

#include <stdbool.h>
#include <stdint.h>

/* Names of programs as the kernel cuts them; the paths of a container's control groups have some
 * two hundred bytes. */
enum { BILL_PROGRAM = 16, BILL_CGROUP = 384 };

/* An amount over time, in byte-seconds. */
struct bill_level {
    uint64_t bytes;                 /* now */
    uint64_t at_us;                 /* CLOCK_MONOTONIC: summed up until then */
    uint64_t byte_seconds, byte_us; /* the sum, and what is less than a byte-second of it */
    uint64_t peak;
};

struct bill_counts {
    uint64_t launches, copies, copied_bytes, gpu_ns;
};

struct bill {
    uint64_t begun_at;              /* CLOCK_MONOTONIC, ns, of this line; 0: nothing is billed */
    uint64_t attached_us, begun_us; /* CLOCK_REALTIME */
    uint32_t lines;                 /* that were made before this one */
    uint32_t multiprocessors;       /* that it has */
    struct bill_counts known, billed;
    uint64_t sm_ns;     /* time of its multiprocessors, each for itself; of known */
    uint64_t sm_billed; /* likewise, of billed */
    struct bill_level memory, host_memory;
    /* As they were when it attached, since its process may be gone at the end. "": not known. */
    char program[BILL_PROGRAM], cgroup[BILL_CGROUP];
};

/* A line's sums. */
struct bill_sums {
    uint64_t begun_us, ended_us; /* CLOCK_REALTIME */
    uint64_t connected_ns, sm_ns;
    struct bill_counts used;
    uint64_t memory_byte_seconds, memory_peak;
    uint64_t host_byte_seconds, host_peak;
};

/* The client is attached, and has so many multiprocessors. Its levels stay as they are. */
void bill_begin(struct bill *bill, uint32_t multiprocessors);

/* It has others from now on; its counts are noted as of now. */
void bill_share(struct bill *bill, uint32_t multiprocessors);

/* Counts that were read. Ones that are lower than before are old, and change nothing. */
void bill_note(struct bill *bill, const struct bill_counts *counts);

/* The level is `bytes` from now on. NULL: does nothing. */
void bill_level_set(struct bill_level *level, uint64_t bytes);

/* Takes the sums since the last line; the next line begins here. No line ends before it begins. */
void bill_take(struct bill *bill, struct bill_sums *sums);

/* Whether the sums name nothing that anybody would pay for: a program asked and left. */
bool bill_is_nothing(const struct bill *bill, const struct bill_sums *sums);

#endif
