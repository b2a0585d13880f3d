/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/cache/compiled.h"

#include <stdatomic.h>
#include <stdlib.h>

struct compiled {
    atomic_uint holds;
    void *code;
    size_t bytes;
};

struct compiled *compiled_new(void *code, size_t bytes)
{
    struct compiled *compiled = malloc(sizeof *compiled);
    if (!compiled) {
        free(code);
        return NULL;
    }
    *compiled = (struct compiled){.holds = 1, .code = code, .bytes = bytes};
    return compiled;
}

const void *compiled_code(const struct compiled *compiled)
{
    return compiled->code;
}

struct compiled *compiled_hold(struct compiled *compiled)
{
    atomic_fetch_add(&compiled->holds, 1);
    return compiled;
}

void compiled_release(struct compiled *compiled)
{
    if (!compiled || atomic_fetch_sub(&compiled->holds, 1) != 1)
        return;
    free(compiled->code);
    free(compiled);
}

size_t compiled_bytes(const struct compiled *compiled)
{
    return compiled->bytes;
}
