/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * load: a client of the server, in a process of its own, that keeps the device busy with kernels of
 * modelled time. Each block writes when and where it ran, and rows judge a client by those words
 * alone.
 *
 * The parent calls load_start, load_go, load_rest and load_stop, and reads the words after
 * load_stop. `behave` runs in the child and calls load_launch and load_wait. A failure ends the
 * child with a line on standard error, and the parent in load_stop.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_LOAD_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/gpushare.h"
#include "tests/programs/bench/span.h"
#include "tests/support/server.h"

enum { LOAD_TIMES = 1 << 15 };

struct load;

struct load_spec {
    const char *name;
    const char *const *env; /* "NAME=value", ending with NULL; NULL: no limits are asked for */
    uint64_t kernel_ns;
    uint32_t blocks;  /* of each launch; 0: 1 */
    bool whole_sm;    /* a block takes a whole multiprocessor, by its shared memory */
    uint32_t most;    /* maximum of launches, unless endless */
    uint32_t streams; /* launches go to so many in turn; 0: the stream that every client has */
    uint32_t depth;   /* maximum of launches that are not done; 0: 25 ms of kernels */
    bool endless;     /* words are looked at once and then overwritten: there are no spans */
    bool drain;       /* waits for its launches before it ends, so that none is lost */
    uint32_t uid;     /* the user that it runs as, for a program of root's; 0: this program's */
    void (*behave)(struct load *child); /* NULL: launches all the time, except while it rests */
    const void *context;                /* for `behave` */
};

/* Shared between parent and child. */
struct load_page {
    uint32_t ready, stop, rest; /* atomic */
    uint32_t launches;          /* atomic: number issued so far */
    uint32_t whole;             /* atomic: number of first launches that have all their words */
    uint32_t ran;               /* atomic: number of launches with spans */
    uint32_t blocks_counted;    /* the word that every block adds 1 to */
    uint32_t client;            /* its number at the server */
    uint32_t multiprocessors;   /* granted when it attached */
    uint32_t times;
    uint64_t arrived;        /* time of the first launch, on the device's clock */
    int64_t offset;          /* device's clock - CLOCK_MONOTONIC, nanoseconds */
    double time[LOAD_TIMES]; /* results of `behave`, `times` of them */
    double seen[LOAD_TIMES]; /* when `behave` had seen the end of what followed each; 0: never */
};

struct load {
    struct load_spec spec;
    pid_t pid;
    struct load_page *page;
    /* spec.blocks a launch, page->ran launches; grows as the client sees it. First come the
     * launches up to the first one that is not done; when the client has ended, the launches behind
     * that which are done follow, in their order. */
    struct span *spans;
    /* The members below belong to the child. */
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_stream **streams; /* spec.streams of them */
    uint32_t shared;           /* dynamic shared memory of a block */
    struct span *log;          /* in a shared host buffer */
    uint32_t *counted;
};

/* ---- parent ---- */

/*
 * Starts a client and returns when it is connected. It rests until load_go. The first client of a
 * program measures the device's clock against the host's, so start it before other clients work.
 */
struct load *load_start(const struct server *server, const struct load_spec *spec);
void load_go(struct load *load);
void load_rest(struct load *load);
/* Waits until all launches that a resting client has issued are done. */
void load_settle(struct load *load);
/*
 * Ends the client. Launches that are not done are dropped, unless spec.drain is set. Spans and page
 * are valid until load_free. A launch is lost if it has no words although a later one of its stream
 * has, or with spec.drain if it has none at all. A lost launch ends the program, but without
 * spec.drain only that of a client with one stream.
 */
void load_stop(struct load *load);
/* Like load_stop, for a client whose `behave` ends by itself. */
void load_finish(struct load *load);
void load_free(struct load *load);
size_t load_spans(const struct load *load);   /* number of valid spans */
uint32_t load_whole(const struct load *load); /* number of first launches that are done so far */
/* Translates CLOCK_MONOTONIC seconds to the device's clock. */
uint64_t load_device_time(const struct load *load, double seconds);
/* The sum of the nanoseconds for which each block of the client ran between from and to. */
uint64_t load_ns(const struct load *load, uint64_t from, uint64_t to);
/* The same of a client with one stream and one block, with the time between two kernels that follow
 * each other within 10 us. An H100 takes 5 us from a block's last instruction to the next kernel's
 * first (docs/gpu-results.md); nobody else could have used them. */
uint64_t load_ns_joined(const struct load *load, uint64_t from, uint64_t to);
/* The part of the time between from and to in which exactly one block ran, of all these clients. */
double load_single(struct load *const *loads, int count, uint64_t from, uint64_t to);
/* The part of the time between from and to in which at least one block of these clients ran. */
double load_any(struct load *const *loads, int count, uint64_t from, uint64_t to);

/* ---- child ---- */

/* Issues a kernel of this time. Returns the launch's number. */
uint32_t load_launch(struct load *child, uint64_t ns);
bool load_done(const struct load *child, uint32_t launch);
/* Shows the parent how far the launches have come. */
void load_publish(struct load *child);
/* Sleeps in short steps until the launch is done, and publishes. Returns false if the parent says
 * stop first. */
bool load_wait(struct load *child, uint32_t launch);
bool load_stopped(const struct load *child);
bool load_resting(const struct load *child);
void load_tell(struct load *child, double time);
/* The end of what followed the last time that was told. */
void load_tell_seen(struct load *child, double time);

#endif
