/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/simulate/day.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/simulate/device.h"

#define MS          UINT64_C(1000000)
#define SECOND      (1000 * MS)
#define HOUR        (3600 * SECOND)
#define CLIENTS_MAX 32 /* maximum of clients on a GPU */

/* A stretch counts if it is at least ten plans of 5 s long. */
#define STRETCH_MIN (50 * SECOND)
/* Errors in thousandths of a point, up to 100 points. */
#define ERROR_BUCKETS 100001

struct visitor {
    struct scheduler_limits limits;
    struct device_client *client; /* NULL: the visitor is away */
    bool wants;
    uint64_t random, seed;
    uint64_t leaves_at, toggles_at; /* while it is away, it comes at leaves_at */
    uint64_t since, had_before;
    double promised; /* ns promised to it since then */
    double rate;
};

struct totals {
    uint32_t errors[ERROR_BUCKETS];
    uint64_t waits[DEVICE_WAITS];
    double x, xx, promised, busy, error_most, wait_most, wait_most_request;
    uint32_t stretches;
    uint64_t kernels;
};

static struct device device;
static struct totals totals;

/* ---- what is promised ---- */

/* Splits `left` equally among the visitors that take part, each up to its limit. */
static void split(struct visitor *visitors, uint32_t count, const bool *takes_part, double left)
{
    while (left > 1e-9) {
        uint32_t open = 0;
        for (uint32_t i = 0; i < count; i++)
            open += takes_part[i] && visitors[i].rate < visitors[i].limits.limit / 10000.0 - 1e-12;
        if (open == 0)
            return;
        double each = left / open;
        for (uint32_t i = 0; i < count; i++) {
            double room = visitors[i].limits.limit / 10000.0 - visitors[i].rate;
            if (!takes_part[i] || room <= 1e-12)
                continue;
            double more = room < each ? room : each;
            visitors[i].rate += more;
            left -= more;
        }
    }
}

static void promise(int mode, struct visitor *visitors, uint32_t count)
{
    bool takes_part[CLIENTS_MAX];
    bool by_request = mode == PROTO_MODE_STRICT || mode == PROTO_MODE_FAIR;
    double left = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct visitor *visitor = &visitors[i];
        visitor->rate = visitor->wants && by_request ? visitor->limits.request / 10000.0 : 0;
        left -= visitor->rate;
        takes_part[i] =
            visitor->wants && (mode != PROTO_MODE_STRICT || visitor->limits.request == 0);
    }
    if (by_request) {
        split(visitors, count, takes_part, left);
        return;
    }
    uint32_t wanting = 0;
    for (uint32_t i = 0; i < count; i++)
        wanting += visitors[i].wants;
    for (uint32_t i = 0; i < count; i++)
        visitors[i].rate = visitors[i].wants ? 1.0 / wanting : 0;
}

/* ---- a stretch of demand ---- */

static void stretch_begins(struct visitor *visitor)
{
    visitor->since = device.now;
    visitor->had_before = device_had(&device, visitor->client);
    visitor->promised = 0;
}

static void stretch_ends(const struct visitor *visitor)
{
    double span = (double)(device.now - visitor->since);
    double had = (double)(device_had(&device, visitor->client) - visitor->had_before);
    if (span < (double)STRETCH_MIN || visitor->promised < span * 1e-4)
        return;
    double error = 100.0 * (had - visitor->promised) / span;
    error = error < 0 ? -error : error;
    double x = had / visitor->promised;
    totals.errors[error < 100 ? (uint32_t)(error * 1000) : ERROR_BUCKETS - 1]++;
    totals.error_most = error > totals.error_most ? error : totals.error_most;
    totals.x += x;
    totals.xx += x * x;
    totals.stretches++;
}

/* ---- coming and going ---- */

static uint64_t pause_or_burst(struct visitor *visitor)
{
    return device_random_log(&visitor->random, 30 * SECOND, 1200 * SECOND);
}

static void come(struct visitor *visitor)
{
    struct error why = {0};
    visitor->client = device_add(&device, &visitor->limits, NULL, 0, visitor->seed, &why);
    if (!visitor->client)
        abort(); /* the requests were drawn so that they fit */
    visitor->client->shortest = device_random_log(&visitor->random, 20 * MS, 150 * MS);
    visitor->client->longest = device_random_log(&visitor->random, 150 * MS, 300 * MS);
    visitor->leaves_at = device.now + device_random_log(&visitor->random, HOUR, 8 * HOUR);
    visitor->toggles_at = device.now + pause_or_burst(visitor);
}

static void toggle(struct visitor *visitor)
{
    if (visitor->wants)
        stretch_ends(visitor);
    else
        stretch_begins(visitor);
    visitor->wants = !visitor->wants;
    visitor->toggles_at = device.now + pause_or_burst(visitor);
    device_work(&device, visitor->client, visitor->wants ? UINT64_MAX : 0);
}

static void depart(struct visitor *visitor)
{
    if (visitor->wants)
        toggle(visitor);
    totals.kernels += visitor->client->kernels;
    double most = (double)visitor->client->unserved_most;
    totals.wait_most = most > totals.wait_most ? most : totals.wait_most;
    if (visitor->limits.request && most > totals.wait_most_request)
        totals.wait_most_request = most;
    device_remove(&device, visitor->client);
    visitor->client = NULL;
    visitor->leaves_at = device.now + device_random_log(&visitor->random, HOUR / 4, 4 * HOUR);
}

static uint64_t next_of(const struct visitor *visitor)
{
    if (visitor->client && visitor->toggles_at < visitor->leaves_at)
        return visitor->toggles_at;
    return visitor->leaves_at;
}

static void act(struct visitor *visitor)
{
    if (!visitor->client)
        come(visitor);
    else if (visitor->leaves_at <= device.now)
        depart(visitor);
    else
        toggle(visitor);
}

/* One client in three has no request; one in four of the others has a limit. */
static uint32_t draw_visitors(struct visitor *visitors, uint32_t gpu, uint32_t gpus)
{
    uint32_t count = 0, left = PLAN_WHOLE;
    memset(visitors, 0, CLIENTS_MAX * sizeof *visitors);
    for (uint32_t number = gpu; number < DAY_CLIENTS * gpus / DAY_GPUS; number += gpus) {
        struct visitor *visitor = &visitors[count++];
        visitor->random = visitor->seed = number + 1;
        uint32_t request = 200 + (uint32_t)(device_random(&visitor->random) % 1800);
        if (request > left || device_random(&visitor->random) % 3 == 0)
            request = 0;
        left -= request;
        uint32_t limit = PLAN_WHOLE;
        if (request && device_random(&visitor->random) % 4 == 0)
            limit = request + (PLAN_WHOLE - request) / 4;
        visitor->limits =
            (struct scheduler_limits){.request = request, .limit = limit, .duty = PLAN_WHOLE};
        visitor->leaves_at = device.now + device_random(&visitor->random) % (4 * HOUR);
    }
    return count;
}

static void run_gpu(int mode, uint64_t span, uint32_t gpu, uint32_t gpus)
{
    struct visitor visitors[CLIENTS_MAX];
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    settings.mode = (enum proto_mode)mode;
    device_open(&device, &settings);
    uint64_t end = device.now + span;
    uint32_t count = draw_visitors(visitors, gpu, gpus);
    while (device.now < end) {
        struct visitor *first = &visitors[0];
        for (uint32_t i = 1; i < count; i++)
            if (next_of(&visitors[i]) < next_of(first))
                first = &visitors[i];
        uint64_t until = next_of(first), from = device.now;
        device_run(&device, until < end ? until : end);
        for (uint32_t i = 0; i < count; i++) {
            visitors[i].promised += visitors[i].rate * (double)(device.now - from);
            totals.promised += visitors[i].rate * (double)(device.now - from);
        }
        if (until <= end)
            act(first);
        promise(mode, visitors, count);
    }
    for (uint32_t i = 0; i < count; i++)
        if (visitors[i].client)
            depart(&visitors[i]);
    totals.busy += (double)device_busy(&device, 0);
    for (int i = 0; i < DEVICE_WAITS; i++)
        totals.waits[i] += device.waits[i];
}

/* ---- what came of it ---- */

static double wait_at(double part)
{
    uint64_t all = 0, seen = 0;
    uint32_t at = 0;
    for (int i = 0; i < DEVICE_WAITS; i++)
        all += totals.waits[i];
    while (at < DEVICE_WAITS - 1 && (double)(seen += totals.waits[at]) < part * (double)all)
        at++;
    return device_bucket_wait(at) / 1e6;
}

static double error_at(double part)
{
    uint32_t seen = 0, at = 0;
    while (at < ERROR_BUCKETS - 1 && (seen += totals.errors[at]) < part * totals.stretches)
        at++;
    return at / 1000.0;
}

void day_run(int mode, uint64_t span_ns, uint32_t gpus, struct day_result *result)
{
    static const char *const names[DAY_MODES] = {"concurrent", "strict", "fair", "turns"};
    memset(&totals, 0, sizeof totals);
    for (uint32_t gpu = 0; gpu < gpus; gpu++)
        run_gpu(mode, span_ns, gpu, gpus);
    *result = (struct day_result){
        .mode = names[mode],
        .busy = totals.promised > 0 ? totals.busy / totals.promised : 0,
        .error_median = error_at(0.5),
        .error_p99 = error_at(0.99),
        .error_most = totals.error_most,
        .wait_median_ms = wait_at(0.5),
        .wait_p99_ms = wait_at(0.99),
        .wait_most_ms = totals.wait_most / 1e6,
        .wait_most_request_ms = totals.wait_most_request / 1e6,
        .jain = totals.xx > 0 ? totals.x * totals.x / (totals.stretches * totals.xx) : 0,
        .stretches = totals.stretches,
        .kernels = totals.kernels,
    };
}
