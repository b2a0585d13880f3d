/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Fuzzes one line of the admin socket. Besides memory errors it finds a refusal without a clean
 * sentence, and a request that was accepted but is another request after it was written out and
 * read again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/supervisor/admin/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_admin_request: %s\n", what);
    abort();
}

/* Whatever the line, no value beyond these may reach the server. */
static void must_be_in_range(const struct admin_request *request)
{
    const struct allowance *change = &request->change;
    const struct schedule *schedule = &request->schedule;
    if (request->kind == ADMIN_TRACE)
        must(request->milliseconds >= 1 && request->milliseconds <= 600000, "trace's time");
    if (request->kind != ADMIN_SET)
        return;
    if (request->target == ADMIN_TARGET_GPU) {
        must(request->parts && request->parts <= SCHEDULE_WHOLE, "parts of a schedule");
        must(!(request->parts & SCHEDULE_MODE) || schedule->mode < PROTO_MODE_COUNT, "mode");
        must(!(request->parts & SCHEDULE_LEASE) ||
                 (schedule->lease_ns >= 5000000 && schedule->lease_ns <= UINT64_C(10000000000)),
             "lease");
        must(!(request->parts & SCHEDULE_PRECISION) ||
                 (schedule->precision >= 100 && schedule->precision <= 5000),
             "precision");
        must(!(request->parts & SCHEDULE_QUANTUM) ||
                 (schedule->quantum_ns >= 5000000 &&
                  schedule->quantum_ns <= UINT64_C(3600000000000)),
             "quantum");
        return;
    }
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_range *shares =
            allowance_resource(i)->unit == DIALECT_SHARE ? &change->of[i] : &change->part[i];
        must((shares->request <= ALLOWANCE_WHOLE || shares->request == ALLOWANCE_UNSET) &&
                 (shares->limit <= ALLOWANCE_WHOLE || shares->limit == ALLOWANCE_UNSET),
             "shares");
    }
    must(change->priority <= 1000 || change->priority == ALLOWANCE_UNSET, "priority");
}

/* A request with a name and at most a number must be the same after it was written and read
 * again. */
static void must_be_read_back(const struct admin_request *request)
{
    static const char *const whoms[] = {"", "client", "user", "gpu"};
    struct admin_request again;
    struct error why;
    char line[128];
    if (request->kind == ADMIN_SET || request->kind == ADMIN_TRACE)
        return;
    int length = request->target == ADMIN_TARGET_NONE
                     ? snprintf(line, sizeof line, "{\"request\":\"%s\"}",
                                admin_request_kind_name(request->kind))
                     : snprintf(line, sizeof line, "{\"request\":\"%s\",\"%s\":%u}",
                                admin_request_kind_name(request->kind), whoms[request->target],
                                request->number);
    must(admin_request_parse(&again, line, (size_t)length, &why) == 0 &&
             again.kind == request->kind && again.target == request->target &&
             again.number == request->number,
         "not read back");
    admin_request_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct admin_request request;
    struct error why = {0};
    /* A block of exactly this size, without a NUL behind it. */
    char *copy = malloc(size ? size : 1);
    must(copy != NULL, "no memory");
    memcpy(copy, data, size);
    uint32_t error = admin_request_parse(&request, copy, size, &why);
    free(copy);
    if (error) {
        must(why.text[0] != '\0' && memchr(why.text, '\0', sizeof why.text) != NULL,
             "refused without a word");
        return 0;
    }
    must(size < ADMIN_LINE_MAX, "a line that is too long was accepted");
    must_be_in_range(&request);
    must_be_read_back(&request);
    admin_request_free(&request);
    return 0;
}
