/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * managed_advice: what a program advised of its managed memory, and whither it prefetched it. The
 * memory does not move, so the advice is kept for nothing but to be read back. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_MANAGED_ADVICE_H
#define GPUSHARE_COMMON_CUDA_MANAGED_ADVICE_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"

enum managed_advice_kind { ADVICE_READ_MOSTLY, ADVICE_PREFERRED, ADVICE_ACCESSED, ADVICE_PREFETCH };

/* A part of an allocation. id: the allocation's, unique in the process, so that one which reuses
 * the addresses has no advice. */
struct managed_range {
    uint64_t start, end, id;
};

/* device: of ADVICE_ACCESSED, who may access; otherwise 0. */
struct managed_topic {
    enum managed_advice_kind kind;
    int device;
};

/* Notes a value for a range, in place of earlier ones. Where nothing is noted, the value is zeros.
 * Returns 0 or -ENOMEM. */
int managed_advice_note(const struct managed_range *range, struct managed_topic topic,
                        cuda_mem_location value);

/* The value if the whole range has the same one, and zeros otherwise. */
cuda_mem_location managed_advice_find(const struct managed_range *range,
                                      struct managed_topic topic);

#endif
