/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_memory: the device's own count of the memory in use, which is cuMemGetInfo of another
 * process than the server's. One thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_DEVICE_MEMORY_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_DEVICE_MEMORY_H

#include <stdint.h>

/* Bytes of the first device, of all processes. state: the SOFTGPU_STATE of the server. Asks in a
 * process of its own, which leaves no context behind; that takes some milliseconds. */
uint64_t device_memory_used(const char *state);

#endif
