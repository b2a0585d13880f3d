/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cost: what calls cost their caller, and how long the device takes to notice and to be
 * noticed. All of it is 0 unless the settings say otherwise.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_COST_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_COST_H

#include <stdint.h>

/* Real time that passes in the caller's thread: with the CPU for an enqueue, asleep for the others.
 * Any thread, without the engine's lock. */
void cost_pay_enqueue(void);
void cost_pay_creation(void); /* of a stream or a green context */
void cost_pay_load(void);     /* of a module */
void cost_pay_registration(uint64_t bytes);

/* Modelled nanoseconds, drawn anew by each call. Engine lock held. */
uint64_t cost_arrival_ns(void);    /* from a submission to the earliest time it may begin */
uint64_t cost_completion_ns(void); /* from the end of an operation to when a program can see it */

#endif
