/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * load: a client of the server, a process of its own, that keeps the device busy with
 * kernels of modelled time. Each block writes when and where it ran; what a row says of
 * a client comes from those words alone.
 *
 * The parent calls load_start, load_go, load_rest, load_stop and reads the words after
 * load_stop. `behave` runs in the child and calls load_launch and load_wait. Whatever
 * fails ends the child with a line on standard error, and the parent in load_stop.
 */
#ifndef GPUSHARE_TESTS_BENCH_LOAD_H
#define GPUSHARE_TESTS_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/gpushare.h"
#include "tests/programs/bench/span.h"
#include "tests/support/server.h"

enum { LOAD_TIMES = 4096 };

struct load;

struct load_spec {
    const char *name;
    const char *const *env; /* "NAME=value", NULL-terminated; NULL: no limits asked for */
    uint64_t kernel_ns;
    uint32_t blocks; /* of each launch; 0: 1 */
    bool whole_sm;   /* a block takes a multiprocessor, by its shared memory */
    uint32_t most;   /* launches, at most, unless endless */
    uint32_t depth;  /* launches not done yet, at most; 0: 25 ms of kernels */
    bool endless;    /* words are looked at once, then others take their place: no spans */
    bool drain;      /* waits for its launches before it ends: none is lost */
    void (*behave)(struct load *child); /* NULL: launches all the time, unless it rests */
};

/* Shared between parent and child. */
struct load_page {
    uint32_t ready, stop, rest; /* atomic */
    uint32_t launches;          /* atomic: issued so far */
    uint32_t whole;             /* atomic: the first so many have said all their words, see spans */
    uint32_t blocks_counted;    /* the word that every block adds 1 to */
    uint32_t client;            /* its number at the server */
    uint32_t multiprocessors;   /* granted at attach */
    uint32_t times;
    uint64_t arrived;        /* device's clock: the first launch */
    int64_t offset;          /* device's clock - CLOCK_MONOTONIC, nanoseconds */
    double time[LOAD_TIMES]; /* what `behave` wants to tell, `times` of them */
};

struct load {
    struct load_spec spec;
    pid_t pid;
    struct load_page *page;
    struct span
        *spans; /* spec.blocks a launch, page->whole launches; grows as the client sees it */
    /* the child's own */
    gpushare_connection *gpu;
    gpushare_function *function;
    uint32_t shared;  /* dynamic shared memory of a block */
    struct span *log; /* in a shared host buffer */
    uint32_t *counted;
};

/* ---- parent ---- */

/*
 * Returns when the client is connected. It rests until load_go. The first client of a program
 * finds out how the device's clock stands to the host's: start it before work of others is about.
 */
struct load *load_start(const struct server *server, const struct load_spec *spec);
void load_go(struct load *load);
void load_rest(struct load *load);
/* Waits until all that a resting client has issued is done. */
void load_settle(struct load *load);
/*
 * Ends the client; what it has issued and is not done is dropped, unless spec.drain. Spans and page
 * are valid until load_free. A launch without words although a later one has them, or any at all
 * with spec.drain, is lost: that ends the program.
 */
void load_stop(struct load *load);
/* The same for a client whose `behave` ends by itself. */
void load_finish(struct load *load);
void load_free(struct load *load);
size_t load_spans(const struct load *load);   /* how many are valid */
uint32_t load_whole(const struct load *load); /* launches with spans, so far */
/* CLOCK_MONOTONIC seconds on the device's clock. */
uint64_t load_device_time(const struct load *load, double seconds);
/* Nanoseconds between from and to for which blocks of the client ran, one by one. */
uint64_t load_ns(const struct load *load, uint64_t from, uint64_t to);
/* The part of the time between from and to in which a block of exactly one of the clients, and one
 * alone, was under way. */
double load_single(struct load *const *loads, int count, uint64_t from, uint64_t to);

/* ---- child ---- */

/* Returns the launch's number. */
uint32_t load_launch(struct load *child, uint64_t ns);
bool load_done(const struct load *child, uint32_t launch);
/* Shows the parent what has been done. */
void load_publish(struct load *child);
/* Sleeps in short steps until the launch is done, and publishes; false when the parent says stop
 * first. */
bool load_wait(struct load *child, uint32_t launch);
bool load_stopped(const struct load *child);
bool load_resting(const struct load *child);
void load_tell(struct load *child, double time);

#endif
