/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/constants.h"

#include <stddef.h>

#include "common/cuda/ptx.h"
#include "common/util.h"
#include "server/worker/image/rewrite.h"

/* A constant that is declared and not defined lies in another module; the driver refuses it. */
static bool has_twin(const struct ptx_variable *variable)
{
    return variable->space == PTX_SPACE_CONST && variable->linkage != PTX_LINK_EXTERN &&
           variable->bytes && variable->bytes <= REWRITE_CONSTANT_BYTES;
}

static bool next_constant(struct constants *constants, struct constant *constant)
{
    const struct ptx_module *tree = constants->tree;
    while (tree && constants->next < tree->variable_count) {
        const struct ptx_variable *variable = tree->variables[constants->next++];
        if (!has_twin(variable))
            continue;
        uint64_t align = min(max(variable->align, 1u), (uint32_t)REWRITE_ALIGN);
        uint64_t at = (constants->end + align - 1) & ~(align - 1);
        constants->end = at + variable->bytes;
        *constant =
            (struct constant){.name = variable->name, .address = at, .bytes = variable->bytes};
        return true;
    }
    return false;
}

uint64_t constants_bytes(const struct ptx_module *tree)
{
    struct constants constants = {.tree = tree};
    struct constant constant;
    uint64_t bytes = 0;
    while (next_constant(&constants, &constant)) {
        bytes += constant.bytes;
        if (bytes > REWRITE_CONSTANT_BYTES)
            return 0;
    }
    return constants.end;
}

struct constants constants_begin(const struct ptx_module *tree, uint64_t base)
{
    return (struct constants){.tree = constants_bytes(tree) ? tree : NULL, .end = base};
}

bool constants_next(struct constants *constants, struct constant *constant)
{
    return next_constant(constants, constant);
}
