/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* remains: what a server has when no client is connected, so that what clients leave is found. */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_REMAINS_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_REMAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/programs/recovery/crew.h"

struct remains {
    size_t descriptors[2]; /* of the supervisor and of its worker */
    size_t shared[2];      /* their mappings of shared memory */
    size_t memfds[2];      /* their descriptors of memory files */
    size_t
        processes; /* children of the supervisor, zombies too, its worker, and children of that */
    uint64_t memory, host_memory, charged_descriptors; /* charged to clients */
    bool served;                                       /* the worker serves */
};

/* Waits until nobody is charged and nothing changes any more, and looks at the server; ends the
 * program if that does not come. All clients have left. */
struct remains remains_take(struct crew *crew);

/* Waits until the server has no more than it had; ends the program if that does not come. */
void remains_compare(struct crew *crew, const struct remains *before);

#endif
