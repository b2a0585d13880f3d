/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Takes any bytes as PTX texts with lines "----" between them, and links them: they are refused
 * with a reason, or what they make is a text that the reader understands and that can be linked
 * again. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/link/ptx_merge.h"

static const char between[] = "\n----\n";

static bool add(struct ptx_merge *merge, const char *text, size_t length, struct error *why)
{
    bool whole;
    const struct ptx_merge_input input = {text, length, NULL};
    return ptx_merge_offer(merge, &input, &whole, why) == 0 && ptx_merge_accept(merge) == 0;
}

static bool add_all(struct ptx_merge *merge, const char *data, size_t size, struct error *why)
{
    const char *end = data + size;
    for (const char *next; data; data = next) {
        const char *line = memmem(data, (size_t)(end - data), between, sizeof between - 1);
        next = line ? line + sizeof between - 1 : NULL;
        if (!add(merge, data, (size_t)((line ? line : end) - data), why))
            return false;
    }
    return true;
}

static void link_again(const char *text, size_t length)
{
    struct ptx_merge *merge = ptx_merge_create();
    struct error why;
    char *again;
    if (!merge)
        return;
    if (!add(merge, text, length, &why) || ptx_merge_finish(merge, &again, &length, &why))
        abort();
    free(again);
    ptx_merge_destroy(merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ptx_merge *merge = ptx_merge_create();
    struct error why = {0};
    char *text;
    size_t length;
    if (!merge)
        return 0;
    if (!add_all(merge, (const char *)data, size, &why) ||
        ptx_merge_finish(merge, &text, &length, &why)) {
        if (!why.text[0])
            abort();
    } else {
        link_again(text, length);
        free(text);
    }
    ptx_merge_destroy(merge);
    return 0;
}
