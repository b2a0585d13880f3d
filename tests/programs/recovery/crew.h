/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * crew: a server and its clients, each in a process of its own (honest.h), as the conductor of
 * make chaos-recovery has them. Whatever does not hold ends the program by crew_die. One thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_CREW_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_CREW_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/programs/recovery/honest.h"
#include "tests/support/server.h"

/* The work of a client of the crew: a function of honest.h, which does not return. */
typedef void crew_part(const struct honest_spec *spec);

struct crew {
    struct server *server;
    struct page *pages;
    pid_t pids[PAGES_MAX]; /* 0: there is none */
    int count;
    uint32_t rest;     /* of honest_spec */
    unsigned random;   /* of the conductor's choices */
    const char *again; /* how to repeat this run */
    size_t log_seen;   /* bytes of the server's log that crew_log has returned */
};

/* The seconds that anything may take which has to come. */
double crew_patience(void);
double crew_now(void); /* CLOCK_MONOTONIC */
unsigned crew_draw(struct crew *crew, unsigned bound);

/* Starts a server with these options (NULL: none), and no client yet. */
void crew_open(struct crew *crew, const char *const args[]);

/* The same with one that server_replace may end and start again. */
void crew_open_kept(struct crew *crew, const char *const args[]);

/* Starts client i, which must not be there. */
void crew_join(struct crew *crew, int i, crew_part *part);

/* Starts honest clients until there are so many, and waits until each has verified a batch. */
void crew_fill(struct crew *crew, int count);

void crew_order(struct crew *crew, int i, enum order order);

/* Ends the program if a client has ended or failed that was not to. */
void crew_check(struct crew *crew);

/* Waits until each client has verified so many batches more. */
void crew_await_batches(struct crew *crew, uint64_t more);

/* Waits until client i has ended. Returns its wait status. */
int crew_await_end(struct crew *crew, int i);

/* Has all clients leave; each must have verified all that it has. */
void crew_leave(struct crew *crew);

/* Returns what the server's log says since the last call. The caller frees it. */
char *crew_log(struct crew *crew);

/* The number of times that a text has these words. */
unsigned crew_mentions(const char *text, const char *words);

/* Stops the server, which must end well. All clients have left. */
void crew_close(struct crew *crew);

/* Prints the sentence, how to repeat the run and the end of the server's log; ends everything with
 * status 1. */
_Noreturn void crew_die(struct crew *crew, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints a histogram: a line that begins with title, and the names whose counts are not 0. */
void crew_print(const char *title, const char *const *names, const unsigned *counts, int length);

extern const char *const crew_phases[PHASE_COUNT];

#endif
