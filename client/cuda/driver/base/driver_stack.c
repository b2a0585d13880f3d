/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/engine/connection.h"
#include "client/engine/launch.h"
#include "client/engine/module.h"
#include "client/engine/stream.h"

/* Where it stores and where it loads are parameters, so no compiler can do without the array. */
static const char text_format[] =
    ".version 6.3\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry gpushare_stack(.param .u64 at, .param .u64 out)\n"
    "{\n"
    "    .local .align 16 .b8 array[%" PRIu64 "];\n"
    "    .reg .pred %%p;\n"
    "    .reg .b32 %%r;\n"
    "    .reg .b64 %%at, %%out, %%array;\n"
    "    ld.param.u64 %%at, [at];\n"
    "    ld.param.u64 %%out, [out];\n"
    "    mov.u64 %%array, array;\n"
    "    add.u64 %%array, %%array, %%at;\n"
    "    mov.u32 %%r, 7;\n"
    "    st.local.u8 [%%array], %%r;\n"
    "    setp.eq.u64 %%p, %%out, 0;\n"
    "    @%%p bra done;\n"
    "    ld.local.u8 %%r, [%%array+8];\n"
    "    st.global.u8 [%%out], %%r;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

uint64_t driver_stack_limit(const struct driver_stack *stack)
{
    uint64_t limit = atomic_load(&stack->limit);
    return limit ? limit : DRIVER_STACK_BYTES;
}

/* A stream of its own, so that it stands behind no work of the program's. */
static gpushare_error run_kernel(gpushare_connection *connection, gpushare_module *module)
{
    static const struct gpushare_dim one = {1, 1, 1};
    uint64_t nowhere = 0;
    void *parameters[] = {&nowhere, &nowhere};
    gpushare_function *function;
    gpushare_stream *stream;
    gpushare_error error = module_find_function(module, "gpushare_stack", &function);
    if (error == GPUSHARE_SUCCESS)
        error = stream_open(connection, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream);
    if (error != GPUSHARE_SUCCESS)
        return error;
    error = launch_kernel(function, one, one, 0, stream, parameters);
    if (error == GPUSHARE_SUCCESS)
        error = stream_wait_all(stream);
    gpushare_error retired = stream_retire(stream);
    return error == GPUSHARE_SUCCESS ? retired : error;
}

static gpushare_error make_room(gpushare_connection *connection, uint64_t bytes)
{
    char text[sizeof text_format + 32];
    gpushare_module *module;
    snprintf(text, sizeof text, text_format, bytes);
    gpushare_error error = module_load_image(connection, text, strlen(text), &module);
    if (error != GPUSHARE_SUCCESS)
        return error;
    error = run_kernel(connection, module);
    gpushare_error unloaded = module_unload(module);
    return error == GPUSHARE_SUCCESS ? unloaded : error;
}

gpushare_error driver_stack_set_limit(struct driver_stack *stack, gpushare_connection *connection,
                                      uint64_t bytes)
{
    if (bytes > DRIVER_STACK_BYTES_MAX)
        return GPUSHARE_ERROR_INVALID_VALUE;
    if (bytes > DRIVER_STACK_BYTES) {
        gpushare_error error = make_room(connection, bytes);
        if (error != GPUSHARE_SUCCESS)
            return error;
    }
    atomic_store(&stack->limit, bytes);
    return GPUSHARE_SUCCESS;
}

void driver_stack_forget(struct driver_stack *stack)
{
    atomic_store(&stack->limit, 0);
}
