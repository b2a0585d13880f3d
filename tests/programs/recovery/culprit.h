/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * culprit: the sticky errors that a kernel can raise on the software GPU. Those of NVIDIA's table
 * that it can't raise are a contained error (226), a launch timeout (702), an invalid program
 * counter (718), a tensor memory leak (721) and an external device's (911).
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_CULPRIT_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_CULPRIT_H

#include "client/gpushare.h"

struct culprit {
    const char *kernel; /* of faults_ptx */
    gpushare_error error;
};

enum { CULPRITS = 7 };
extern const struct culprit culprits[CULPRITS];

/* The PTX of tests/programs/recovery/kernels/, which ends with 0. One of faults_ptx calls an
 * address, so that module is lost with a worker; recovery_ptx is kept. */
extern const char recovery_ptx[], faults_ptx[];

#endif
