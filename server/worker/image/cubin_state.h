/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cubin_state: what a cubin can keep on the device that another worker does not have.
 *
 * Machine code is not read. The tables of sections and symbols name each variable, each constant
 * and each function of a program, so a cubin that has none but kernels keeps nothing. All else in
 * the tables, known or not, is taken for state. The input is hostile. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_CUBIN_STATE_H
#define GPUSHARE_SERVER_WORKER_IMAGE_CUBIN_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/*
 * PROTO_UNSAVED_CALLS: nothing, but nobody knows whether its kernels call functions by address.
 * PROTO_UNSAVED_VARIABLES: it has variables or constants. PROTO_UNSAVED_NO_PTX: nobody knows; also
 * where the bytes are no cubin.
 */
enum proto_unsaved cubin_state_unsaved(const uint8_t *cubin, size_t size);

#endif
