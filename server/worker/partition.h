/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * partition: a set of the device's multiprocessors that clients' streams run on.
 *
 * The multiprocessors are split once into the smallest groups the driver allows,
 * the atoms; what is left over is the last atom. A partition is a set of atoms as
 * a green context, shared by the clients that have the same set. A client with
 * all of them gets the unsplit device, as a green context too: work in the
 * primary context's own streams would run on everybody's multiprocessors. Green
 * contexts are never made current.
 *
 * Where the driver lacks green contexts there is one partition, the whole device,
 * and nothing is enforced; partitions.why says so.
 *
 * One thread, the control thread, except where said.
 */
#ifndef GPUSHARE_SERVER_WORKER_PARTITION_H
#define GPUSHARE_SERVER_WORKER_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/device.h"

enum { PARTITION_ATOMS_MAX = 256 };

struct atom_set {
    uint64_t bits[PARTITION_ATOMS_MAX / 64];
};

struct partition {
    struct partition *next;
    struct atom_set atoms;
    uint32_t multiprocessors;
    uint32_t clients;     /* that have it */
    bool whole;           /* the unsplit device */
    cuda_green_ctx green; /* NULL where the driver offers none */
};

struct partitions {
    const struct device *device;
    bool supported;
    char why[160];            /* why not supported */
    cuda_dev_resource whole;  /* the unsplit device */
    cuda_dev_resource *atoms; /* count of them */
    uint32_t *load;           /* clients whose partition holds the atom, the whole ones aside */
    uint32_t count;           /* atoms, the remainder included */
    uint32_t atom_size;       /* multiprocessors of an atom; of the remainder: fewer */
    uint32_t remainder;       /* multiprocessors of the last atom if it is the remainder, else 0 */
    uint32_t total;           /* multiprocessors of the device */
    struct partition *list;
};

/* Splits the device. Lack of support is no error; any other failure is: its number, and why. */
uint32_t partitions_open(struct partitions *partitions, const struct device *device, char *why,
                         size_t why_size);
void partitions_close(struct partitions *partitions);

/*
 * Which atoms a share gets now: rounded down to atoms, at least one, the least
 * loaded ones. percentage in hundredths of a per cent, 1 to PROTO_PERCENT_WHOLE.
 * Returns the multiprocessors of *atoms. Pure but for reading the loads.
 */
uint32_t partitions_choose(const struct partitions *partitions, uint32_t percentage,
                           struct atom_set *atoms);

/* Gets a client its partition. 0 or an error number. Every one is given back by partition_put. */
uint32_t partition_get(struct partitions *partitions, uint32_t percentage,
                       struct partition **partition);

/* The same for a client that has a partition, which it keeps until partition_put: its own load does
 * not count where the new one is placed. */
uint32_t partition_get_instead(struct partitions *partitions, const struct partition *old,
                               uint32_t percentage, struct partition **partition);

/* Returns true if nobody has the partition any more: the caller then waits until its
 * streams have drained (partition_get may give it out again meanwhile), destroys them, and calls
 * partition_destroy. */
bool partition_put(struct partitions *partitions, struct partition *partition);
void partition_destroy(struct partitions *partitions, struct partition *partition);

bool atom_set_has(const struct atom_set *set, uint32_t atom);

#endif
