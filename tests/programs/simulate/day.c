/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/simulate/day.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/programs/simulate/device.h"

#define MS          UINT64_C(1000000)
#define SECOND      (1000 * MS)
#define HOUR        (3600 * SECOND)
#define CLIENTS_MAX 32 /* maximum of clients on a GPU */
#define USERS       6  /* whose clients they are; each is an account */
#define US          UINT64_C(1000)
#define NEVER       UINT64_MAX

/* Another client's kernel begins so much later, and the server sees ends up to so late. */
#define SWITCH_NS (10 * US)
#define LATE_NS   (100 * US)
/* Less is no wait: within a lease, the server sees an end and submits again. */
#define WAIT_MIN MS

/* A stretch counts if it is at least ten plans of 5 s long. */
#define STRETCH_MIN (50 * SECOND)
/* Errors in thousandths of a point, up to 100 points. */
#define ERROR_BUCKETS 100001

struct visitor {
    struct scheduler_limits limits;
    uint32_t user;                /* 0 to USERS - 1 */
    struct device_client *client; /* NULL: the visitor is away */
    bool wants;
    uint64_t random, seed;
    uint64_t moments;               /* random too, of pauses: their number depends on the mode */
    uint64_t leaves_at, toggles_at; /* while it is away, it comes at leaves_at */
    bool thinks;                    /* it pauses for a moment again and again while it wants */
    uint64_t thought_at;            /* a pause ends; NEVER: it is in none */
    uint64_t paused_since;
    uint64_t began_at, had_before;
    double promised; /* ns promised to it since then */
    uint64_t paused; /* ns since then in short pauses */
    double rate;
    double sliced, sliced_rate; /* the same of what plain time-slicing would give it */
};

/* Of all bursts: what clients had of what was promised. */
struct errors {
    uint32_t count[ERROR_BUCKETS];
    double x, xx, most;
};

struct totals {
    struct errors here, sliced;
    uint64_t waits[DEVICE_WAITS];
    double promised, busy, wait_most, wait_most_request;
    uint32_t stretches, pauses;
    uint64_t kernels;
};

static struct device device;
static struct totals totals;

/* ---- what is promised ---- */

struct part {
    bool takes;
    double most;
};

static bool is_open(const struct visitor *visitor, const struct part *part)
{
    return part->takes && visitor->rate < part->most - 1e-12;
}

/* Splits `left` equally among the users of the visitors that take part, and each user's part
 * equally among its visitors, each up to its most. */
static void split(struct visitor *visitors, uint32_t count, const struct part *parts, double left)
{
    while (left > 1e-9) {
        uint32_t open[USERS] = {0}, users = 0;
        for (uint32_t i = 0; i < count; i++)
            if (is_open(&visitors[i], &parts[i]) && open[visitors[i].user]++ == 0)
                users++;
        if (users == 0)
            return;
        double each = left / users;
        for (uint32_t i = 0; i < count; i++) {
            struct visitor *visitor = &visitors[i];
            if (!is_open(visitor, &parts[i]))
                continue;
            double room = parts[i].most - visitor->rate;
            double more = each / open[visitor->user];
            more = room < more ? room : more;
            visitor->rate += more;
            left -= more;
        }
    }
}

static void promise(int mode, struct visitor *visitors, uint32_t count)
{
    struct part parts[CLIENTS_MAX];
    bool by_request = mode == PROTO_MODE_STRICT || mode == PROTO_MODE_FAIR;
    double left = 1;
    uint32_t wanting = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct visitor *visitor = &visitors[i];
        visitor->rate = visitor->wants && by_request ? visitor->limits.request / 10000.0 : 0;
        left -= visitor->rate;
        parts[i].takes =
            visitor->wants && (mode != PROTO_MODE_STRICT || visitor->limits.request == 0);
        parts[i].most = by_request ? visitor->limits.limit / 10000.0 : 1;
        wanting += visitor->wants;
    }
    split(visitors, count, parts, left);
    for (uint32_t i = 0; i < count; i++)
        visitors[i].sliced_rate = visitors[i].wants ? 1.0 / wanting : 0;
}

/* ---- a stretch of demand ---- */

static void stretch_begins(struct visitor *visitor)
{
    visitor->began_at = device.now;
    visitor->had_before = device_had(&device, visitor->client);
    visitor->promised = visitor->sliced = 0;
    visitor->paused = 0;
}

/* A client that pauses is promised no less than its part of what it would have alone, and no more
 * than its part. The nearest to what it had. */
static double nearest_promised(const struct visitor *visitor, double had)
{
    double alone = had > 0 ? had / (had + (double)visitor->paused) : 1;
    double least = visitor->promised * alone;
    return had < least ? least : had < visitor->promised ? had : visitor->promised;
}

static void note(struct errors *errors, double had, double promised, double span)
{
    double error = 100.0 * (had - promised) / span, x = had / promised;
    error = error < 0 ? -error : error;
    errors->count[error < 100 ? (uint32_t)(error * 1000) : ERROR_BUCKETS - 1]++;
    errors->most = error > errors->most ? error : errors->most;
    errors->x += x;
    errors->xx += x * x;
}

static void stretch_ends(const struct visitor *visitor)
{
    double span = (double)(device.now - visitor->began_at);
    double had = (double)(device_had(&device, visitor->client) - visitor->had_before);
    if (span < (double)STRETCH_MIN || visitor->promised < span * 1e-4)
        return;
    note(&totals.here, had, nearest_promised(visitor, had), span);
    note(&totals.sliced, visitor->sliced, visitor->promised, span);
    totals.stretches++;
}

/* ---- coming and going ---- */

static uint64_t pause_or_burst(struct visitor *visitor)
{
    return device_random_log(&visitor->random, 30 * SECOND, 1200 * SECOND);
}

/* Kernels for a burst of 0.1 to 5 s, by their mean; lengths are drawn on a logarithmic scale. */
static uint64_t short_burst(struct visitor *visitor)
{
    double least = (double)visitor->client->shortest, most = (double)visitor->client->longest;
    double mean = most > least ? (most - least) / log(most / least) : most;
    double burst = (double)device_random_log(&visitor->moments, SECOND / 10, 5 * SECOND);
    return 1 + (uint64_t)(burst / mean);
}

static void give_work(struct visitor *visitor)
{
    visitor->thought_at = NEVER;
    device_work(&device, visitor->client, visitor->thinks ? short_burst(visitor) : UINT64_MAX);
}

static void begin_pause(struct visitor *visitor)
{
    totals.pauses++;
    visitor->paused_since = device.now;
    visitor->thought_at = device.now + device_random_log(&visitor->moments, MS, 50 * MS);
}

static void end_pause(struct visitor *visitor)
{
    visitor->paused += device.now - visitor->paused_since;
    visitor->thought_at = NEVER;
}

static void come(struct visitor *visitor)
{
    struct error why = {0};
    device.account = device_account(&device, visitor->user + 1);
    visitor->client = device_add(&device, &visitor->limits, NULL, 0, visitor->seed, &why);
    if (!visitor->client)
        abort(); /* the requests were drawn so that they fit */
    visitor->client->shortest = device_random_log(&visitor->random, 10 * US, 150 * MS);
    visitor->client->longest = device_random_log(&visitor->random, 150 * MS, 300 * MS);
    visitor->client->user = visitor;
    visitor->thought_at = NEVER;
    visitor->leaves_at = device.now + device_random_log(&visitor->random, HOUR, 8 * HOUR);
    visitor->toggles_at = device.now + pause_or_burst(visitor);
}

static void toggle(struct visitor *visitor)
{
    if (visitor->thought_at != NEVER)
        end_pause(visitor);
    if (visitor->wants)
        stretch_ends(visitor);
    else
        stretch_begins(visitor);
    visitor->wants = !visitor->wants;
    visitor->toggles_at = device.now + pause_or_burst(visitor);
    if (visitor->wants)
        give_work(visitor);
    else
        device_work(&device, visitor->client, 0);
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
    if (!visitor->client)
        return visitor->leaves_at;
    return min(visitor->leaves_at, min(visitor->toggles_at, visitor->thought_at));
}

static void act(struct visitor *visitor)
{
    if (!visitor->client)
        come(visitor);
    else if (visitor->leaves_at <= device.now)
        depart(visitor);
    else if (visitor->toggles_at <= device.now)
        toggle(visitor);
    else {
        end_pause(visitor);
        give_work(visitor);
    }
}

/* Runs until this time, or until a client has done all that it had and pauses. */
static void run_until(uint64_t until)
{
    while (device.now < until) {
        struct device_client *client = device_step(&device, until);
        struct visitor *visitor = client ? client->user : NULL;
        if (visitor && visitor->thinks && visitor->wants && visitor->thought_at == NEVER &&
            !client->pending && client->head == client->tail) {
            begin_pause(visitor);
            return;
        }
    }
}

/* One client in three has no request; one in four of the others has a limit. One client in three
 * pauses for moments. */
static uint32_t draw_visitors(struct visitor *visitors, uint32_t gpu, uint32_t gpus)
{
    uint32_t count = 0, left = PLAN_WHOLE;
    memset(visitors, 0, CLIENTS_MAX * sizeof *visitors);
    for (uint32_t number = gpu; number < DAY_CLIENTS * gpus / DAY_GPUS; number += gpus) {
        struct visitor *visitor = &visitors[count++];
        visitor->random = visitor->seed = number + 1;
        visitor->user = (uint32_t)(device_random(&visitor->random) % USERS);
        uint32_t request = 200 + (uint32_t)(device_random(&visitor->random) % 1800);
        if (request > left || device_random(&visitor->random) % 3 == 0)
            request = 0;
        left -= request;
        uint32_t limit = PLAN_WHOLE;
        if (request && device_random(&visitor->random) % 4 == 0)
            limit = request + (PLAN_WHOLE - request) / 4;
        visitor->limits =
            (struct scheduler_limits){.request = request, .limit = limit, .duty = PLAN_WHOLE};
        visitor->moments = DAY_CLIENTS + number + 1;
        visitor->thinks = device_random(&visitor->moments) % 3 == 0;
        visitor->thought_at = NEVER;
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
    device.switch_ns = SWITCH_NS;
    device.late_most = LATE_NS;
    uint64_t end = device.now + span;
    uint32_t count = draw_visitors(visitors, gpu, gpus);
    while (device.now < end) {
        struct visitor *first = &visitors[0];
        for (uint32_t i = 1; i < count; i++)
            if (next_of(&visitors[i]) < next_of(first))
                first = &visitors[i];
        uint64_t until = next_of(first), from = device.now;
        run_until(min(until, end));
        for (uint32_t i = 0; i < count; i++) {
            visitors[i].promised += visitors[i].rate * (double)(device.now - from);
            visitors[i].sliced += visitors[i].sliced_rate * (double)(device.now - from);
            totals.promised += visitors[i].rate * (double)(device.now - from);
        }
        if (until <= device.now)
            act(first);
        promise(mode, visitors, count);
    }
    for (uint32_t i = 0; i < count; i++)
        if (visitors[i].client)
            depart(&visitors[i]);
    totals.busy += (double)device_busy(&device, 0);
    for (uint32_t i = device_wait_bucket(WAIT_MIN); i < DEVICE_WAITS; i++)
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

static double error_at(const struct errors *errors, double part)
{
    uint32_t seen = 0, at = 0;
    while (at < ERROR_BUCKETS - 1 && (seen += errors->count[at]) < part * totals.stretches)
        at++;
    return at / 1000.0;
}

static struct day_errors errors_of(const struct errors *errors)
{
    return (struct day_errors){
        .median = error_at(errors, 0.5),
        .p99 = error_at(errors, 0.99),
        .most = errors->most,
        .jain = errors->xx > 0 ? errors->x * errors->x / (totals.stretches * errors->xx) : 0,
    };
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
        .errors = errors_of(&totals.here),
        .sliced = errors_of(&totals.sliced),
        .wait_median_ms = wait_at(0.5),
        .wait_p99_ms = wait_at(0.99),
        .wait_most_ms = totals.wait_most / 1e6,
        .wait_most_request_ms = totals.wait_most_request / 1e6,
        .stretches = totals.stretches,
        .pauses = totals.pauses,
        .kernels = totals.kernels,
    };
}
