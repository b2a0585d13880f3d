/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/call_probe.h"

#include "common/clock.h"

/* A CUstream takes 0.2 ms on an H100 (docs/gpu-results.md) and 2 ms on the strict software GPU. A
 * call that waits takes as long as the kernel at least. */
#define KERNEL_NS (6 * UNITS_MS)
#define SOON_NS   (4 * UNITS_MS)

/* Each look costs everybody the kernel's time. */
#define LOOKS_MAX 3

bool call_probe_begin(struct call_probe *probe, const struct gpu *gpu, enum probed_call call)
{
    const struct local_kernel *kernel = &gpu->local.kernel;
    if (call_probe_is_free(probe, call) || probe->looks[call] == LOOKS_MAX || !kernel->module ||
        !kernel->busy)
        return false;
    probe->looks[call]++;
    probe->begun = clock_now();
    /* Clearing's CUstream has no client's work on its queue, and clearing rests in a window. */
    return local_kernel_occupy(kernel, gpu->cuda, gpu->clearing.stream, KERNEL_NS) == CUDA_OK;
}

cuda_result call_probe_end(struct call_probe *probe, const struct gpu *gpu, enum probed_call call,
                           bool made, bool *found)
{
    /* An end is seen late, so the question alone would take a call that waited for a free one. */
    bool soon = clock_now() - probe->begun < SOON_NS;
    *found = made && soon && gpu->cuda->cuStreamQuery(gpu->clearing.stream) == CUDA_ERR_NOT_READY;
    if (*found)
        atomic_store(&probe->free[call], true);
    return gpu->cuda->cuStreamSynchronize(gpu->clearing.stream);
}
