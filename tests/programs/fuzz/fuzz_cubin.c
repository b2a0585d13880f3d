/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Takes any bytes as a cubin, and asks for all that its tables say. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "server/worker/image/cubin.h"
#include "server/worker/image/cubin_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t pairs[2 * PROTO_PARAMETER_COUNT_MAX], count;
    uint64_t end;
    const enum proto_unsaved unsaved = cubin_state_unsaved(data, size);
    cubin_is_whole(data, size);
    cubin_names(data, size, "__cudaCDP2LaunchDevice");
    cubin_layout(data, size, "k", pairs, &count, &end);
    /* A module with variables must not be loaded again as if it had none. */
    if (unsaved == PROTO_UNSAVED_CALLS && cubin_variable_bytes(data, size))
        abort();
    return 0;
}
