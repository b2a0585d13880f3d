/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * step: the steps in the order in which they run, most load-bearing first, and the assumptions of
 * the design that each examines. Both tables are in step.c; what a step does is in the step_*.c
 * of its subject.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_STEP_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_STEP_H

#include <stdbool.h>
#include <stddef.h>

enum step_set {
    STEP_FIRST, /* within the budget of --first */
    STEP_REST,
};

struct step {
    const char *name; /* of a file too: letters, digits, '-' */
    const char *title;
    enum step_set set;
    unsigned limit_s;
    void (*run)(const char *argument);
    const char *argument;
    bool check; /* of gpushare: a step that ends without a verdict has failed */
};

struct step_assumption {
    const char *step;
    const char *name;
    const char *statement; /* that the design takes for true */
    const char *depends;   /* the part of the design that stands on it */
    const char *if_false;  /* what would have to change */
};

extern const struct step step_table[];
extern const size_t step_count;
extern const struct step_assumption step_assumptions[];
extern const size_t step_assumption_count;

/* NULL: there is none of that name. */
const struct step *step_find(const char *name);
/* Whether this is the step that a user names so, or one of those: "dropin" names each "dropin-...".
 */
bool step_is_meant(const struct step *step, const char *name);

/* ---- the steps, by the file that they stand in; the argument is the table's ---- */
void step_inventory(const char *argument);
void step_jit(const char *argument);
void step_arenas(const char *argument);
void step_registration(const char *argument);
void step_completion(const char *argument);
void step_blocking(const char *argument);
void step_partition_sizes(const char *argument);
void step_partition_blocks(const char *argument);
void step_survival(const char *argument);
void step_standby(const char *argument);
void step_queues(const char *argument);
void step_latency(const char *argument);
void step_launch_cost(const char *argument);
void step_graph_cost(const char *argument);
void step_pinning_cost(const char *argument);
void step_example(const char *argument);
void step_six_clients(const char *argument);
void step_corpus(const char *argument);
void step_halves(const char *argument);
void step_strict(const char *argument);
void step_fault(const char *argument);
void step_worker_end(const char *argument);
void step_side_by_side(const char *argument);
void step_program(const char *argument);
void step_bench_row(const char *argument);
void step_dropin_programs(const char *argument);
void step_dropin_heat(const char *argument);
void step_dropin_python(const char *argument);
void step_dropin_pace(const char *argument);
void step_dropin_samples(const char *argument);

/*
 * The function that runs in the processes that probe_spawn() starts: `part` names the function,
 * socket is 3 or -1. They end by returning or by being killed.
 */
struct step_part {
    const char *name;
    int (*run)(const char *argument, int socket);
};
extern const struct step_part step_parts[];
extern const size_t step_part_count;

int step_arenas_attempt(const char *argument, int socket);
int step_survival_part(const char *argument, int socket);
int step_standby_part(const char *argument, int socket);
int step_client_part(const char *argument, int socket);
int step_side_part(const char *argument, int socket);

#endif
