/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_probe: asks the driver's library for its version and for its GPUs, in a process of its
 * own: a driver that is not well can crash its caller, or never answer. It makes no context.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_DRIVER_PROBE_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_DRIVER_PROBE_H

#include <limits.h>
#include <stdbool.h>

#include "client/tools/doctor/place.h"
#include "common/error.h"

/* Seconds that a driver has for its answers. A machine with eight GPUs and no persistence daemon
 * takes more than ten to initialise them. */
enum { DRIVER_PROBE_SECONDS = 30, DRIVER_PROBE_GPUS = 16 };

enum driver_probe_outcome {
    DRIVER_PROBE_ABSENT,  /* there is no library */
    DRIVER_PROBE_DROPIN,  /* it is gpushare's own */
    DRIVER_PROBE_REFUSED, /* it can't be loaded, or does not start; text says why */
    DRIVER_PROBE_SILENT,  /* it did not answer in time */
    DRIVER_PROBE_CRASHED,
    DRIVER_PROBE_ANSWERED,
};

struct driver_probe_gpu {
    char pci[32];
    int compute_mode; /* CUDA_COMPUTEMODE_* */
    int host_access;  /* kernels reach all memory of the process (attribute 88) */
};

struct driver_probe {
    enum driver_probe_outcome outcome;
    char path[PATH_MAX]; /* of the library, as it was found; "": it was not */
    char real[PATH_MAX]; /* with links followed, so that it ends with the driver's version */
    int version;         /* the newest CUDA that it supports: 12040 is 12.4; 0: unknown */
    int gpus;
    struct driver_probe_gpu gpu[DRIVER_PROBE_GPUS]; /* the first ones of them */
    struct error why;
};

/* Fills *probe. */
void driver_probe_run(const struct place *place, struct driver_probe *probe);

#endif
