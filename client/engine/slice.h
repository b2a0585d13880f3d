/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * slice: a copy or a fill as commands of bounded size.
 *
 * A command can't be interrupted, and the server chooses between clients after each. So none
 * crosses a multiple of PROTO_SLICE_BYTES on either side, and a long copy does not delay the work
 * of other clients. A driver refuses a copy whose host side lies in two registrations, and host
 * buffers are registered in steps that end at multiples of PROTO_REGISTRATION_BYTES. So in host
 * memory a command crosses none of these either.
 *
 * The stream was begun (stream_begin); the commands follow one another in it. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_SLICE_H
#define GPUSHARE_CLIENT_ENGINE_SLICE_H

#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_stream;

/* Pushes a copy of `count` bytes between two ranges that don't overlap. An error is that of the
 * first command which could not be pushed; those before it are carried out. */
gpushare_error slice_push_copy(struct gpushare_stream *stream, uint64_t destination,
                               uint64_t source, uint64_t count);

/* Pushes a fill of `count` elements of `width` bytes (1, 2 or 4). destination: a multiple of width.
 * Errors as above. */
gpushare_error slice_push_fill(struct gpushare_stream *stream, uint64_t destination, uint32_t value,
                               uint32_t width, uint64_t count);

#endif
