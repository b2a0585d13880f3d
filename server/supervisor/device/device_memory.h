/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_memory: memory that a device's workers leave to the next one: what clients have used, owe
 * and are owed (the ledger, server/worker/run/usage_ledger.h), and compiled code. The device keeps
 * it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_MEMORY_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct usage_counts;

/* The descriptor of the memory for code; -1: each worker compiles for itself. */
int device_memory_code(struct device *device);

/* Gives the ledger to a new worker; makes it for the first one. To be called before the worker
 * hears of any client, and when the last one is gone. A failure is logged: then counters and debts
 * end with that worker. */
void device_memory_begin(struct device *device);

/* Reads what a client has used, as the worker wrote a few milliseconds ago: also of a worker that
 * is gone, and of a client that is. Returns false where that is not known. */
bool device_memory_counts(const struct device *device, uint32_t client,
                          struct usage_counts *counts);

/* Takes over both from another supervisor; -1: it had none. */
void device_memory_adopt(struct device *device, int ledger, int code);

#endif
