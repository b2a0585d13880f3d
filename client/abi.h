/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * abi: structs that cross the library's border and begin with `size`. A caller may have been
 * compiled with an older or a newer header, so its struct may be shorter or longer than this
 * library's. The api files copy such structs through here; the engine sees only whole structs of
 * its own version. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ABI_H
#define GPUSHARE_CLIENT_ABI_H

#include <stddef.h>

#include "client/gpushare.h"

/* Bytes. No version of a public struct will be larger, so a greater `size` is an uninitialised
 * one. */
enum { ABI_STRUCT_MAX = 4096 };

/*
 * Copies *from, which is `bytes` long, to a caller's struct. It writes as many bytes as the
 * struct's `size` says, and leaves `size` as it is. Members that the caller knows and this library
 * does not become zero. to: NULL is refused. what: the argument's name, for the sentence. Returns
 * SUCCESS; or INVALID_VALUE if `size` is impossible, and then *to is unchanged.
 */
gpushare_error abi_copy_out(void *to, const void *from, size_t bytes, const char *what);

/*
 * Copies a caller's options. Members that the caller's struct lacks become zero, which means "not
 * asked for". from: NULL for no options. Returns SUCCESS; or INVALID_VALUE if `size` is impossible,
 * or a member that this library does not know is set.
 */
gpushare_error abi_copy_options(struct gpushare_options *to, const struct gpushare_options *from);

#endif
