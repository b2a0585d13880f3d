/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * context_lock: the lock of a device's primary context, as NVIDIA's driver takes it.
 *
 * One call at a time holds it. A draining call waits, while holding it, until the device
 * is idle; whatever another thread submits meanwhile waits behind it. A locking call
 * takes it without waiting for the device. With SOFTGPU_CONTEXT_LOCK=0 none of this
 * happens.
 *
 * Taken before the engine's lock and the lock of memory changes; neither may be held by
 * who calls. Any thread; not recursive.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_CONTEXT_LOCK_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_CONTEXT_LOCK_H

#include "server/softgpu/context_call.h"
#include "server/softgpu/device/device.h"

/* For work that is submitted: launches, copies, fills, records, memory operations. */
void context_lock_submit(struct device *device);

/* For calls that change the context. Those that wait for the device (context_call.h,
 * SOFTGPU_LOCKING_DRAINS, SOFTGPU_DRAINS) do so as often as SOFTGPU_DRAIN_PERCENT says. When a
 * fault ended the device there is nothing to wait for. */
void context_lock_call(struct device *device, enum context_call call);

void context_lock_release(struct device *device);

/* The same for all devices whose context is in use, in one order: for calls on mappings, which do
 * not say whose kernels use them. */
void context_lock_call_all(enum context_call call);
void context_lock_release_all(void);

#endif
