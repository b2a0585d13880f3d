/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/abi.h"

#include <string.h>

#include "client/session/failure.h"
#include "common/messages.h"
#include "common/util.h"
#include "protocol.h"

/* The public header includes no other, so it repeats the protocol's modes. */
_Static_assert((int)GPUSHARE_MODE_CONCURRENT == (int)PROTO_MODE_CONCURRENT, "concurrent");
_Static_assert((int)GPUSHARE_MODE_STRICT == (int)PROTO_MODE_STRICT, "strict");
_Static_assert((int)GPUSHARE_MODE_FAIR == (int)PROTO_MODE_FAIR, "fair");
_Static_assert((int)GPUSHARE_MODE_TURNS == (int)PROTO_MODE_TURNS, "turns");
_Static_assert(PROTO_MODE_COUNT == 4, "the public header lacks a mode");

gpushare_error abi_copy_out(void *to, const void *from, size_t bytes, const char *what)
{
    size_t size;
    if (!to)
        return failure(MESSAGE(argument_null), what);
    memcpy(&size, to, sizeof size);
    if (size <= sizeof size || size > ABI_STRUCT_MAX)
        return failure(MESSAGE(struct_size), what, size);
    size_t known = min(size, bytes);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, known - sizeof size);
    if (size > bytes)
        memset((char *)to + bytes, 0, size - bytes);
    return GPUSHARE_SUCCESS;
}

gpushare_error abi_copy_options(struct gpushare_options *to, const struct gpushare_options *from)
{
    memset(to, 0, sizeof *to);
    if (!from)
        return GPUSHARE_SUCCESS;
    if (from->size < offsetof(struct gpushare_options, device) + sizeof from->device ||
        from->size > ABI_STRUCT_MAX)
        return failure(MESSAGE(options_size), from->size);
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    /* A limit in a member that this library does not know must not be ignored silently. */
    const unsigned char *rest = (const unsigned char *)from;
    for (size_t i = sizeof *to; i < from->size; i++)
        if (rest[i])
            return failure(MESSAGE(options_newer), GPUSHARE_VERSION);
    return GPUSHARE_SUCCESS;
}
