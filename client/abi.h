/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * abi: structs that cross the library's border and begin with `size`. A caller may have
 * been compiled with an older or a newer header: its struct may be shorter or longer than
 * this library's. The api files copy such structs through here; the engine sees only whole
 * structs of its own version. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ABI_H
#define GPUSHARE_CLIENT_ABI_H

#include <stddef.h>

#include "client/gpushare.h"

/* Bytes. No version's public struct will be larger: a greater `size` was never set. */
enum { ABI_STRUCT_MAX = 4096 };

/*
 * Copies *from, `bytes` long, to a caller's struct: as many bytes as its `size` says, which
 * stays as it is; what the caller knows and this library does not becomes zero. to: NULL is
 * refused. what: the argument's name, for the sentence. Returns SUCCESS, or INVALID_VALUE if
 * `size` can't be one; *to is untouched then.
 */
gpushare_error abi_copy_out(void *to, const void *from, size_t bytes, const char *what);

/*
 * Copies a caller's options; members that the caller's struct lacks become zero, which means
 * not asked for. from: NULL for none. Returns SUCCESS, or INVALID_VALUE if `size` can't be one
 * or a member is set that this library does not know.
 */
gpushare_error abi_copy_options(struct gpushare_options *to, const struct gpushare_options *from);

#endif
