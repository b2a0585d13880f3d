/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ptx.h"
#include "protocol.h"

struct rewrite {
    struct ptx_module *tree; /* NULL: not understood */
    const char *text;
    size_t length;
};

uint32_t rewrite_open(struct rewrite **out, const char *text, size_t length, char *why,
                      size_t why_size)
{
    struct rewrite *rewrite = calloc(1, sizeof *rewrite);
    struct ptx_error error;
    if (!rewrite) {
        snprintf(why, why_size, "no memory for a module");
        return PROTO_ERROR_SERVER_RESOURCES;
    }
    rewrite->text = text;
    rewrite->length = length;
    if (ptx_read(text, length, &rewrite->tree, &error) < 0)
        rewrite->tree = NULL;
    *out = rewrite;
    return 0;
}

void rewrite_close(struct rewrite *rewrite)
{
    if (!rewrite)
        return;
    if (rewrite->tree)
        ptx_destroy(rewrite->tree);
    free(rewrite);
}

uint64_t rewrite_global_bytes(const struct rewrite *rewrite)
{
    (void)rewrite;
    return 0;
}

uint32_t rewrite_place(struct rewrite *rewrite, uint64_t base, char **text, char *why,
                       size_t why_size)
{
    (void)base;
    *text = malloc(rewrite->length + 1);
    if (!*text) {
        snprintf(why, why_size, "no memory for the module's text");
        return PROTO_ERROR_SERVER_RESOURCES;
    }
    memcpy(*text, rewrite->text, rewrite->length);
    (*text)[rewrite->length] = 0;
    return 0;
}

const void *rewrite_initial(const struct rewrite *rewrite)
{
    (void)rewrite;
    return NULL;
}

bool rewrite_find(const struct rewrite *rewrite, const char *name, uint64_t *address,
                  uint64_t *count)
{
    (void)rewrite;
    (void)name;
    (void)address;
    (void)count;
    return false;
}

const char *rewrite_why_stays(const struct rewrite *rewrite, const char *name)
{
    (void)rewrite;
    (void)name;
    return NULL;
}

uint32_t rewrite_kernel_count(const struct rewrite *rewrite)
{
    uint32_t count = 0;
    for (uint32_t i = 0; rewrite->tree && i < rewrite->tree->function_count; i++)
        count += rewrite->tree->functions[i]->entry && rewrite->tree->functions[i]->defined;
    return count;
}

bool rewrite_layout(const struct rewrite *rewrite, const char *kernel, uint32_t *pairs,
                    uint32_t *count, uint64_t *end)
{
    const struct ptx_function *function =
        rewrite->tree ? ptx_find_function(rewrite->tree, kernel) : NULL;
    if (!function || !function->entry || function->param_count > 4096)
        return false;
    for (uint32_t i = 0; i < function->param_count; i++) {
        pairs[2 * i] = (uint32_t)ptx_param_offset(function, i);
        pairs[2 * i + 1] = (uint32_t)function->params[i]->bytes;
    }
    *count = function->param_count;
    *end = ptx_param_offset(function, function->param_count);
    return true;
}
