/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/waiting.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "client/tools/live/overview.h"
#include "client/tools/live/row.h"
#include "common/clock.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"

#define BETWEEN_NS UINT64_C(500000000)

enum { LINE = 600 };

/* "GPU 0: clients: 2: 7 'train' (alice), 9 'serve' (bob)" of one GPU. */
static size_t name_clients(const struct overview *overview, json_int_t gpu, char *line, size_t room)
{
    const json_t *clients = json_object_get(overview->sample.after, "clients"), *client;
    size_t used = 0;
    struct row row;
    for (size_t i = 0; (client = json_array_get(clients, i)) && used < room; i++) {
        row_read(&row, overview->status, &overview->sample, client);
        if (row.device == gpu)
            used += (size_t)snprintf(line + used, room - used, "%s%lld '%s' (%s)",
                                     used ? ", " : ": ", (long long)row.client, row.name, row.user);
    }
    return used;
}

static void report(FILE *progress, const char *line, char before[LINE])
{
    if (strcmp(line, before) == 0)
        return;
    strcpy(before, line);
    fprintf(progress, "%s\n", line);
    fflush(progress);
}

/* Brings the answer up to date. Returns how many clients there are; -1: one of the GPUs takes
 * clients again, whose number *gpu becomes. */
static long count_clients(const struct overview *overview, json_t *answer, json_int_t *gpu,
                          char line[LINE])
{
    json_t *gpus = json_object_get(answer, "gpus"), *one;
    json_int_t all = 0;
    size_t used = 0;
    line[0] = '\0';
    for (size_t i = 0; (one = json_array_get(gpus, i)); i++) {
        *gpu = json_integer_value(json_object_get(one, "gpu"));
        const json_t *device = row_device(overview->status, *gpu);
        const json_t *clients = json_object_get(device, "clients");
        if (!json_is_true(json_object_get(device, "drained")))
            return -1;
        json_object_set_new(one, "clients", json_integer(json_integer_value(clients)));
        all += json_integer_value(clients);
        if (json_integer_value(clients) == 0 || used >= LINE)
            continue;
        used += (size_t)snprintf(line + used, LINE - used, "%sGPU %lld, clients: %lld",
                                 used ? "; " : "", (long long)*gpu,
                                 (long long)json_integer_value(clients));
        if (used < LINE)
            used += name_clients(overview, *gpu, line + used, LINE - used);
    }
    return (long)all;
}

/* The last look comes when the time is over. Returns false if there was no time left. */
static bool sleep_until(uint64_t end)
{
    const uint64_t now = clock_now();
    if (now >= end)
        return false;
    const uint64_t left = min(end - now, BETWEEN_NS);
    nanosleep(&(struct timespec){.tv_nsec = (long)left}, NULL);
    return true;
}

enum admin_outcome waiting_run(const char *socket, json_t *answer, uint64_t limit_ns,
                               FILE *progress, json_t **failure)
{
    const uint64_t end = limit_ns ? clock_now() + limit_ns : UINT64_MAX;
    struct overview overview = {0};
    char line[LINE], before[LINE] = "", limit[UNITS_TEXT];
    enum admin_outcome outcome;
    *failure = NULL;
    while ((outcome = overview_take(&overview, socket, failure)) == ADMIN_OK) {
        json_int_t gpu = 0;
        long left = count_clients(&overview, answer, &gpu, line);
        if (left < 0) {
            *failure =
                admin_client_error("not_ready", MESSAGE_TEXT(ctl_drain_over), (long long)gpu);
            outcome = ADMIN_FAILED;
        }
        if (left <= 0)
            break;
        if (progress)
            report(progress, line, before);
        if (sleep_until(end))
            continue;
        *failure = admin_client_error("not_ready", MESSAGE_TEXT(ctl_drain_late),
                                      units_format_duration(limit_ns, limit), line);
        outcome = ADMIN_FAILED;
        break;
    }
    overview_free(&overview);
    return outcome;
}
