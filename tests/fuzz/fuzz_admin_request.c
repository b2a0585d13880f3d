/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Fuzzes one line of the admin socket. Besides memory errors it finds: a refusal
 * without a clean sentence, and a request that was accepted but, written out again,
 * is not the same request.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/supervisor/admin_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_admin_request: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct admin_request request, again;
    char why[300] = "", line[128];
    /* A block of exactly this size, without a NUL behind it. */
    char *copy = malloc(size ? size : 1);
    must(copy != NULL, "no memory");
    memcpy(copy, data, size);
    int result = admin_request_parse(&request, copy, size, why, sizeof why);
    free(copy);
    if (result < 0) {
        must(why[0] != '\0' && memchr(why, '\0', sizeof why) != NULL, "refused without a word");
        return 0;
    }
    must(result == 0 && size < ADMIN_LINE_MAX, "a line that is too long was accepted");
    int length =
        request.kind == ADMIN_KILL
            ? snprintf(line, sizeof line, "{\"request\":\"%s\",\"client\":%u}",
                       admin_kind_name(request.kind), request.client)
            : snprintf(line, sizeof line, "{\"request\":\"%s\"}", admin_kind_name(request.kind));
    must(admin_request_parse(&again, line, (size_t)length, why, sizeof why) == 0 &&
             again.kind == request.kind && again.client == request.client,
         "not read back");
    return 0;
}
