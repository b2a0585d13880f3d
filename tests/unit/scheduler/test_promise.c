/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The promise of time (docs/sharing.md), held against random mixes on the simulated device: in
 * every window of ten plans, at any offset, in which each pause of a client is shorter than a tenth
 * of a plan,
 *
 *   strict   request * d - e <= got <= request + e
 *   fair     request * d - e <= got
 *
 * got is what the client's kernels had of the window, as the device counted it. e is two leases and
 * the mix's longest kernel. The scheduler's plan, credit and charges are not asked.
 *
 * d is what the same program with the same draws has on a device of its own, over as many plans.
 * Where pauses are longer than usual in a window, the client is owed as much as brings it as far.
 *
 * In half of the mixes clients come and go while others work; one that left is judged up to then.
 * In half of the mixes accounts have a request of more than their clients', or a limit, and clients
 * without a request. The clients of an account with a limit had together, in every such window,
 *
 *   had <= limit + one kernel + a hundredth
 *
 * The clients without a request of an account with one have what its other clients' requests leave
 * of it, together, in every such window in which one of them always has work.
 *
 * It plays the same mixes each time. With $TEST_MIXES it plays so many, from $TEST_SEED on; with
 * $TEST_GOES_ON, too, it plays all of them and prints the worst.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/support/seed.h"
#include "tests/programs/simulate/device.h"

#define MS    UINT64_C(1000000)
#define NEVER UINT64_MAX

enum {
    PROGRAMS = 40,
    OWNERS = 4,
    PLANS = 24, /* of a mix */
    WINDOW_PLANS = 10,
    WINDOW_STEPS = 7, /* windows begin so often in a plan; a prime, so at other moments of each */
    SPANS_MAX = 12000,
    MIXES = 2000,
};
/* A client's smallest limit without a request, in hundredths of a per cent. */
#define LIMIT_LEAST 500u
/* The worker's completer takes what is known so often. */
#define TAKEN_NS (5 * MS)

struct span {
    uint64_t from, to;
};

struct spans {
    uint32_t count;
    struct span of[SPANS_MAX];
};

/* A client, and what it does: bursts of kernels with pauses between. */
struct program {
    struct device_client *client; /* NULL: not there yet, or gone */
    uint32_t number, request, limit, owner;
    uint64_t comes, delay;       /* when it comes; NEVER: it has. It gets work so much later */
    uint64_t came, leaves, left; /* NEVER: it stays, it is there */
    uint64_t wakes;              /* when it gets work; NEVER: it has some */
    uint32_t burst_most;
    uint64_t pause_least, pause_most;
    uint64_t random, ran_ns;
    uint64_t first_random, kernel_seed; /* its draws again, for a run alone */
    uint64_t shortest, longest;         /* kernels */
    uint64_t paused_since;              /* NEVER: it has work */
    struct spans kernels, pauses;
};

static struct device device, lonely;
static struct program programs[PROGRAMS];
static struct {
    uint64_t seed, random;
    struct scheduler_schedule settings;
    uint64_t plan, kernel, start;
    uint32_t count;
    uint64_t dies, taken; /* when the next hand-over is, and what is taken before; NEVER: none */
    struct spans downs;   /* in which nobody served */
    struct device_carried carried;
    /* Choices of their own, so that mixes without such clients and accounts stay the same. */
    uint64_t extra;
    bool moves;  /* clients come and go */
    bool limits; /* clients have limits */
    struct shares {
        uint32_t request, limit; /* of the account; 0 and PLAN_WHOLE: none */
    } shares[OWNERS + 1];        /* by owner */
} mix;

/* The worst of all mixes, in points beyond e; below 0: within. */
static struct worst {
    double points;
    uint64_t seed;
} less_strict, more_strict, less_fair, more_than_limit, more_of_account, less_of_account;
/* Of all mixes: hand-overs, clients that came later, windows of clients that left, and windows of
 * accounts with a limit and with a request. */
static uint32_t hand_overs, comers, left_windows, limit_windows, account_windows, rest_windows;

static uint64_t below(uint64_t bound)
{
    return device_random(&mix.random) % bound;
}

static bool one_in(uint64_t n)
{
    return below(n) == 0;
}

static uint64_t extra_below(uint64_t bound)
{
    return device_random(&mix.extra) % bound;
}

/* ---- who is there ---- */

static void choose_pauses(struct program *program)
{
    uint64_t tenth = mix.plan / 10;
    program->burst_most = 1;
    switch (below(4)) {
    case 0: /* always something to do */
        program->pause_least = program->pause_most = 0;
        return;
    case 1: /* launch, synchronize, think */
        program->pause_most = device_random_log(&mix.random, tenth / 1000, tenth / 2);
        break;
    case 2: /* bursts */
        program->burst_most = 1 + (uint32_t)below(40);
        program->pause_most = device_random_log(&mix.random, tenth / 1000, tenth);
        break;
    default: /* now and then nothing for long */
        program->burst_most = 1 + (uint32_t)below(100);
        program->pause_most = 3 * mix.plan;
        break;
    }
    program->pause_least = max(program->pause_most / 100, UINT64_C(1000));
    program->pause_most -= one_in(2) ? 0 : program->pause_most / 2;
}

/* To be called when a client is there: an account without clients is not kept. */
static void set_account(const struct program *program)
{
    const struct shares *shares = &mix.shares[program->owner];
    struct scheduler_account *account = device_account(&device, program->owner);
    struct error why = {0};
    if (account->time_request == shares->request && account->time_limit == shares->limit)
        return;
    if (scheduler_account_set(&device.scheduler, account, shares->request, shares->limit,
                              device.now, &why)) {
        print_error("mix %" PRIu64 ": owner %u: %s\n", mix.seed, program->owner, why.text);
        abort();
    }
}

static void come(struct program *program)
{
    struct error why = {0};
    struct scheduler_limits limits = {
        .request = program->request, .limit = program->limit, .duty = PLAN_WHOLE};
    program->random = program->first_random = device_random(&mix.random);
    device.account = device_account(&device, program->owner);
    program->kernel_seed = device_random(&mix.random);
    program->client = device_add(&device, &limits, NULL, 0, program->kernel_seed, &why);
    if (!program->client) {
        print_error("mix %" PRIu64 ": %s\n", mix.seed, why.text);
        abort();
    }
    set_account(program);
    program->client->user = program;
    uint64_t least = mix.plan / 400;
    program->client->longest = device_random_log(&mix.random, least, mix.kernel);
    program->client->shortest = one_in(2) ? program->client->longest : least;
    program->longest = program->client->longest;
    program->shortest = program->client->shortest;
    program->came = device.now;
    program->comes = NEVER;
    program->wakes = device.now + program->delay;
    program->paused_since = device.now;
    choose_pauses(program);
    comers += device.now > mix.start;
}

/* Half of the limits are a few points above the request. */
static uint32_t choose_limit(uint32_t request)
{
    if (!mix.limits || extra_below(2))
        return PLAN_WHOLE;
    uint32_t more = (uint32_t)extra_below(extra_below(2) ? 600 : 4000);
    return max(min(request + more, (uint32_t)PLAN_WHOLE), LIMIT_LEAST);
}

/* Half of those that leave have been there for long enough to be judged. */
static void announce(uint32_t request, uint32_t owner, uint64_t when, uint64_t delay)
{
    struct program *program = &programs[mix.count++];
    *program = (struct program){.number = mix.count - 1, .request = request, .owner = owner};
    program->limit = choose_limit(request);
    program->comes = when;
    program->delay = delay;
    program->leaves = program->left = program->wakes = program->paused_since = NEVER;
    if (mix.moves && extra_below(3) == 0)
        program->leaves =
            when + (extra_below(2) ? WINDOW_PLANS * mix.plan + extra_below(4 * mix.plan)
                                   : 1 + extra_below(WINDOW_PLANS * mix.plan));
    if (when <= device.now)
        come(program);
}

static uint64_t choose_coming(void)
{
    return device.now + (mix.moves && extra_below(3) == 0 ? extra_below(8 * mix.plan) : 0);
}

/* An account's request is that of its clients or more. A limit is some points above that. */
static void choose_shares(const uint32_t own[OWNERS + 1])
{
    uint32_t spare = PLAN_WHOLE;
    for (uint32_t owner = 1; owner <= OWNERS; owner++)
        spare -= own[owner];
    for (uint32_t owner = 1; owner <= OWNERS; owner++) {
        struct shares *shares = &mix.shares[owner];
        uint32_t more = (uint32_t)extra_below(spare + 1);
        if (extra_below(2) && own[owner]) {
            shares->request = own[owner] + more;
            spare -= more;
        }
        uint32_t least = max(shares->request, own[owner]) + 500;
        if (extra_below(2))
            shares->limit = min(least + (uint32_t)extra_below(3000), (uint32_t)PLAN_WHOLE);
    }
}

/* The rest of an account's request goes to clients without one. */
static void give_accounts_shares(void)
{
    uint32_t own[OWNERS + 1] = {0};
    const uint32_t count = mix.count;
    for (uint32_t i = 0; i < count; i++)
        own[programs[i].owner] += programs[i].request;
    choose_shares(own);
    for (uint32_t i = 0; i < count; i++)
        if (programs[i].client)
            set_account(&programs[i]);
    for (uint32_t owner = 1; owner <= OWNERS; owner++)
        for (uint64_t more = own[owner] ? extra_below(3) : 0; more; more--)
            announce(0, owner, choose_coming(), 0);
}

/* Requests that come to `sum`, or eleven small ones beside a large one. */
static void everybody_comes(bool accounts)
{
    uint32_t sum = one_in(2) ? PLAN_WHOLE : (uint32_t)(3000 + below(7000));
    uint32_t count = 2 + (uint32_t)below(15), owners = 1 + (uint32_t)below(OWNERS);
    bool small = one_in(4);
    uint32_t weights[PROGRAMS], total = 0;
    count = small ? 12 : count;
    for (uint32_t i = 0; i < count; i++)
        total += weights[i] = small ? (i ? 5 : 45) : 1 + (uint32_t)below(20);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t delay = one_in(2) ? 0 : below(4 * mix.plan);
        uint32_t request = small ? weights[i] * 100 : sum * weights[i] / total;
        announce(request, 1 + (uint32_t)below(owners), choose_coming(), delay);
    }
    if (accounts)
        give_accounts_shares();
}

/* ---- what happens ---- */

static void note(struct spans *spans, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    if (spans->count == SPANS_MAX)
        fail_msg("mix %" PRIu64 ": more than %d kernels of a client", mix.seed, SPANS_MAX);
    spans->of[spans->count++] = (struct span){from, to};
}

static void wake(struct program *program)
{
    uint32_t kernels = 1 + (uint32_t)(device_random(&program->random) % program->burst_most);
    if (program->paused_since != NEVER)
        note(&program->pauses, program->paused_since, device.now);
    program->paused_since = program->wakes = NEVER;
    bool steady = program->pause_most == 0;
    device_work(&device, program->client, steady ? UINT64_MAX : kernels);
}

static void begin_pause(struct program *program)
{
    program->paused_since = device.now;
    program->wakes =
        device.now + device_random_log(&program->random, program->pause_least, program->pause_most);
}

static void kernel_ended(struct device_client *client)
{
    struct program *program = client->user;
    note(&program->kernels, device.now - (client->ran_ns - program->ran_ns), device.now);
    program->ran_ns = client->ran_ns;
    if (!client->pending && client->head == client->tail)
        begin_pause(program);
}

/* A kernel that runs ends with its client, and what it had counts. */
static void leave(struct program *program)
{
    uint64_t had = device_had(&device, program->client);
    if (program->paused_since != NEVER)
        note(&program->pauses, program->paused_since, device.now);
    note(&program->kernels, device.now - (had - program->ran_ns), device.now);
    device_remove(&device, program->client);
    program->client = NULL;
    program->left = device.now;
    program->wakes = program->leaves = program->paused_since = NEVER;
    if (extra_below(2) && mix.count < PROGRAMS)
        announce(program->request, program->owner, device.now + extra_below(mix.plan), 0);
}

/* ---- another scheduler ---- */

static void choose_death(void)
{
    mix.dies = device.now + device_random_log(&mix.random, mix.plan / 20, 4 * mix.plan);
    mix.taken = mix.dies - below(TAKEN_NS);
}

static void die(void)
{
    uint64_t died = device.now;
    device_hand_over(&device, &mix.carried, below(mix.plan / 50));
    note(&mix.downs, died, device.now);
    hand_overs++;
    for (uint32_t i = 0; i < mix.count; i++) {
        struct program *program = &programs[i];
        if (!program->client)
            continue;
        note(&program->kernels, died - (program->client->ran_ns - program->ran_ns), died);
        program->ran_ns = program->client->ran_ns;
        if (program->paused_since == NEVER)
            wake(program);
    }
    choose_death();
}

static uint64_t next_of_programs(void)
{
    uint64_t next = min(mix.taken, mix.dies);
    for (uint32_t i = 0; i < mix.count; i++)
        next = min(next, min(programs[i].comes, min(programs[i].wakes, programs[i].leaves)));
    return next;
}

static void play(uint64_t until)
{
    while (device.now < until) {
        uint64_t next = min(until, next_of_programs());
        struct device_client *ended = device_step(&device, next);
        if (ended)
            kernel_ended(ended);
        if (mix.taken <= device.now) {
            device_take(&device, &mix.carried);
            mix.taken = NEVER;
        }
        if (mix.dies <= device.now)
            die();
        for (uint32_t i = 0; i < mix.count; i++) {
            if (programs[i].comes <= device.now)
                come(&programs[i]);
            else if (programs[i].leaves <= device.now)
                leave(&programs[i]);
            else if (programs[i].wakes <= device.now)
                wake(&programs[i]);
        }
    }
}

/* ---- what each got ---- */

static uint64_t overlap(const struct spans *spans, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < spans->count && spans->of[i].from < to; i++)
        sum += saturating_sub(min(spans->of[i].to, to), max(spans->of[i].from, from));
    return sum;
}

static uint64_t longest_pause(const struct spans *pauses, uint64_t from, uint64_t to)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < pauses->count && pauses->of[i].from < to; i++)
        if (pauses->of[i].to > from)
            longest = max(longest, pauses->of[i].to - pauses->of[i].from);
    return longest;
}

/* The same program with the same draws on a device that nobody else uses. */
static double share_alone(const struct program *program)
{
    struct scheduler_limits whole = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct scheduler_schedule settings = mix.settings;
    struct error why = {0};
    settings.mode = PROTO_MODE_FAIR;
    device_open(&lonely, &settings);
    struct device_client *client = device_add(&lonely, &whole, NULL, 0, program->kernel_seed, &why);
    assert_non_null(client);
    client->shortest = program->shortest;
    client->longest = program->longest;
    uint64_t random = program->first_random, wakes = lonely.now;
    const uint64_t end = lonely.now + PLANS * mix.plan;
    while (lonely.now < end) {
        if (wakes <= lonely.now) {
            uint64_t kernels = 1 + device_random(&random) % program->burst_most;
            device_work(&lonely, client, program->pause_most ? kernels : UINT64_MAX);
            wakes = NEVER;
        }
        if (device_step(&lonely, min(end, wakes)) && !client->pending &&
            client->head == client->tail)
            wakes =
                lonely.now + device_random_log(&random, program->pause_least, program->pause_most);
    }
    return (double)device_had(&lonely, client) / (double)(PLANS * mix.plan);
}

static void judge(struct worst *worst, double excess_ns, double span, const char *text,
                  const struct program *program, uint64_t from)
{
    double points = 100 * excess_ns / span;
    if (points > worst->points)
        *worst = (struct worst){points, mix.seed};
    if (points > 0 && !getenv("TEST_GOES_ON"))
        fail_msg(
            "TEST_SEED=%" PRIu64 ", mode %d, plan %.0f ms, longest kernel %.1f ms, window at "
            "%.2f plans: client %u of %u, owner %u (request %.2f, limit %.2f %%), request %.2f %%, "
            "pauses to %.1f ms: %s, %.2f points beyond what is allowed",
            mix.seed, (int)mix.settings.mode, (double)mix.plan / 1e6, (double)mix.kernel / 1e6,
            (double)(from - mix.start) / (double)mix.plan, program->number, mix.count,
            program->owner, mix.shares[program->owner].request / 100.0,
            mix.shares[program->owner].limit / 100.0, program->request / 100.0,
            (double)program->pause_most / 1e6, text, points);
}

static uint32_t count_downs(uint64_t from, uint64_t to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < mix.downs.count; i++)
        count += mix.downs.of[i].from < to && mix.downs.of[i].to > from;
    return count;
}

/* As of an account: the limit, one kernel and a hundredth. */
static void judge_limit(const struct program *program, uint64_t from, uint64_t to)
{
    double span = (double)(to - from), got = (double)overlap(&program->kernels, from, to);
    double limit = program->limit / (double)PLAN_WHOLE;
    double e = (double)mix.kernel + span / 100 + count_downs(from, to) * (double)TAKEN_NS;
    judge(&more_than_limit, got - limit * span - e, span, "more than its limit", program, from);
    limit_windows++;
}

static void judge_window(const struct program *program, uint64_t from, uint64_t to, double whole)
{
    double span = (double)(to - from), got = (double)overlap(&program->kernels, from, to);
    double served = span - (double)overlap(&mix.downs, from, to);
    double request = program->request / (double)PLAN_WHOLE;
    double e = 2.0 * (double)mix.settings.lease_ns + (double)mix.kernel +
               count_downs(from, to) * (double)TAKEN_NS;
    bool strict = mix.settings.mode == PROTO_MODE_STRICT;
    if (strict && program->request)
        judge(&more_strict, got - request * span - e, span, "more than its request", program, from);
    if (!strict && program->limit < PLAN_WHOLE)
        judge_limit(program, from, to);
    if (longest_pause(&program->pauses, from, to) >= mix.plan / 10)
        return;
    double paused = (double)overlap(&program->pauses, from, to);
    double owed = min(request * whole * served, got + whole * (request * served - got - paused));
    judge(strict ? &less_strict : &less_fair, owed - e - got, span, "less than its request",
          program, from);
}

static void judge_program(const struct program *program, uint64_t end)
{
    uint64_t window = WINDOW_PLANS * mix.plan;
    if (program->comes != NEVER)
        return;
    end = min(end, program->left);
    double whole = share_alone(program);
    for (uint64_t from = program->came; from + window <= end; from += mix.plan / WINDOW_STEPS) {
        judge_window(program, from, from + window, whole);
        left_windows += program->left != NEVER;
    }
}

static double had_together(uint32_t owner, uint64_t from, uint64_t to)
{
    double sum = 0;
    for (uint32_t i = 0; i < mix.count; i++)
        if (programs[i].owner == owner)
            sum += (double)overlap(&programs[i].kernels, from, to);
    return sum;
}

/* A client that has neither request nor limit and always has work, from when it came until it left.
 */
static const struct program *find_steady(uint32_t owner)
{
    for (uint32_t i = 0; i < mix.count; i++)
        if (programs[i].owner == owner && !programs[i].request && programs[i].comes == NEVER &&
            !programs[i].pause_most && programs[i].limit == PLAN_WHOLE)
            return &programs[i];
    return NULL;
}

static void judge_rest(uint32_t owner, uint64_t end)
{
    const struct program *steady = find_steady(owner);
    uint64_t window = WINDOW_PLANS * mix.plan, rest = mix.shares[owner].request;
    for (uint32_t i = 0; i < mix.count; i++)
        if (programs[i].owner == owner)
            rest = saturating_sub(rest, programs[i].request);
    if (!steady || !rest)
        return;
    end = min(end, steady->left);
    for (uint64_t from = steady->came + steady->delay; from + window <= end;
         from += mix.plan / WINDOW_STEPS) {
        double span = (double)window, had = 0,
               e = 2.0 * (double)mix.settings.lease_ns + (double)mix.kernel +
                   count_downs(from, from + window) * (double)TAKEN_NS;
        double served = span - (double)overlap(&mix.downs, from, from + window);
        for (uint32_t i = 0; i < mix.count; i++)
            if (programs[i].owner == owner && !programs[i].request)
                had += (double)overlap(&programs[i].kernels, from, from + window);
        judge(&less_of_account, (double)rest / PLAN_WHOLE * served - e - had, span,
              "less than what is left of its account's request", steady, from);
        rest_windows++;
    }
}

static void judge_account(uint32_t owner, uint64_t end)
{
    double limit = mix.shares[owner].limit / (double)PLAN_WHOLE;
    uint64_t window = WINDOW_PLANS * mix.plan;
    const struct program *first = NULL;
    for (uint32_t i = 0; i < mix.count && !first; i++)
        first = programs[i].owner == owner ? &programs[i] : NULL;
    if (mix.shares[owner].limit == PLAN_WHOLE || !first)
        return;
    for (uint64_t from = mix.start; from + window <= end; from += mix.plan / WINDOW_STEPS) {
        double span = (double)window, had = had_together(owner, from, from + window);
        double e =
            (double)mix.kernel + span / 100 + count_downs(from, from + window) * (double)TAKEN_NS;
        judge(&more_of_account, had - limit * span - e, span, "its account more than its limit",
              first, from);
        account_windows++;
    }
}

static void run_mix(uint64_t seed, enum proto_mode mode, bool dies, bool moves, bool accounts,
                    bool limits)
{
    mix.seed = mix.random = seed;
    mix.extra = ~seed;
    mix.moves = moves;
    mix.limits = limits;
    mix.count = 0;
    for (uint32_t owner = 0; owner <= OWNERS; owner++)
        mix.shares[owner] = (struct shares){.limit = PLAN_WHOLE};
    scheduler_defaults(&mix.settings);
    mix.settings.mode = mode;
    mix.settings.lease_ns = one_in(2) ? 250 * MS : 50 * MS;
    mix.plan = mix.settings.lease_ns * PLAN_WHOLE / mix.settings.precision;
    mix.kernel = mix.plan * (one_in(2) ? 2 : 8) / 100;
    device_open(&device, &mix.settings);
    mix.start = device.now;
    mix.dies = mix.taken = NEVER;
    mix.downs.count = 0;
    if (dies)
        choose_death();
    everybody_comes(accounts);
    play(mix.start + PLANS * mix.plan);
    assert_int_equal(device.overlapped, 0);
    for (uint32_t i = 0; i < mix.count; i++)
        if (programs[i].paused_since != NEVER)
            note(&programs[i].pauses, programs[i].paused_since, device.now);
    for (uint32_t i = 0; i < mix.count; i++)
        judge_program(&programs[i], device.now);
    for (uint32_t owner = 1; owner <= OWNERS; owner++)
        judge_account(owner, device.now);
    for (uint32_t owner = 1; owner <= OWNERS; owner++)
        judge_rest(owner, device.now);
}

static enum proto_mode mode_of(uint64_t seed)
{
    return seed % 2 ? PROTO_MODE_STRICT : PROTO_MODE_FAIR;
}

static void forget_worst(void)
{
    less_strict = more_strict = less_fair = more_than_limit = more_of_account = less_of_account =
        (struct worst){-100, 0};
}

/* Of half a million, these went beyond before two defects were mended. */
static void rare_mixes_get_what_is_promised(void **state)
{
    static const uint64_t seeds[] = {1795450738, 1795453410, 2100045978};
    (void)state;
    forget_worst();
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        run_mix(seeds[i], mode_of(seeds[i]), false, false, false, false);
}

/* In the first two the pause of a client counted for its account's other clients, too; in the
 * others an account's limit lost what it could not save up. */
static void clients_of_accounts_get_what_is_promised(void **state)
{
    static const uint64_t seeds[] = {225, 6088, 1373, 395, 840, 1306, 104, 1114};
    (void)state;
    forget_worst();
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        run_mix(seeds[i], mode_of(seeds[i]), seeds[i] % 4 >= 2, seeds[i] % 8 >= 4, true, false);
}

static void print_worst(const char *text, const struct worst *worst)
{
    print_message("points beyond what is allowed, %s: %.2f (mix %" PRIu64 ")\n", text,
                  worst->points, worst->seed);
}

static void any_mix_gets_what_is_promised(void **state)
{
    uint64_t given = seed_number("TEST_MIXES", 0), count = given ? given : MIXES;
    uint64_t first = given ? seed_number("TEST_SEED", 1) : 1;
    (void)state;
    forget_worst();
    hand_overs = comers = left_windows = limit_windows = account_windows = rest_windows = 0;
    for (uint64_t seed = first; seed < first + count; seed++)
        run_mix(seed, mode_of(seed), seed % 4 >= 2, seed % 8 >= 4, seed % 16 >= 8, seed % 32 >= 16);
    print_message("%" PRIu32 " hand-overs, %" PRIu32 " clients came later, %" PRIu32
                  " windows of clients that left, %" PRIu32 " of clients with a limit, %" PRIu32
                  " of accounts with a limit, %" PRIu32 " of accounts with a request\n",
                  hand_overs, comers, left_windows, limit_windows, account_windows, rest_windows);
    print_worst("strict, less", &less_strict);
    print_worst("strict, more", &more_strict);
    print_worst("fair, less", &less_fair);
    print_worst("fair, more than the limit", &more_than_limit);
    print_worst("accounts, more than the limit", &more_of_account);
    print_worst("accounts, less than the rest", &less_of_account);
    if (count >= MIXES) {
        assert_in_range(comers, 1, UINT32_MAX);
        assert_in_range(left_windows, 1, UINT32_MAX);
        assert_in_range(limit_windows, 1, UINT32_MAX);
        assert_in_range(account_windows, 1, UINT32_MAX);
        assert_in_range(rest_windows, 1, UINT32_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rare_mixes_get_what_is_promised),
        cmocka_unit_test(clients_of_accounts_get_what_is_promised),
        cmocka_unit_test(any_mix_gets_what_is_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
