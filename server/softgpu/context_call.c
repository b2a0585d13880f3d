/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/context_call.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct call_row {
    const char *name;
    enum context_class class;
} call_rows[] = {
#define X(name, call, class) {#call, CONTEXT_##class},
    CONTEXT_CALLS(X)
#undef X
};

_Static_assert(CONTEXT_CALLS_COUNT <= 64, "one bit for each call");

enum context_class context_call_class(enum context_call call)
{
    return call_rows[call].class;
}

static int find_call(const char *name, size_t length)
{
    for (int i = 0; i < CONTEXT_CALLS_COUNT; i++)
        if (strlen(call_rows[i].name) == length && !strncmp(call_rows[i].name, name, length))
            return i;
    return -EINVAL;
}

int context_call_parse(const char *names, uint64_t *calls, const char **wrong)
{
    *calls = 0;
    for (names += strspn(names, " "); *names; names += strspn(names, " ")) {
        size_t length = strcspn(names, " ");
        int call = find_call(names, length);

        if (call < 0) {
            if (wrong)
                *wrong = names;
            return call;
        }
        *calls |= UINT64_C(1) << call;
        names += length;
    }
    return 0;
}
