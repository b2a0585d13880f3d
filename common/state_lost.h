/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * state_lost: the refusal of a module that had on the device what is in no memory of its client's,
 * and whose worker was lost. Any thread.
 */
#ifndef GPUSHARE_COMMON_STATE_LOST_H
#define GPUSHARE_COMMON_STATE_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol.h"

/* Sets STATE_LOST with a sentence that names the module, what it had and the remedy. Returns the
 * number. */
uint32_t state_lost_refuse(uint32_t module, enum proto_unsaved unsaved, struct error *why);

/* Whether a module of which another worker can't have this is lost with its worker. */
bool state_lost_with_worker(enum proto_unsaved unsaved);

/*
 * Whether a kernel of a module with `other` may follow an address of what a lost module had on the
 * device. Any kernel may find an address of data in memory, but only a module that calls by address
 * can follow one of a function.
 */
bool state_lost_reaches(enum proto_unsaved lost, enum proto_unsaved other);

/* Likewise, for a launch of a module that may follow such an address; module is the lost one. */
uint32_t state_lost_refuse_other(uint32_t module, enum proto_unsaved unsaved, struct error *why);

#endif
