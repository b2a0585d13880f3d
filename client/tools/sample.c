/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/sample.h"

#include <time.h>

#include "client/tools/admin_client.h"
#include "common/clock.h"
#include "common/units.h"

#define UNKNOWN (-1.0)

static json_t *ask_clients(const char *socket)
{
    json_t *request = json_pack("{s:s}", "request", "clients"), *answer = NULL;
    if (request && admin_client_ask(socket, request, &answer, NULL) != ADMIN_OK) {
        json_decref(answer);
        answer = NULL;
    }
    json_decref(request);
    return answer;
}

/* The time that the first look takes is time between the two. */
static void sleep_until(uint64_t moment)
{
    const uint64_t now = clock_now(), left = moment > now ? moment - now : 0;
    nanosleep(&(struct timespec){.tv_sec = (time_t)(left / UNITS_SECOND),
                                 .tv_nsec = (long)(left % UNITS_SECOND)},
              NULL);
}

void sample_take(struct sample *sample, const char *socket, json_t *first, uint64_t first_at)
{
    const uint64_t asked_at = first_at ? first_at : clock_now();
    *sample = (struct sample){.before = first ? json_incref(first) : ask_clients(socket)};
    if (json_array_size(json_object_get(sample->before, "clients")) > 0) {
        sleep_until(asked_at + SAMPLE_BETWEEN_NS);
        sample->after = ask_clients(socket);
    }
    if (!sample->after)
        sample->after = json_incref(sample->before);
}

void sample_free(struct sample *sample)
{
    json_decref(sample->before);
    json_decref(sample->after);
    *sample = (struct sample){0};
}

/* The row of the same client in the first answer; NULL: it came later. */
static const json_t *find_before(const struct sample *sample, const json_t *client)
{
    const json_t *rows = json_object_get(sample->before, "clients"), *row;
    const json_t *number = json_object_get(client, "client");
    const json_int_t wanted = json_integer_value(number);
    size_t low = 0, high = json_array_size(rows);
    /* A server lists its clients by their numbers. */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        row = json_array_get(rows, middle);
        const json_int_t found = json_integer_value(json_object_get(row, "client"));
        if (found == wanted)
            return row;
        if (found < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    /* It is new, or the list has another order. */
    for (size_t i = 0; (row = json_array_get(rows, i)); i++)
        if (json_equal(json_object_get(row, "client"), number))
            return row;
    return NULL;
}

double sample_client_share(const struct sample *sample, const json_t *client)
{
    const json_t *before = find_before(sample, client);
    const json_t *first = json_object_get(before, "gpu_time_seconds");
    const json_t *last = json_object_get(client, "gpu_time_seconds");
    if (!json_is_number(first) || !json_is_number(last))
        return UNKNOWN;
    double worked = json_number_value(last) - json_number_value(first);
    double passed = json_number_value(json_object_get(client, "connected_seconds")) -
                    json_number_value(json_object_get(before, "connected_seconds"));
    if (!(passed > 0) || !(worked >= 0))
        return UNKNOWN;
    /* Work counts when it has ended, so a long kernel comes to more than the time between. */
    return worked < passed ? worked / passed : 1;
}

/* user: its uid; NULL: all clients count. */
static struct sample_use use_of(const struct sample *sample, const json_t *user,
                                const json_t *device)
{
    static const struct sample_use unknown = {UNKNOWN, UNKNOWN};
    const json_t *rows = json_object_get(sample->after, "clients"), *row;
    struct sample_use use = {0};
    for (size_t i = 0; (row = json_array_get(rows, i)); i++) {
        const json_t *now = json_object_get(row, "multiprocessors_now");
        if (!json_equal(json_object_get(row, "device"), device) ||
            (user && !json_equal(json_object_get(row, "uid"), user)))
            continue;
        double share = sample_client_share(sample, row);
        if (share < 0 || !json_is_number(now))
            return unknown;
        use.time += share;
        use.multiprocessors += share * json_number_value(now);
    }
    /* Kernels of several clients run at once in some modes. */
    use.time = use.time < 1 ? use.time : 1;
    return rows ? use : unknown;
}

double sample_device_share(const struct sample *sample, const json_t *device)
{
    const struct sample_use use = use_of(sample, NULL, json_object_get(device, "device"));
    const double all = json_number_value(json_object_get(device, "multiprocessors"));
    if (!(all > 0) || use.multiprocessors < 0)
        return UNKNOWN;
    return use.multiprocessors < all ? use.multiprocessors / all : 1;
}

struct sample_use sample_user_use(const struct sample *sample, const json_t *user,
                                  const json_t *device)
{
    return use_of(sample, user, device);
}
