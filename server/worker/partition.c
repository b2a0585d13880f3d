/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"

bool atom_set_has(const struct atom_set *set, uint32_t atom)
{
    return set->bits[atom / 64] >> (atom % 64) & 1;
}

static void atom_set_add(struct atom_set *set, uint32_t atom)
{
    set->bits[atom / 64] |= UINT64_C(1) << (atom % 64);
}

static uint32_t unsupported(struct partitions *partitions, const char *why)
{
    snprintf(partitions->why, sizeof partitions->why, "%s", why);
    free(partitions->atoms);
    partitions->atoms = NULL;
    partitions->supported = false;
    partitions->count = 1;
    partitions->remainder = 0;
    partitions->atom_size = partitions->total = partitions->device->info.multiprocessors;
    return 0;
}

/* Asks whether the remainder may stand in one description with atoms of the split. */
static bool remainder_joins(const struct partitions *partitions)
{
    cuda_dev_resource both[2] = {partitions->atoms[0], partitions->atoms[partitions->count - 1]};
    cuda_resource_desc description;
    return partitions->device->cuda->cuDevResourceGenerateDesc(&description, both, 2) == CUDA_OK;
}

static cuda_result split(struct partitions *partitions)
{
    const struct cuda_driver *cuda = partitions->device->cuda;
    unsigned least = partitions->whole.sm.min_partition_size;
    unsigned groups = 0;
    if (least == 0)
        least = 1;
    cuda_result result =
        cuda->cuDevSmResourceSplitByCount(NULL, &groups, &partitions->whole, NULL, 0, least);
    if (result != CUDA_OK)
        return result;
    if (groups == 0 || groups >= PARTITION_ATOMS_MAX)
        return CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    partitions->atoms = calloc(groups + 1, sizeof *partitions->atoms);
    if (!partitions->atoms)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_dev_resource rest;
    memset(&rest, 0, sizeof rest);
    result = cuda->cuDevSmResourceSplitByCount(partitions->atoms, &groups, &partitions->whole,
                                               &rest, 0, least);
    if (result != CUDA_OK)
        return result;
    partitions->count = groups;
    partitions->atom_size = partitions->atoms[0].sm.sm_count;
    if (rest.type == CUDA_RESOURCE_SM && rest.sm.sm_count) {
        partitions->atoms[partitions->count++] = rest;
        partitions->remainder = rest.sm.sm_count;
        if (!remainder_joins(partitions)) {
            partitions->remainder = 0;
            partitions->count--;
        }
    }
    return CUDA_OK;
}

uint32_t partitions_open(struct partitions *partitions, const struct device *device, char *why,
                         size_t why_size)
{
    *partitions = (struct partitions){.device = device};
    partitions->load = calloc(PARTITION_ATOMS_MAX, sizeof *partitions->load);
    if (!partitions->load) {
        snprintf(why, why_size, "no memory for the table of multiprocessors");
        return PROTO_ERROR_SERVER_RESOURCES;
    }
    if (!cuda_driver_has_green_contexts(device->cuda))
        return unsupported(partitions, "the driver has no green contexts (CUDA 12.5 and newer do)");
    cuda_result result =
        device->cuda->cuDeviceGetDevResource(device->handle, &partitions->whole, CUDA_RESOURCE_SM);
    if (result == CUDA_ERR_NOT_SUPPORTED)
        return unsupported(partitions, "the device can't be divided into groups of "
                                       "multiprocessors");
    if (result == CUDA_OK) {
        partitions->total = partitions->whole.sm.sm_count;
        result = split(partitions);
    }
    if (result != CUDA_OK) {
        snprintf(why, why_size, "dividing the multiprocessors: %s", cuda_error_sentence(result));
        partitions_close(partitions);
        return error_from_cuda((int)result);
    }
    partitions->supported = true;
    return 0;
}

void partitions_close(struct partitions *partitions)
{
    while (partitions->list)
        partition_destroy(partitions, partitions->list);
    free(partitions->atoms);
    free(partitions->load);
    partitions->atoms = NULL;
    partitions->load = NULL;
}

static void choose_all(const struct partitions *partitions, struct atom_set *atoms)
{
    for (uint32_t i = 0; i < partitions->count; i++)
        atom_set_add(atoms, i);
}

/* The least loaded full-sized atom not in the set yet; of equals the first, so that equal wishes
 * meet in equal sets. */
static uint32_t least_loaded(const struct partitions *partitions, const struct atom_set *atoms)
{
    uint32_t full = partitions->count - (partitions->remainder ? 1 : 0);
    uint32_t best = full;
    for (uint32_t i = 0; i < full; i++)
        if (!atom_set_has(atoms, i) &&
            (best == full || partitions->load[i] < partitions->load[best]))
            best = i;
    return best;
}

uint32_t partitions_choose(const struct partitions *partitions, uint32_t percentage,
                           struct atom_set *atoms)
{
    memset(atoms, 0, sizeof *atoms);
    if (percentage >= PROTO_PERCENT_WHOLE || !partitions->supported) {
        choose_all(partitions, atoms);
        return partitions->total;
    }
    uint32_t budget = (uint32_t)((uint64_t)partitions->total * percentage / PROTO_PERCENT_WHOLE);
    uint32_t full = partitions->count - (partitions->remainder ? 1 : 0);
    uint32_t wanted = budget / partitions->atom_size;
    if (wanted > full)
        wanted = full;
    /* A share below one atom gets one all the same, the only exception to a limit. */
    if (wanted == 0)
        wanted = 1;
    uint32_t granted = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t atom = least_loaded(partitions, atoms);
        atom_set_add(atoms, atom);
        granted += partitions->atom_size;
    }
    if (partitions->remainder && granted + partitions->remainder <= budget) {
        atom_set_add(atoms, partitions->count - 1);
        granted += partitions->remainder;
    }
    return granted;
}

static uint32_t create_green(struct partitions *partitions, struct partition *partition)
{
    const struct cuda_driver *cuda = partitions->device->cuda;
    cuda_dev_resource chosen[PARTITION_ATOMS_MAX];
    cuda_resource_desc description;
    unsigned count = 0;
    if (partition->whole)
        chosen[count++] = partitions->whole;
    for (uint32_t i = 0; !partition->whole && i < partitions->count; i++)
        if (atom_set_has(&partition->atoms, i))
            chosen[count++] = partitions->atoms[i];
    cuda_result result = cuda->cuDevResourceGenerateDesc(&description, chosen, count);
    if (result == CUDA_OK)
        result = cuda->cuGreenCtxCreate(&partition->green, description, partitions->device->handle,
                                        CUDA_GREEN_CTX_DEFAULT_STREAM);
    return error_from_cuda((int)result);
}

static void count_load(struct partitions *partitions, const struct partition *partition, int change)
{
    if (partition->whole)
        return;
    for (uint32_t i = 0; i < partitions->count; i++)
        if (atom_set_has(&partition->atoms, i))
            partitions->load[i] += (uint32_t)change;
}

uint32_t partition_get(struct partitions *partitions, uint32_t percentage,
                       struct partition **partition)
{
    struct atom_set atoms;
    uint32_t multiprocessors = partitions_choose(partitions, percentage, &atoms);
    bool whole = percentage >= PROTO_PERCENT_WHOLE || !partitions->supported;
    struct partition *found = partitions->list;
    while (found && (found->whole != whole || memcmp(&found->atoms, &atoms, sizeof atoms) != 0))
        found = found->next;
    if (!found) {
        found = calloc(1, sizeof *found);
        if (!found)
            return PROTO_ERROR_SERVER_RESOURCES;
        found->atoms = atoms;
        found->multiprocessors = multiprocessors;
        found->whole = whole;
        uint32_t error = partitions->supported ? create_green(partitions, found) : 0;
        if (error) {
            free(found);
            return error;
        }
        found->next = partitions->list;
        partitions->list = found;
    }
    found->clients++;
    count_load(partitions, found, 1);
    *partition = found;
    return 0;
}

uint32_t partition_get_instead(struct partitions *partitions, const struct partition *old,
                               uint32_t percentage, struct partition **partition)
{
    count_load(partitions, old, -1);
    uint32_t error = partition_get(partitions, percentage, partition);
    count_load(partitions, old, 1);
    return error;
}

bool partition_put(struct partitions *partitions, struct partition *partition)
{
    count_load(partitions, partition, -1);
    return --partition->clients == 0;
}

void partition_destroy(struct partitions *partitions, struct partition *partition)
{
    struct partition **link = &partitions->list;
    while (*link != partition)
        link = &(*link)->next;
    *link = partition->next;
    if (partition->green)
        partitions->device->cuda->cuGreenCtxDestroy(partition->green);
    free(partition);
}
