/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The places of clients while SM groups are lent and taken back. */
#include "tests/unit/worker/fake.h"
#include "tests/unit/worker/got_partition.h"

#include "common/error.h"
#include "server/scheduler/plan.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/placement.h"

enum { MS = 1000000, CLIENTS = 12, ACCOUNTS = 3 };

static struct cuda_driver driver;
static struct gpu gpu;
static struct partition_table partitions;
static struct placement_table places;

/* The worker's side of a place: the partition that its streams are bound to. */
struct runner {
    struct placement place;
    struct partition *on;
    uint32_t changes;
};

static struct runner runners[CLIENTS];
static struct sm_allocation_account accounts[ACCOUNTS];
static uint32_t asked;

static void changed(void *context, struct placement *place)
{
    (void)context;
    ((struct runner *)(void *)place)->changes++;
}

static void to_make(void *context)
{
    (void)context;
    asked++;
}

static int start_with(uint32_t split_loses)
{
    struct error why = {0};
    fake_reset();
    fake.multiprocessors = 68; /* eight SM groups and a remainder of four */
    fake.split_loses = split_loses;
    driver = fake_driver();
    gpu = (struct gpu){.cuda = &driver, .info.multiprocessors = fake.multiprocessors};
    memset(runners, 0, sizeof runners);
    memset(accounts, 0, sizeof accounts);
    assert_int_equal(partition_table_open(&partitions, &gpu, &why), 0);
    const struct placement_events notice = {changed, to_make, NULL};
    assert_int_equal(placement_table_open(&places, &partitions, &notice), 0);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_with(0);
}

/* Seven SM groups, and twelve multiprocessors are left. */
static int start_with_large_rest(void **state)
{
    (void)state;
    return start_with(1);
}

static void leave(struct runner *runner)
{
    placement_remove(&places, &runner->place);
    if (runner->on)
        partition_put(&partitions, runner->on);
    memset(runner, 0, sizeof *runner);
}

/* Whatever is held is given back. */
static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < CLIENTS; i++)
        leave(&runners[i]);
    placement_table_close(&places);
    for (const struct partition *at = partitions.list; at; at = at->next)
        assert_int_equal(at->clients, 0);
    partition_table_close(&partitions);
    assert_int_equal(fake.live_green, 0);
    return 0;
}

/* The control thread's part. Returns how many it made. */
static int make_all(void)
{
    struct sm_group_set sm_groups;
    struct placement *place;
    int made = 0;
    while ((place = placement_next_to_make(&places, &sm_groups))) {
        struct partition *partition;
        assert_int_equal(got_partition(&partitions, &sm_groups, &partition), 0);
        placement_made(&places, place, partition);
        made++;
    }
    return made;
}

static enum placement_answer enter(struct runner *runner, uint64_t now)
{
    struct partition *to = NULL;
    enum placement_answer said = placement_enter(&places, &runner->place, &to, now);
    assert_true((said == PLACEMENT_MOVE) == (to != NULL));
    if (to) {
        if (runner->on)
            partition_put(&partitions, runner->on);
        runner->on = to;
    }
    return said;
}

static struct runner *arrive(int i, uint32_t request, uint32_t limit)
{
    struct error why = {0};
    struct runner *runner = &runners[i];
    if (placement_add(&places, &runner->place, NULL, request, limit, &why))
        fail_msg("%s", why.text);
    make_all();
    return runner;
}

static uint64_t on(const struct runner *runner)
{
    return runner->on->sm_groups.bits[0];
}

static struct placement_view view(const struct runner *runner, uint64_t now)
{
    struct placement_view view;
    placement_view(&places, &runner->place, now, &view);
    return view;
}

static void an_owner_gets_its_sm_groups_back_at_once(void **state)
{
    (void)state;
    struct runner *owner = arrive(0, 5000, 5000), *other = arrive(1, 0, PLAN_WHOLE);
    assert_int_equal(enter(other, 1), PLACEMENT_MOVE);
    assert_int_equal(on(other), 0x1ff);
    assert_true(other->place.borrows);
    assert_int_equal(view(other, 1).multiprocessors, 68);
    /* The first time there is no partition for what is left to the borrower, which is on SM groups
     * that are taken now: it waits. The owner waits for nobody. */
    asked = 0;
    assert_int_equal(enter(owner, 2), PLACEMENT_MOVE);
    assert_int_equal(on(owner), 0x00f);
    assert_int_equal(asked, 1);
    assert_int_equal(enter(other, 2), PLACEMENT_HOLD);
    assert_int_equal(view(other, 4).held_ns, 2);
    uint32_t changes = other->changes;
    assert_int_equal(make_all(), 1);
    assert_int_equal(other->changes, changes + 1);
    assert_int_equal(enter(other, 5), PLACEMENT_MOVE);
    assert_int_equal(view(other, 9).held_ns, 3);
    assert_int_equal(on(other), 0x1f0);
    assert_false(other->place.borrows);
    assert_int_equal(view(other, 5).multiprocessors, 36);
    assert_int_equal(view(other, 5).max_multiprocessors, 68);
    /* From then on nothing is made. */
    for (uint64_t now = 10 * MS; now < 10000 * (uint64_t)MS; now += 10 * MS) {
        placement_idle(&places, &owner->place, now);
        placement_tick(&places, now + PLACEMENT_LINGER_NS);
        assert_int_equal(enter(other, now), PLACEMENT_MOVE);
        assert_int_equal(on(other), 0x1ff);
        assert_int_equal(enter(owner, now), PLACEMENT_STAY);
        assert_int_equal(enter(other, now), PLACEMENT_MOVE);
        assert_int_equal(on(other), 0x1f0);
    }
    assert_int_equal(asked, 1);
}

static void a_client_that_came_late_is_told_again(void **state)
{
    (void)state;
    struct runner *runner = arrive(0, 0, PLAN_WHOLE), *other = arrive(1, 0, PLAN_WHOLE);
    uint32_t changes = runner->changes, others = other->changes;
    placement_notify(&places, &runner->place);
    assert_int_equal(runner->changes, changes + 1);
    assert_int_equal(other->changes, others);
}

static void a_pause_lends_nothing(void **state)
{
    (void)state;
    struct runner *owner = arrive(0, 5000, 5000), *other = arrive(1, 0, PLAN_WHOLE);
    enter(owner, 1);
    enter(other, 1);
    uint32_t changes = other->changes;
    for (uint64_t now = MS; now < 1000 * MS; now += 4 * MS) {
        placement_idle(&places, &owner->place, now);
        assert_int_equal(placement_tick(&places, now + 4 * MS), now + PLACEMENT_LINGER_NS);
        assert_int_equal(enter(owner, now), PLACEMENT_STAY);
        assert_int_equal(placement_tick(&places, now + 4 * MS), PLACEMENT_NEVER);
    }
    assert_int_equal(other->changes, changes);
    placement_idle(&places, &owner->place, 2000 * MS);
    assert_int_equal(placement_tick(&places, 2000 * MS + PLACEMENT_LINGER_NS), PLACEMENT_NEVER);
    assert_int_equal(other->changes, changes + 1);
}

static void a_client_that_may_run_goes_on_until_its_partition_is_made(void **state)
{
    (void)state;
    struct error why = {0};
    struct runner *a = arrive(0, 0, 2500);
    assert_int_equal(enter(a, 1), PLACEMENT_MOVE);
    assert_int_equal(placement_update(&places, &a->place, 0, 7500, &why), 0);
    assert_int_equal(enter(a, 2), PLACEMENT_STAY);
    assert_int_equal(make_all(), 1);
    assert_int_equal(enter(a, 3), PLACEMENT_MOVE);
    assert_int_equal(a->on->multiprocessors, 48);
    assert_int_equal(enter(a, 4), PLACEMENT_STAY);
    assert_int_equal(view(a, 9).held_ns, 0);
}

/* Its client is there until a quiet window, and the completer may see the end of its work late. */
static void a_place_that_was_removed_is_left_alone(void **state)
{
    (void)state;
    struct runner *a = arrive(0, 5000, 5000);
    enter(a, 1);
    placement_remove(&places, &a->place);
    placement_idle(&places, &a->place, MS);
    assert_int_equal(placement_tick(&places, 2 * MS), PLACEMENT_NEVER);
    uint32_t before = asked, changes = a->changes;
    placement_made(&places, &a->place, NULL);
    assert_int_equal(asked, before);
    assert_int_equal(a->changes, changes);
}

static void without_an_sm_group_a_client_waits_and_is_told(void **state)
{
    (void)state;
    struct runner *a = arrive(0, PLAN_WHOLE, PLAN_WHOLE), *b = arrive(1, 0, 5000);
    assert_int_equal(enter(a, 1), PLACEMENT_MOVE);
    assert_int_equal(enter(b, 1), PLACEMENT_HOLD);
    assert_int_equal(view(b, 1).multiprocessors, 0);
    assert_int_equal(view(b, 1).max_multiprocessors, 32);
    placement_idle(&places, &a->place, MS);
    uint32_t changes = b->changes;
    placement_tick(&places, MS + PLACEMENT_LINGER_NS);
    make_all();
    assert_true(b->changes > changes);
    assert_int_equal(enter(b, 7 * MS), PLACEMENT_MOVE);
    assert_int_equal(b->on->multiprocessors, 32);
    assert_int_equal(view(b, 8 * MS).held_ns, 7 * MS - 1);
}

static void a_partition_that_can_not_be_made_is_asked_for_again(void **state)
{
    (void)state;
    struct sm_group_set sm_groups;
    struct runner *a = arrive(0, 0, 2500);
    struct partition *to;
    struct error why = {0};
    enter(a, 1);
    assert_int_equal(placement_update(&places, &a->place, 0, 5000, &why), 0);
    assert_ptr_equal(placement_next_to_make(&places, &sm_groups), &a->place);
    assert_null(placement_next_to_make(&places, &sm_groups));
    placement_made(&places, &a->place, NULL);
    assert_int_equal(enter(a, 2), PLACEMENT_STAY);
    assert_int_equal(placement_apply(&places, &a->place, &to), PLACEMENT_HOLD);
    /* Made at last, but for what is not wanted any more. */
    assert_ptr_equal(placement_next_to_make(&places, &sm_groups), &a->place);
    struct partition *made;
    assert_int_equal(got_partition(&partitions, &sm_groups, &made), 0);
    assert_int_equal(placement_update(&places, &a->place, 0, 2500, &why), 0);
    placement_made(&places, &a->place, made);
    assert_int_equal(made->clients, 0);
    assert_int_equal(enter(a, 3), PLACEMENT_STAY);
    assert_int_equal(placement_apply(&places, &a->place, &to), PLACEMENT_STAY);
    assert_int_equal(a->on->multiprocessors, 16);
}

/* SM groups that the account has lost are no place for its clients, even before there are others.
 */
static void an_account_is_on_no_more_than_its_limit(void **state)
{
    (void)state;
    struct error why = {0};
    struct runner *a = arrive(0, 0, PLAN_WHOLE), *b = arrive(1, 0, PLAN_WHOLE);
    assert_int_equal(placement_move_account(&places, &a->place, &accounts[0], &why), 0);
    assert_int_equal(placement_move_account(&places, &b->place, &accounts[0], &why), 0);
    enter(a, 1);
    enter(b, 1);
    assert_int_equal(on(a), 0x1ff);
    assert_int_equal(placement_account_set(&places, &accounts[0], 0, 5000, &why), 0);
    assert_int_equal(view(a, 2).max_multiprocessors, 32);
    assert_int_equal(enter(a, 2), PLACEMENT_HOLD);
    assert_int_equal(enter(b, 2), PLACEMENT_HOLD);
    make_all();
    assert_int_equal(enter(a, 3), PLACEMENT_MOVE);
    assert_int_equal(enter(b, 3), PLACEMENT_MOVE);
    assert_int_equal(on(a), 0x00f);
    assert_int_equal(on(b), 0x00f);
}

static void an_accounts_request_is_home_to_its_clients(void **state)
{
    (void)state;
    struct error why = {0};
    struct runner *a = arrive(0, 0, 5000), *b = arrive(1, 0, PLAN_WHOLE);
    assert_int_equal(placement_account_set(&places, &accounts[0], 5000, 5000, &why), 0);
    assert_int_equal(placement_move_account(&places, &a->place, &accounts[0], &why), 0);
    make_all();
    enter(b, 1);
    assert_true(b->place.borrows);
    assert_int_equal(enter(a, 2), PLACEMENT_MOVE);
    assert_true(a->place.at_home);
    assert_false(a->place.borrows);
    assert_int_equal(enter(b, 2), PLACEMENT_HOLD);
    make_all();
    assert_int_equal(enter(b, 3), PLACEMENT_MOVE);
    assert_int_equal(on(b) & on(a), 0);
}

static uint32_t drawn = 777;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (drawn >> 8) % below;
}

/* Nobody is ever let on SM groups that somebody else with work calls its own. */
static void check_entered(int i, enum placement_answer said, int step)
{
    if (said == PLACEMENT_HOLD)
        return;
    for (int other = 0; other < CLIENTS; other++)
        if (other != i && runners[other].place.allocation.present && runners[other].place.working &&
            sm_group_set_overlaps(&runners[other].place.allocation.own, &runners[i].on->sm_groups))
            fail_msg("step %d: client %d runs on SM groups of %d, which has work", step, i, other);
    const struct sm_allocation_account *mine = runners[i].place.allocation.account;
    for (int other = 0; other < CLIENTS; other++) {
        const struct sm_allocation_account *owner = runners[other].place.allocation.account;
        if (runners[other].place.working && owner && owner != mine &&
            sm_group_set_overlaps(&owner->own, &runners[i].on->sm_groups))
            fail_msg("step %d: client %d runs on SM groups of %d's account", step, i, other);
    }
    uint32_t most = mine && mine->limit ? 68 * mine->limit / PLAN_WHOLE : 68;
    if (runners[i].on->multiprocessors > most && runners[i].on->multiprocessors > 8)
        fail_msg("step %d: client %d runs on more than its account's %u", step, i, most);
}

static void any_mix_keeps_the_promises(void **state)
{
    (void)state;
    struct error why = {0};
    uint64_t now = MS;
    for (int step = 0; step < 200000; step++) {
        int i = (int)draw(CLIENTS);
        struct placement *place = &runners[i].place;
        uint32_t limit = draw(3) ? 1 + draw(PLAN_WHOLE) : PLAN_WHOLE;
        uint32_t request = draw(2) ? draw(limit / 3 + 1) : 0;
        uint32_t what = draw(20);
        uint32_t of = draw(2 * ACCOUNTS);
        struct sm_allocation_account *account = of < ACCOUNTS ? &accounts[of] : NULL;
        now += draw(2 * MS);
        placement_tick(&places, now);
        if (account && draw(200) == 0) {
            placement_account_set(&places, account, request, limit, &why);
        } else if (!place->allocation.present) {
            placement_add(&places, place, account, request, limit, &why);
        } else if (what == 0) {
            leave(&runners[i]);
        } else if (what == 1) {
            placement_update(&places, place, request, limit, &why);
        } else if (what == 2 && draw(4) == 0) {
            placement_move_account(&places, place, account, &why);
        } else if (what < 6) {
            placement_idle(&places, place, now);
        } else {
            check_entered(i, enter(&runners[i], now), step);
        }
        if (draw(3) == 0)
            make_all();
    }
    /* Once all is made, whoever has SM groups is on them. */
    make_all();
    for (int i = 0; i < CLIENTS; i++)
        if (runners[i].place.allocation.present) {
            enter(&runners[i], now);
            make_all();
        }
    for (int i = 0; i < CLIENTS; i++) {
        struct placement *place = &runners[i].place;
        if (!place->allocation.present)
            continue;
        if (sm_group_set_is_empty(&place->allocation.now)) {
            assert_int_equal(enter(&runners[i], now), PLACEMENT_HOLD);
            continue;
        }
        assert_int_not_equal(enter(&runners[i], now), PLACEMENT_HOLD);
        assert_memory_equal(&runners[i].on->sm_groups, &place->allocation.now,
                            sizeof place->allocation.now);
    }
}

static void a_large_rest_makes_the_second_half(void **state)
{
    (void)state;
    const struct runner *first = arrive(0, PLAN_WHOLE / 2, PLAN_WHOLE / 2);
    const struct runner *second = arrive(1, PLAN_WHOLE / 2, PLAN_WHOLE / 2);
    assert_int_equal(view(first, 0).multiprocessors, 32);
    assert_int_equal(view(first, 0).max_multiprocessors, 32);
    assert_int_equal(view(second, 0).multiprocessors, 36);
    assert_int_equal(view(second, 0).max_multiprocessors, 36);
    assert_int_equal(view(arrive(2, 0, PLAN_WHOLE), 0).max_multiprocessors, 68);
    /* 39 of the 68, and 66: with the twelve that is three SM groups more, and six. */
    assert_int_equal(view(arrive(3, 0, 5800), 0).max_multiprocessors, 36);
    assert_int_equal(view(arrive(4, 0, 9800), 0).max_multiprocessors, 60);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        T(an_owner_gets_its_sm_groups_back_at_once),
        cmocka_unit_test_setup_teardown(a_large_rest_makes_the_second_half, start_with_large_rest,
                                        stop),
        T(a_client_that_came_late_is_told_again),
        T(a_pause_lends_nothing),
        T(a_client_that_may_run_goes_on_until_its_partition_is_made),
        T(a_place_that_was_removed_is_left_alone),
        T(without_an_sm_group_a_client_waits_and_is_told),
        T(a_partition_that_can_not_be_made_is_asked_for_again),
        T(an_account_is_on_no_more_than_its_limit),
        T(an_accounts_request_is_home_to_its_clients),
        T(any_mix_keeps_the_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
