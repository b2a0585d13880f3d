/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * call_probe: whether the driver at hand waits for running kernels in calls about which sources
 * differ.
 *
 * One driver was seen to make and destroy CUstreams beside a kernel at once (docs/gpu-results.md),
 * and others are reported to wait (docs/softgpu.md). So the worker asks its own. It makes the first
 * such call in a quiet window, beside a kernel of its own that lasts some milliseconds. If the call
 * is back long before the kernel can have ended, such calls need no window from then on.
 *
 * A machine under load may show a call late. Then it counts as one that waits, and the next one is
 * looked at too.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_CALL_PROBE_H
#define GPUSHARE_SERVER_WORKER_DEVICE_CALL_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/worker/device/gpu.h"

enum probed_call {
    PROBED_CREATION,    /* of CUstreams */
    PROBED_DESTRUCTION, /* of CUstreams and green contexts */
    PROBED_CALLS,
};

/* All zeroes: nothing is known. */
struct call_probe {
    atomic_bool free[PROBED_CALLS];
    uint32_t looks[PROBED_CALLS];
    uint64_t begun; /* ns */
};

/* Whether such calls were seen not to wait. Any thread. */
static inline bool call_probe_is_free(const struct call_probe *probe, enum probed_call call)
{
    return atomic_load(&probe->free[call]);
}

/*
 * Around one call, by the quiet thread in a quiet window. Begin returns false if there is nothing
 * to find out, and then nothing is to be ended. End waits for the kernel; made: whether the call
 * was made at all. It returns the driver's result, and whether that was the look which showed such
 * calls free, in *found.
 */
bool call_probe_begin(struct call_probe *probe, const struct gpu *gpu, enum probed_call call);
cuda_result call_probe_end(struct call_probe *probe, const struct gpu *gpu, enum probed_call call,
                           bool made, bool *found);

#endif
