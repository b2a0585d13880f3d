/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* When quiet windows open: each rule by itself, then random scenes of a modelled device. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "common/util.h"
#include "server/scheduler/quiet.h"

#define MS UINT64_C(1000000)
#define T0 (1000 * MS)

static struct quiet quiet;

static void begin(void)
{
    struct quiet_settings settings;
    quiet_defaults(&settings);
    quiet_begin(&quiet, &settings, T0);
}

static enum quiet_state look(const struct quiet_scene *scene, uint64_t now)
{
    quiet_look(&quiet, scene, now);
    return quiet.state;
}

/* ---- the rules, by table ---- */

struct rule {
    const char *what;
    uint64_t waited_ms, left_ms, spent_ms; /* spent: what windows had beyond their share */
    bool overdue, urgent;
    enum quiet_state state;
    enum quiet_width width;
};

static const struct rule rules[] = {
    {"short work is drained", 0, 10, 0, false, false, QUIET_DRAINING, QUIET_SHORT},
    {"work up to the limit is drained", 0, 500, 0, false, false, QUIET_DRAINING, QUIET_SHORT},
    {"longer work is not", 0, 501, 0, false, false, QUIET_WAITING, QUIET_SHORT},
    {"overdue work is not", 0, 1, 0, true, false, QUIET_WAITING, QUIET_SHORT},
    {"more urgent work is not", 0, 1, 0, false, true, QUIET_WAITING, QUIET_SHORT},
    {"more urgent work is, after a second", 1000, 1, 0, false, true, QUIET_DRAINING, QUIET_SINGLE},
    {"windows that had their share wait", 0, 1, 1000, false, false, QUIET_WAITING, QUIET_SHORT},
    {"a second narrows", 1000, 1100, 0, false, false, QUIET_WAITING, QUIET_SINGLE},
    {"the bound grows with the wait", 1100, 1100, 0, false, false, QUIET_DRAINING, QUIET_SINGLE},
    {"overdue work is never drained", 60000, 1, 0, true, false, QUIET_WAITING, QUIET_SINGLE},
};

static void each_rule_holds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        struct quiet_work work = {
            .client = 7, .level = 1, .left_ns = rule->left_ms * MS, .overdue = rule->overdue};
        struct quiet_scene scene = {.works = &work,
                                    .count = 1,
                                    .asked = true,
                                    .asked_at = T0,
                                    .level = rule->urgent ? 2 : 1};
        begin();
        quiet.looked_at = T0 + rule->waited_ms * MS;
        quiet.credit -= (int64_t)(rule->spent_ms * MS);
        print_message("%s\n", rule->what);
        assert_int_equal(look(&scene, T0 + rule->waited_ms * MS), rule->state);
        assert_int_equal(quiet.width, rule->width);
        if (quiet.state == QUIET_WAITING)
            assert_int_equal(quiet.waits_for, 7);
    }
}

/* The first client is likely to be done `early` ms before the second, and a window would lose half
 * of that. */
static enum quiet_state ask_for_a_moment(uint64_t early_ms, uint64_t waited_ms)
{
    struct quiet_work works[2] = {
        {.client = 1, .left_ns = 200 * MS, .likely_ns = (200 - early_ms) * MS},
        {.client = 2, .left_ns = 200 * MS, .likely_ns = 200 * MS}};
    struct quiet_scene scene = {.works = works, .count = 2, .asked = true, .asked_at = T0};
    begin();
    quiet.looked_at = T0 + waited_ms * MS;
    return look(&scene, T0 + waited_ms * MS);
}

/* Windows may take 100 ms when nothing was taken yet. */
static void a_better_moment_is_waited_for_less_and_less(void **state)
{
    (void)state;
    assert_int_equal(ask_for_a_moment(0, 0), QUIET_DRAINING);
    assert_int_equal(ask_for_a_moment(20, 0), QUIET_DRAINING);
    assert_int_equal(ask_for_a_moment(21, 0), QUIET_WAITING);
    assert_int_equal(ask_for_a_moment(110, 500), QUIET_DRAINING);
    assert_int_equal(ask_for_a_moment(112, 500), QUIET_WAITING);
    assert_int_equal(ask_for_a_moment(200, 999), QUIET_WAITING);
    assert_int_equal(ask_for_a_moment(200, 1000), QUIET_DRAINING);
}

static void what_runs_is_wide_again_when_no_call_waits(void **state)
{
    (void)state;
    struct quiet_work work = {.client = 7, .left_ns = 1000 * MS, .likely_ns = 1000 * MS};
    struct quiet_scene scene = {.works = &work, .count = 1, .asked = true, .asked_at = T0};
    begin();
    look(&scene, T0);
    assert_int_equal(quiet.width, QUIET_SHORT);
    scene.asked = false;
    look(&scene, T0 + MS);
    assert_int_equal(quiet.width, QUIET_WIDE);
    scene.asked = true;
    work.left_ns = work.likely_ns = MS;
    look(&scene, T0 + 2 * MS);
    scene.count = 0;
    assert_int_equal(look(&scene, T0 + 3 * MS), QUIET_OPEN);
    assert_int_equal(quiet.width, QUIET_WIDE);
}

static void an_idle_device_is_quiet_at_once_and_costs_nothing(void **state)
{
    (void)state;
    struct quiet_scene scene = {.asked = true, .asked_at = T0};
    begin();
    quiet.credit = -1;
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    assert_true(quiet.next <= T0);
    assert_int_equal(look(&scene, T0), QUIET_OPEN);
    quiet_end(&quiet, QUIET_NEVER, T0 + 3 * MS);
    assert_int_equal(quiet.taken_ns, 0);
    assert_int_equal(quiet.windows, 1);
}

static void other_work_is_waited_for(void **state)
{
    (void)state;
    struct quiet_scene scene = {.asked = true, .asked_at = T0, .others = true};
    begin();
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    scene.others = false;
    assert_int_equal(look(&scene, T0 + MS), QUIET_OPEN);
}

static void an_attempt_ends_after_one_and_a_half_times_the_expectation(void **state)
{
    (void)state;
    struct quiet_work work = {.client = 7, .left_ns = 100 * MS};
    struct quiet_scene scene = {.works = &work, .count = 1, .asked = true, .asked_at = T0};
    begin();
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    assert_int_equal(look(&scene, T0 + 154 * MS), QUIET_DRAINING);
    assert_int_equal(look(&scene, T0 + 155 * MS), QUIET_WAITING);
    assert_int_equal(quiet.waits_for, 7);
    assert_int_equal(quiet.failed, 1);
    /* The clients have as long before the next attempt. */
    work.left_ns = MS;
    assert_int_equal(look(&scene, T0 + 309 * MS), QUIET_WAITING);
    assert_int_equal(look(&scene, T0 + 310 * MS), QUIET_DRAINING);
}

/* The driver's own call kept the next look for three seconds: no window for a minute would punish
 * those that wait for the driver. */
static void an_attempt_costs_no_more_than_its_time(void **state)
{
    (void)state;
    struct quiet_work work = {.client = 7, .left_ns = 20 * MS};
    struct quiet_scene scene = {.works = &work, .count = 1, .asked = true, .asked_at = T0};
    begin();
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    scene.count = 0;
    scene.others = true;
    assert_int_equal(look(&scene, T0 + 3000 * MS), QUIET_WAITING);
    assert_int_equal(quiet.taken_ns, 35 * MS);
    work.left_ns = MS;
    scene.count = 1;
    scene.others = false;
    assert_int_equal(look(&scene, T0 + 3035 * MS), QUIET_DRAINING);
}

static void a_call_that_is_withdrawn_ends_the_attempt(void **state)
{
    (void)state;
    struct quiet_work work = {.client = 7, .left_ns = 100 * MS};
    struct quiet_scene scene = {.works = &work, .count = 1, .asked = true, .asked_at = T0};
    begin();
    look(&scene, T0);
    scene.asked = false;
    assert_int_equal(look(&scene, T0 + MS), QUIET_RESTING);
}

/* Two clients; the first is done at once and idles for 10 ms: half of the device's time is lost,
 * and that of the calls is whole. */
static void what_a_window_takes_is_what_clients_could_have_used(void **state)
{
    (void)state;
    struct quiet_work works[2] = {{.client = 1, .left_ns = 10 * MS},
                                  {.client = 2, .left_ns = 10 * MS}};
    struct quiet_scene scene = {.works = works, .count = 2, .asked = true, .asked_at = T0};
    begin();
    look(&scene, T0);
    scene.count = 1;
    look(&scene, T0);
    look(&scene, T0 + 10 * MS);
    scene.count = 0;
    assert_int_equal(look(&scene, T0 + 10 * MS), QUIET_OPEN);
    quiet_end(&quiet, QUIET_NEVER, T0 + 12 * MS);
    assert_int_equal(quiet.taken_ns, 7 * MS);
}

/* ---- what costs windows their share ---- */

static void between_leases_only_the_calls_cost(void **state)
{
    (void)state;
    struct quiet_scene scene = {.asked = true, .asked_at = T0, .between = true};
    begin();
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    assert_int_equal(look(&scene, T0), QUIET_OPEN);
    quiet_end(&quiet, QUIET_NEVER, T0 + 3 * MS);
    assert_int_equal(quiet.taken_ns, 3 * MS);
    quiet.credit = -(int64_t)MS;
    assert_int_equal(look(&scene, T0 + 4 * MS), QUIET_WAITING);
    assert_int_equal(quiet.waits_for, 0);
}

static void clients_that_come_to_an_idle_device_are_the_cost_of_a_window(void **state)
{
    (void)state;
    struct quiet_scene scene = {.asked = true, .asked_at = T0};
    begin();
    look(&scene, T0);
    assert_int_equal(look(&scene, T0), QUIET_OPEN);
    quiet_end(&quiet, T0 + 5 * MS, T0 + 7 * MS);
    assert_int_equal(quiet.taken_ns, 2 * MS);
}

static void a_pause_of_the_clients_is_no_idle_device_to_windows_that_had_their_share(void **state)
{
    (void)state;
    struct quiet_work work = {.client = 7, .left_ns = MS};
    struct quiet_scene busy = {.works = &work, .count = 1, .asked = true, .asked_at = T0};
    struct quiet_scene idle = {.asked = true, .asked_at = T0};
    begin();
    quiet.credit = -(int64_t)(1000 * MS);
    assert_int_equal(look(&busy, T0), QUIET_WAITING);
    assert_int_equal(look(&idle, T0 + QUIET_IDLE_NS - 1), QUIET_WAITING);
    assert_int_equal(look(&idle, T0 + QUIET_IDLE_NS), QUIET_DRAINING);
}

/* ---- random scenes ---- */

enum { CLIENTS = 4 };

/* One and a half times the longest of these scenes, whose kernels last up to half a second. */
#define LONGEST_WAIT (11000 * MS)

static uint64_t seed;

static uint64_t random_below(uint64_t most)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (seed >> 33) % most;
}

/* Clients that always have a kernel running, each of a length up to its own longest, while calls
 * come now and then. */
struct device {
    uint64_t longest[CLIENTS], ends[CLIENTS], asked_at;
    uint64_t idle_ns, waited_ns; /* the longest wait of a call */
    uint64_t over_ns;            /* beyond the share, where an attempt began */
    bool asked;
};

static void run_clients(struct device *device, bool held, uint64_t now)
{
    for (int i = 0; i < CLIENTS; i++)
        if (device->ends[i] <= now && !held)
            device->ends[i] = now + 1 + random_below(device->longest[i]);
        else if (device->ends[i] <= now)
            device->idle_ns += MS / CLIENTS;
}

static struct quiet_scene see(const struct device *device, struct quiet_work *works, uint64_t now)
{
    struct quiet_scene scene = {
        .works = works, .asked = device->asked, .asked_at = device->asked_at};
    for (int i = 0; i < CLIENTS; i++)
        if (device->ends[i] > now)
            works[scene.count++] = (struct quiet_work){.client = (uint32_t)i + 1,
                                                       .left_ns = device->longest[i],
                                                       .likely_ns = device->ends[i] - now};
    return scene;
}

/* The time that windows may have taken by now: 100 ms that were saved up, and of the time as much
 * as makes a twentieth of 20 s with these. */
static uint64_t share_by(uint64_t now)
{
    return (now - T0) * 45 / 1000 + 100 * MS;
}

/* A window may take more than is left, and the next one waits until that is made up for: so the
 * share is looked at where an attempt begins. */
static void play(struct device *device, uint64_t until)
{
    for (uint64_t now = T0; now < until; now += MS) {
        struct quiet_work works[CLIENTS];
        if (!device->asked && random_below(50) == 0) {
            device->asked = true;
            device->asked_at = now;
        }
        run_clients(device, quiet.state >= QUIET_DRAINING, now);
        struct quiet_scene scene = see(device, works, now);
        bool waited = quiet.state < QUIET_DRAINING;
        quiet_look(&quiet, &scene, now);
        if (waited && quiet.state >= QUIET_DRAINING && device->idle_ns > share_by(now))
            device->over_ns = max(device->over_ns, device->idle_ns - share_by(now));
        if (quiet.state != QUIET_OPEN)
            continue;
        assert_int_equal(scene.count, 0);
        device->waited_ns = max(device->waited_ns, now - device->asked_at);
        device->asked = false;
        quiet_end(&quiet, QUIET_NEVER, now);
    }
}

static void random_scenes_serve_every_call_within_their_share(void **state)
{
    (void)state;
    uint64_t most_over = 0, most_idle = 0, most_waited = 0;
    for (seed = 1; seed < 200; seed += 2) {
        uint64_t first = seed, until = T0 + 60000 * MS;
        struct device device = {0};
        begin();
        for (int i = 0; i < CLIENTS; i++)
            device.longest[i] = MS << random_below(10);
        play(&device, until);
        if (device.over_ns > 0 || device.waited_ns > LONGEST_WAIT || quiet.windows == 0)
            fail_msg("seed %llu: over %llu ms, idle %llu ms of 60 s, waited %llu ms, %llu windows",
                     (unsigned long long)first, (unsigned long long)(device.over_ns / MS),
                     (unsigned long long)(device.idle_ns / MS),
                     (unsigned long long)(device.waited_ns / MS),
                     (unsigned long long)quiet.windows);
        most_over = max(most_over, device.over_ns);
        most_idle = max(most_idle, device.idle_ns);
        most_waited = max(most_waited, device.waited_ns);
        seed = first;
    }
    print_message("at most over %llu ms, idle %llu ms of 60 s, waited %llu ms\n",
                  (unsigned long long)(most_over / MS), (unsigned long long)(most_idle / MS),
                  (unsigned long long)(most_waited / MS));
}

/* One user asks for a window every 10 ms, each call takes 2 ms, and the others never pause or
 * pause often: they lose a twentieth of the device, whatever was saved up before. */
static void a_greedy_user_gets_no_more_than_the_share(void **state)
{
    (void)state;
    for (uint64_t pause = 0; pause < 3; pause++) {
        struct quiet_work work = {.client = 1, .left_ns = MS};
        uint64_t since = T0, lost = 0, end = T0 + 20000 * MS;
        begin();
        for (uint64_t now = T0; now < end; now += MS) {
            /* 3 ms of work, then so long a pause. */
            bool works = (now / MS) % (3 + pause) < 3;
            struct quiet_scene scene = {.works = &work,
                                        .count = works && quiet.state < QUIET_DRAINING,
                                        .asked = now >= since,
                                        .asked_at = since};
            look(&scene, now);
            if (quiet.state == QUIET_DRAINING) {
                scene.count = 0;
                look(&scene, now);
            }
            if (quiet.state != QUIET_OPEN)
                continue;
            uint64_t wanted = works ? now : now + MS;
            now += 2 * MS;
            lost += now - wanted;
            quiet_end(&quiet, wanted, now);
            since = now + 8 * MS;
        }
        print_message("pauses of %llu ms: lost %llu ms of 20 s in %llu windows\n",
                      (unsigned long long)pause, (unsigned long long)(lost / MS),
                      (unsigned long long)quiet.windows);
        assert_true(lost <= (end - T0) * 5 / 100 + 2 * MS);
        assert_true(quiet.windows > 100);
    }
}

/* ---- users ---- */

/* When the user's call, made at `since`, is first drained for beside a client that never pauses. */
static uint64_t wait_of(uint32_t user, uint64_t since)
{
    struct quiet_work work = {.client = 7, .left_ns = MS, .likely_ns = MS};
    struct quiet_scene scene = {
        .works = &work, .count = 1, .asked = true, .user = user, .asked_at = since};
    uint64_t now = since;
    while (look(&scene, now) != QUIET_DRAINING)
        now += MS;
    return now - since;
}

/* For a second the device is half idle, so a window of 100 ms takes 500 ms; the rest is paid back
 * at 4.5 %. */
static void what_a_window_takes_beyond_its_users_part_others_do_not_pay(void **state)
{
    (void)state;
    for (uint32_t user = 1; user <= 2; user++) {
        struct quiet_work works[2] = {{.client = 1, .left_ns = 700 * MS, .likely_ns = 10 * MS},
                                      {.client = 2, .left_ns = 700 * MS, .likely_ns = 10 * MS}};
        struct quiet_scene scene = {
            .works = works, .count = 2, .asked = true, .user = 1, .asked_at = T0 - 700 * MS};
        begin();
        quiet.settings.limit_ns = 1000 * MS;
        assert_int_equal(look(&scene, T0), QUIET_DRAINING);
        scene.count = 1;
        look(&scene, T0);
        look(&scene, T0 + 1000 * MS);
        scene.count = 0;
        assert_int_equal(look(&scene, T0 + 1000 * MS), QUIET_OPEN);
        quiet_end(&quiet, QUIET_NEVER, T0 + 1000 * MS);
        assert_int_equal(quiet.taken_ns, 500 * MS);
        uint64_t waited = wait_of(user, T0 + 1001 * MS);
        print_message("user %u waits for %llu ms\n", user, (unsigned long long)(waited / MS));
        if (user == 1)
            assert_in_range(waited, 8800 * MS, 8900 * MS);
        else
            assert_true(waited <= MS);
    }
}

static void users_with_credit_come_first_then_urgent_ones_then_those_that_owe_least(void **state)
{
    (void)state;
    struct quiet_asker askers[QUIET_USERS];
    begin();
    for (uint32_t i = 0; i < QUIET_USERS; i++)
        askers[i] = (struct quiet_asker){.asked_at = QUIET_NEVER};
    askers[5].asked_at = T0;
    assert_int_equal(quiet_choose(&quiet, askers), 5);
    askers[63].asked_at = T0 - 1;
    assert_int_equal(quiet_choose(&quiet, askers), 63);
    quiet.debts[63] = 2;
    assert_int_equal(quiet_choose(&quiet, askers), 5);
    quiet.debts[5] = 3;
    assert_int_equal(quiet_choose(&quiet, askers), 63);
    askers[63].level = 1;
    assert_int_equal(quiet_choose(&quiet, askers), 5);
    /* Half of 100 ms is each one's part. */
    quiet.debts[5] = 50 * MS;
    assert_int_equal(quiet_choose(&quiet, askers), 63);
    quiet.debts[5]--;
    assert_int_equal(quiet_choose(&quiet, askers), 5);
}

/* Windows have had more than their share, and the user owes for some. */
static void a_call_that_restores_a_client_comes_first_and_is_charged_to_nobody(void **state)
{
    (void)state;
    struct quiet_work work = {.client = 7, .left_ns = MS, .likely_ns = MS};
    struct quiet_scene scene = {.works = &work, .count = 1, .asked = true, .user = 1};
    struct quiet_asker askers[QUIET_USERS];
    begin();
    for (uint32_t i = 0; i < QUIET_USERS; i++)
        askers[i] = (struct quiet_asker){.asked_at = QUIET_NEVER};
    scene.asked_at = askers[1].asked_at = askers[2].asked_at = T0;
    quiet.credit = -100 * (int64_t)MS;
    quiet.debts[1] = 200 * MS;
    assert_int_equal(quiet_choose(&quiet, askers), 2);
    assert_int_equal(look(&scene, T0), QUIET_WAITING);
    scene.restores = askers[1].restores = true;
    assert_int_equal(quiet_choose(&quiet, askers), 1);
    assert_int_equal(look(&scene, T0), QUIET_DRAINING);
    scene.count = 0;
    assert_int_equal(look(&scene, T0), QUIET_OPEN);
    quiet_made(&quiet, 1, T0 + 9 * MS);
    quiet_end(&quiet, QUIET_NEVER, T0 + 9 * MS);
    assert_int_equal(quiet.taken_ns, 9 * MS);
    assert_true(quiet.debts[1] <= (int64_t)(200 * MS));
    assert_true(quiet.credit >= -100 * (int64_t)MS);
    /* Those that are back have a third of that. */
    scene.count = 1;
    assert_int_equal(look(&scene, T0 + 12 * MS - 1), QUIET_WAITING);
    assert_int_equal(look(&scene, T0 + 12 * MS), QUIET_DRAINING);
    /* The next window is charged as ever. */
    scene.count = 0;
    assert_int_equal(look(&scene, T0 + 12 * MS), QUIET_OPEN);
    quiet_end(&quiet, QUIET_NEVER, T0 + 12 * MS);
    scene.restores = false;
    quiet.credit = 100 * MS;
    quiet.debts[1] = 0;
    scene.count = 1;
    assert_int_equal(look(&scene, T0 + 13 * MS), QUIET_DRAINING);
    scene.count = 0;
    assert_int_equal(look(&scene, T0 + 13 * MS), QUIET_OPEN);
    quiet_made(&quiet, 1, T0 + 23 * MS);
    assert_true(quiet.debts[1] > (int64_t)(9 * MS));
}

/* User 1 asks all the time, and each of its calls takes 60 ms; user 2 asks now and then. */
static void a_user_with_long_loads_keeps_nobody_elses_waiting(void **state)
{
    (void)state;
    const uint64_t end = T0 + 60000 * MS, calls_ns[3] = {0, 60 * MS, MS};
    struct quiet_asker askers[QUIET_USERS];
    uint64_t taken[3] = {0}, longest = 0, served = 0, next = T0 + 3000 * MS;
    begin();
    for (uint32_t i = 0; i < QUIET_USERS; i++)
        askers[i] = (struct quiet_asker){.asked_at = QUIET_NEVER};
    askers[1].asked_at = T0;
    for (uint64_t now = T0; now < end; now += MS) {
        struct quiet_work work = {.client = 1, .left_ns = MS, .likely_ns = MS};
        if (askers[2].asked_at == QUIET_NEVER && now >= next)
            askers[2].asked_at = now;
        uint32_t user = quiet_choose(&quiet, askers);
        struct quiet_scene scene = {.works = &work,
                                    .count = quiet.state < QUIET_DRAINING,
                                    .asked = true,
                                    .user = user,
                                    .asked_at = askers[user].asked_at};
        if (look(&scene, now) != QUIET_OPEN)
            continue;
        user = quiet.payer;
        if (user == 2) {
            longest = max(longest, now - askers[2].asked_at);
            served++;
            next = now + 700 * MS;
        }
        now += calls_ns[user];
        taken[user] += calls_ns[user];
        quiet_made(&quiet, user, now);
        quiet_end(&quiet, QUIET_NEVER, now);
        askers[user].asked_at = user == 1 ? now : QUIET_NEVER;
    }
    print_message(
        "user 2 waits for %llu ms at most, in %llu windows; user 1 took %llu ms of 60 s\n",
        (unsigned long long)(longest / MS), (unsigned long long)served,
        (unsigned long long)(taken[1] / MS));
    assert_true(served > 60);
    assert_true(longest <= 5 * MS);
    /* Its part, what was saved up, and the last window, which it owes. */
    assert_true(taken[1] <= (end - T0) * 45 / 1000 + 160 * MS);
    assert_true(taken[1] >= (end - T0) * 20 / 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_holds),
        cmocka_unit_test(a_better_moment_is_waited_for_less_and_less),
        cmocka_unit_test(what_runs_is_wide_again_when_no_call_waits),
        cmocka_unit_test(an_idle_device_is_quiet_at_once_and_costs_nothing),
        cmocka_unit_test(other_work_is_waited_for),
        cmocka_unit_test(an_attempt_ends_after_one_and_a_half_times_the_expectation),
        cmocka_unit_test(an_attempt_costs_no_more_than_its_time),
        cmocka_unit_test(a_call_that_is_withdrawn_ends_the_attempt),
        cmocka_unit_test(what_a_window_takes_is_what_clients_could_have_used),
        cmocka_unit_test(between_leases_only_the_calls_cost),
        cmocka_unit_test(clients_that_come_to_an_idle_device_are_the_cost_of_a_window),
        cmocka_unit_test(a_pause_of_the_clients_is_no_idle_device_to_windows_that_had_their_share),
        cmocka_unit_test(a_greedy_user_gets_no_more_than_the_share),
        cmocka_unit_test(what_a_window_takes_beyond_its_users_part_others_do_not_pay),
        cmocka_unit_test(users_with_credit_come_first_then_urgent_ones_then_those_that_owe_least),
        cmocka_unit_test(a_call_that_restores_a_client_comes_first_and_is_charged_to_nobody),
        cmocka_unit_test(a_user_with_long_loads_keeps_nobody_elses_waiting),
        cmocka_unit_test(random_scenes_serve_every_call_within_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
