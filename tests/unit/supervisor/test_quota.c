/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/supervisor/account/admission.h"
#include "server/supervisor/account/fd_budget.h"
#include "server/supervisor/account/quota.h"

#define MIB (UINT64_C(1) << 20)

static void a_limit_admits_n_and_not_one_more(void **state)
{
    (void)state;
    struct quota quota;
    struct charge charge = CHARGE_NONE, more = CHARGE_NONE;
    const struct quota *culprit = NULL;
    quota_open(&quota, "test", 100, NULL);
    assert_int_equal(quota_charge(&quota, &charge, 101, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &quota);
    assert_null(charge.quota);
    assert_int_equal(quota_charge(&quota, &charge, UINT64_MAX, NULL), QUOTA_OVER);
    assert_int_equal(quota_charge(&quota, &charge, 100, NULL), 0);
    assert_int_equal(quota_left(&quota), 0);
    assert_int_equal(quota_charge(&quota, &more, 1, NULL), QUOTA_OVER);
    assert_int_equal(quota_charge(&quota, &more, UINT64_MAX, NULL), QUOTA_OVER);
    assert_int_equal(quota_charge(&quota, &more, UINT64_MAX - 99, NULL), QUOTA_OVER);
    assert_int_equal(quota_charge(&quota, &more, 0, NULL), 0);
    quota_return(&more);
    quota_return(&charge);
    quota_return(&charge);
    quota_close(&quota);
}

static void a_limit_lowered_below_its_use_has_nothing_left(void **state)
{
    (void)state;
    struct quota quota;
    struct charge charge = CHARGE_NONE, more = CHARGE_NONE;
    quota_open(&quota, "test", 100, NULL);
    assert_int_equal(quota_charge(&quota, &charge, 80, NULL), 0);
    quota.limit = 50;
    assert_int_equal(quota_left(&quota), 0);
    assert_int_equal(quota_charge(&quota, &more, 1, NULL), QUOTA_OVER);
    quota_return(&charge);
    quota_close(&quota);
}

static void both_accounts_must_have_room(void **state)
{
    (void)state;
    struct quota server, one, two;
    struct charge a = CHARGE_NONE, b = CHARGE_NONE;
    const struct quota *culprit = NULL;
    quota_open(&server, "server", 100, NULL);
    quota_open(&one, "one", 60, &server);
    quota_open(&two, "two", 60, &server);
    assert_int_equal(quota_charge(&one, &a, 60, NULL), 0);
    assert_int_equal(quota_left(&two), 40);
    assert_int_equal(quota_charge(&two, &b, 41, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &server);
    assert_int_equal(two.used, 0); /* all or nothing */
    assert_int_equal(quota_charge(&two, &b, 40, NULL), 0);
    assert_int_equal(server.used, 100);
    quota_return(&a);
    assert_int_equal(server.used, 40);
    quota_return(&b);
    quota_close(&one);
    quota_close(&two);
    quota_close(&server);
}

static void guaranteed_amounts_are_kept_from_others(void **state)
{
    (void)state;
    struct quota device, a, b;
    struct charge one = CHARGE_NONE, two = CHARGE_NONE, three = CHARGE_NONE;
    const struct quota *culprit = NULL;
    quota_open(&device, "device", 100, NULL);
    quota_open(&a, "a", 100, &device);
    quota_open(&b, "b", 100, &device);
    assert_int_equal(quota_guarantee(&a, 40, &culprit), 0);
    assert_int_equal(quota_left(&a), 100);
    assert_int_equal(quota_left(&b), 60);
    assert_int_equal(quota_charge(&b, &one, 61, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &device);
    assert_int_equal(quota_charge(&b, &one, 60, &culprit), 0);
    assert_int_equal(quota_left(&a), 40);
    assert_int_equal(quota_charge(&a, &two, 41, &culprit), QUOTA_OVER);
    assert_int_equal(quota_charge(&a, &two, 39, &culprit), 0);
    assert_int_equal(quota_left(&b), 0);
    assert_int_equal(quota_charge(&a, &three, 1, &culprit), 0);
    assert_int_equal(device.used, 100);
    /* Beyond its guarantee it is like any other. */
    quota_return(&one);
    assert_int_equal(quota_left(&a), 60);
    quota_return(&two);
    assert_int_equal(device.used, 40);
    assert_int_equal(quota_charge(&a, &two, 90, &culprit), 0);
    assert_int_equal(quota_left(&b), 9);
    quota_return(&two);
    quota_return(&three);
    quota_close(&a);
    assert_int_equal(device.used, 0);
    quota_close(&b);
    quota_close(&device);
}

static void a_guarantee_needs_room_and_gives_it_back(void **state)
{
    (void)state;
    struct quota device, a, b;
    struct charge one = CHARGE_NONE;
    const struct quota *culprit = NULL;
    quota_open(&device, "device", 100, NULL);
    quota_open(&a, "a", 100, &device);
    quota_open(&b, "b", 100, &device);
    assert_int_equal(quota_charge(&b, &one, 30, NULL), 0);
    assert_int_equal(quota_guarantee(&a, 71, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &device);
    assert_int_equal(a.guarantee, 0);
    assert_int_equal(quota_guarantee(&a, UINT64_MAX, NULL), QUOTA_OVER);
    assert_int_equal(quota_guarantee(&a, 70, NULL), 0);
    /* b's own use counts for its guarantee. */
    assert_int_equal(quota_guarantee(&b, 30, NULL), 0);
    assert_int_equal(quota_guarantee(&b, 31, NULL), QUOTA_OVER);
    assert_int_equal(quota_guarantee(&a, 69, NULL), 0);
    assert_int_equal(quota_guarantee(&b, 31, NULL), 0);
    quota_return(&one);
    assert_int_equal(device.used, 100);
    assert_int_equal(quota_guarantee(&b, 0, NULL), 0);
    assert_int_equal(device.used, 69);
    quota_close(&a);
    quota_close(&b);
    quota_close(&device);
}

static void a_guarantee_is_restored_while_the_accounts_above_have_room(void **state)
{
    (void)state;
    struct quota device, total, a, b;
    struct quota_link link;
    struct charge charge = CHARGE_NONE;
    quota_open(&device, "device", 100, NULL);
    quota_open(&total, "total", 100, NULL);
    quota_open(&a, "a", 100, &device);
    quota_open(&b, "b", 100, &device);
    quota_join(&a, &link, &total);
    assert_int_equal(quota_guarantee(&a, 60, NULL), 0);
    total.limit = 10;
    assert_int_equal(quota_guarantee(&a, 30, NULL), 0);
    assert_int_equal(quota_guarantee(&a, 60, NULL), QUOTA_OVER);
    assert_int_equal(quota_restore(&a, 60), 0);
    assert_int_equal(a.guarantee, 60);
    assert_int_equal(total.used, 60);
    assert_int_equal(device.used, 60);
    /* Others of the device have taken what was given up. */
    assert_int_equal(quota_guarantee(&a, 30, NULL), 0);
    assert_int_equal(quota_charge(&b, &charge, 50, NULL), 0);
    assert_int_equal(quota_restore(&a, 60), QUOTA_OVER);
    assert_int_equal(a.guarantee, 30);
    assert_int_equal(device.used, 80);
    assert_int_equal(quota_restore(&a, 50), 0);
    assert_int_equal(quota_restore(&a, 0), 0);
    assert_int_equal(total.used, 0);
    quota_return(&charge);
    quota_leave(&a, &link);
    quota_close(&a);
    quota_close(&b);
    quota_close(&total);
    quota_close(&device);
}

static void a_total_counts_all_accounts_that_joined_it(void **state)
{
    (void)state;
    struct quota device, user, group, a, b;
    struct quota_link au, ag, bu;
    struct charge one = CHARGE_NONE, two = CHARGE_NONE;
    const struct quota *culprit = NULL;
    quota_open(&device, "device", 100, NULL);
    quota_open(&user, "user", 50, NULL);
    quota_open(&group, "group", 20, NULL);
    quota_open(&a, "a", 100, &device);
    quota_open(&b, "b", 100, &device);
    assert_int_equal(quota_charge(&b, &two, 30, NULL), 0);
    quota_join(&a, &au, &user);
    quota_join(&a, &ag, &group);
    quota_join(&b, &bu, &user); /* with what it has */
    assert_int_equal(user.used, 30);
    assert_int_equal(quota_left(&a), 20);
    assert_int_equal(quota_charge(&a, &one, 21, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &group);
    assert_int_equal(device.used, 30);
    group.limit = 100;
    assert_int_equal(quota_charge(&a, &one, 21, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &user);
    assert_int_equal(quota_guarantee(&a, 21, &culprit), QUOTA_OVER);
    assert_ptr_equal(culprit, &user);
    assert_int_equal(quota_charge(&a, &one, 20, &culprit), 0);
    assert_int_equal(user.used, 50);
    assert_int_equal(group.used, 20);
    /* A client that leaves it takes its use along; one that joins brings it, even beyond the limit.
     */
    quota_leave(&a, &ag);
    assert_int_equal(group.used, 0);
    group.limit = 10;
    quota_join(&a, &ag, &group);
    assert_int_equal(group.used, 20);
    assert_int_equal(quota_left(&a), 0);
    quota_return(&one);
    assert_int_equal(group.used, 0);
    assert_int_equal(user.used, 30);
    quota_return(&two);
    quota_leave(&a, &au);
    quota_leave(&a, &ag);
    quota_leave(&b, &bu);
    quota_close(&a);
    quota_close(&b);
    quota_close(&user);
    quota_close(&group);
    quota_close(&device);
}

/* context: the quota that is asked about. */
static uint64_t gives_seven(const void *context, const struct quota *total)
{
    assert_ptr_equal(total, context);
    return 7;
}

static void what_totals_leave_is_found_as_if_idle_charges_were_returned(void **state)
{
    (void)state;
    struct quota device, user, group, a, b;
    struct quota_link links[3];
    struct charge of_a = {0}, of_b = {0};
    quota_open(&device, "device", 100, NULL);
    quota_open(&user, "user", 80, NULL);
    quota_open(&group, "group", 200, NULL);
    quota_open(&a, "a", 50, &device);
    quota_open(&b, "b", 100, &device);
    assert_int_equal(quota_left_in_totals(&b, 0, NULL, NULL), 100);
    quota_join(&a, &links[0], &user);
    quota_join(&b, &links[1], &user);
    quota_join(&b, &links[2], &group);
    assert_int_equal(quota_left_in_totals(&a, 0, NULL, NULL), 50);
    assert_int_equal(quota_left_in_totals(&b, 0, NULL, NULL), 80);
    assert_int_equal(quota_charge(&a, &of_a, 30, NULL), 0);
    assert_int_equal(quota_charge(&b, &of_b, 40, NULL), 0);
    assert_int_equal(quota_left_in_totals(&a, 0, NULL, NULL), 10);
    assert_int_equal(quota_left_in_totals(&a, 30, NULL, NULL), 40);
    assert_int_equal(quota_left_in_totals(&b, 15, NULL, NULL), 25);
    assert_true(quota_left_above(&device, 0, NULL, NULL) == UINT64_MAX);
    assert_int_equal(quota_left_above(&a, 0, NULL, NULL), 30);
    assert_int_equal(quota_left_above(&a, 30, NULL, NULL), 60);
    assert_int_equal(quota_left_above(&b, 15, NULL, NULL), 45);
    assert_int_equal(quota_left_above(&b, 15, gives_seven, &device), 52);
    /* A guarantee keeps what idle charges give up, for its own quota alone. */
    assert_int_equal(quota_guarantee(&b, 50, NULL), 0);
    assert_int_equal(quota_left_above(&a, 0, NULL, NULL), 20);
    assert_int_equal(quota_left_above(&b, 0, NULL, NULL), 30);
    assert_int_equal(quota_left_above(&b, 15, NULL, NULL), 45);
    assert_int_equal(quota_left_in_totals(&a, 0, NULL, NULL), 0);
    assert_int_equal(quota_left_in_totals(&b, 0, NULL, NULL), 10);
    assert_int_equal(quota_left_in_totals(&b, 15, NULL, NULL), 25);
    device.limit = 60;
    assert_int_equal(quota_left_above(&a, 0, NULL, NULL), 0);
    assert_int_equal(quota_left_above(&b, 0, NULL, NULL), 10);
    /* A total below what is used leaves nothing but the guarantee. */
    user.limit = 20;
    assert_int_equal(quota_left_in_totals(&a, 5, NULL, NULL), 0);
    assert_int_equal(quota_left_in_totals(&b, 0, NULL, NULL), 10);
    quota_return(&of_a);
    quota_return(&of_b);
    quota_leave(&a, &links[0]);
    quota_leave(&b, &links[1]);
    quota_leave(&b, &links[2]);
    quota_close(&a);
    quota_close(&b);
    quota_close(&user);
    quota_close(&group);
    quota_close(&device);
}

/* Everything at random, against sums made anew each time; quota_left is the truth to the byte. */
static void sums_hold_whatever_happens(void **state)
{
    (void)state;
    enum { CLIENTS = 5, TOTALS = 3, CHARGES = 6 };
    struct quota device, totals[TOTALS], clients[CLIENTS];
    struct quota_link links[CLIENTS][TOTALS] = {0};
    struct charge charges[CLIENTS][CHARGES] = {0};
    uint32_t random = 12345;
    quota_open(&device, "device", 500, NULL);
    for (int t = 0; t < TOTALS; t++)
        quota_open(&totals[t], "total", 200, NULL);
    for (int c = 0; c < CLIENTS; c++)
        quota_open(&clients[c], "client", 150, &device);
    for (int step = 0; step < 50000; step++) {
        random = random * 1664525 + 1013904223;
        uint32_t r = random >> 8;
        struct quota *client = &clients[r % CLIENTS];
        struct charge *charge = &charges[r % CLIENTS][r / 7 % CHARGES];
        struct quota_link *link = &links[r % CLIENTS][r / 7 % TOTALS];
        uint64_t amount = r / 64 % 90;
        switch (r / 5 % 4) {
        case 0:
            if (charge->quota) {
                const uint64_t without = quota_left_in_totals(client, charge->amount, NULL, NULL);
                quota_return(charge);
                assert_int_equal(quota_left_in_totals(client, 0, NULL, NULL), without);
                assert_true(quota_left(client) <= without);
                break;
            }
            uint64_t left = quota_left(client);
            assert_int_equal(quota_charge(client, charge, left + 1, NULL), QUOTA_OVER);
            assert_int_equal(quota_charge(client, charge, amount, NULL),
                             amount <= left ? 0 : QUOTA_OVER);
            break;
        case 1:
            quota_guarantee(client, amount, NULL);
            break;
        case 2:
            if (link->total)
                quota_leave(client, link);
            else
                quota_join(client, link, &totals[r / 7 % TOTALS]);
            break;
        default:
            totals[r / 7 % TOTALS].limit = 100 + amount;
        }
        uint64_t sum = 0, joined[TOTALS] = {0};
        for (int c = 0; c < CLIENTS; c++) {
            uint64_t used = 0;
            for (int i = 0; i < CHARGES; i++)
                used += charges[c][i].amount;
            assert_int_equal(clients[c].used, used);
            uint64_t held = used > clients[c].guarantee ? used : clients[c].guarantee;
            sum += held;
            for (int t = 0; t < TOTALS; t++)
                joined[t] += links[c][t].total ? held : 0;
        }
        assert_int_equal(device.used, sum);
        assert_true(sum <= device.limit);
        for (int t = 0; t < TOTALS; t++)
            assert_int_equal(totals[t].used, joined[t]);
    }
    for (int c = 0; c < CLIENTS; c++) {
        for (int i = 0; i < CHARGES; i++)
            quota_return(&charges[c][i]);
        for (int t = 0; t < TOTALS; t++)
            if (links[c][t].total)
                quota_leave(&clients[c], &links[c][t]);
        quota_close(&clients[c]);
    }
    for (int t = 0; t < TOTALS; t++)
        quota_close(&totals[t]);
    quota_close(&device);
}

static void descriptors_are_divided_without_a_rest(void **state)
{
    (void)state;
    struct fd_budget budget;
    /* The case: a thousand clients at a limit of 20000. */
    assert_int_equal(fd_budget_divide(&budget, 20000, 1, 0), 0);
    assert_true(budget.clients >= 1000);
    assert_true(budget.shared >= budget.clients);
    assert_int_equal(budget.clients * FD_BUDGET_CLIENT + budget.shared + FD_BUDGET_SERVER +
                         FD_BUDGET_DEVICE,
                     20000);
    assert_int_equal(fd_budget_divide(&budget, 1024, 2, 50), 0);
    assert_int_equal(budget.clients, 50);
    assert_int_equal(budget.shared,
                     1024 - FD_BUDGET_SERVER - 2 * FD_BUDGET_DEVICE - 50 * FD_BUDGET_CLIENT);
    assert_int_equal(budget.client_max, budget.shared / 4);
    assert_int_equal(fd_budget_divide(&budget, 1024, 1, 1000), -EMFILE);
    uint32_t most = budget.clients;
    assert_int_equal(fd_budget_divide(&budget, 1024, 1, most), 0);
    assert_int_equal(fd_budget_divide(&budget, 1024, 1, most + 1), -EMFILE);
    assert_int_equal(fd_budget_divide(&budget, 64, 1, 0), -EMFILE);
    assert_int_equal(fd_budget_divide(&budget, 1 << 30, 1, 0), 0);
    assert_int_equal(budget.clients, 4096);
}

static void a_kept_descriptor_is_charged_until_it_is_closed(void **state)
{
    (void)state;
    struct quota fds;
    struct charged_fd kept = CHARGED_FD_NONE, more = CHARGED_FD_NONE;
    quota_open(&fds, "fds", 1, NULL);
    assert_int_equal(fd_budget_charge(&kept, &fds, NULL), 0);
    assert_int_equal(fd_budget_charge(&more, &fds, NULL), QUOTA_OVER);
    kept.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int number = kept.fd;
    fd_budget_release(&kept);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    fd_budget_release(&kept);
    fd_budget_release(&more);
    quota_close(&fds);
}

static struct admission admit(struct allowance limits)
{
    struct admission admission = {.limits = allowance_none};
    allowance_tighten(&admission.limits, &limits);
    return admission;
}

static void a_wish_can_only_tighten(void **state)
{
    (void)state;
    struct proto_device_info device = {.memory = 1000 * MIB};
    struct allowance limits = allowance_none;
    limits.memory.limit = 300 * MIB;
    limits.host_memory.limit = 40 * MIB;
    limits.threads.limit = 5000;
    limits.priority = 1;
    struct admission server = admit(limits);
    struct allowance wish = allowance_none;
    struct grant grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, 300 * MIB);
    assert_int_equal(grant.allowance.host_memory.limit, 40 * MIB);
    assert_int_equal(grant.allowance.threads.limit, 5000);
    assert_int_equal(grant.allowance.priority, 1);
    assert_int_equal(grant.window_bytes, 1024 * MIB);
    wish = allowance_none;
    wish.memory.limit = 100 * MIB;
    wish.host_memory.limit = 50 * MIB;
    wish.threads.limit = 2500;
    wish.priority = 3;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, 100 * MIB);
    assert_int_equal(grant.allowance.host_memory.limit, 40 * MIB);
    assert_int_equal(grant.allowance.threads.limit, 2500);
    assert_int_equal(grant.allowance.priority, 3);
    assert_int_equal(grant.window_bytes, 256 * MIB);
    limits = allowance_none;
    limits.host_memory.limit = 5000 * MIB;
    server = admit(limits);
    wish = allowance_none;
    wish.memory.limit = wish.host_memory.limit = UINT64_MAX - 1;
    wish.threads.limit = 10000;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, 1000 * MIB);
    assert_int_equal(grant.window_bytes, 1024 * MIB);
    assert_int_equal(grant.allowance.host_memory.limit,
                     1024 * MIB); /* no more than there are addresses */
    assert_int_equal(grant.allowance.threads.limit, 10000);
    server.max_window = 512 * MIB;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, 512 * MIB);
    /* A share of the device, rounded down. */
    device.memory = 1000 * MIB + 1;
    server.limits.part[RESOURCE_MEMORY].limit = 3333;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, (1000 * MIB + 1) * 3333 / 10000);
}

static void a_request_comes_from_either_side_and_the_administrators_is_the_ceiling(void **state)
{
    (void)state;
    struct proto_device_info device = {.memory = 1000 * MIB};
    struct allowance wish = allowance_none;
    struct admission server = admit(allowance_none);
    struct grant grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.threads.request, 0);
    assert_int_equal(grant.allowance.time.request, 0);
    assert_int_equal(grant.allowance.time.limit, 10000);
    assert_int_equal(grant.allowance.memory.request, 0);
    /* Nobody says anything of it but the client. */
    wish.threads.request = 3000;
    wish.time.request = 2000;
    wish.time.limit = 6000;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.threads.request, 3000);
    assert_int_equal(grant.allowance.time.request, 2000);
    assert_int_equal(grant.allowance.time.limit, 6000);
    /* A buffer that is given lowers it, and need not be asked for. */
    server.limits.threads.request = 2500;
    server.limits.time.request = 4000;
    server.limits.time.limit = 5000;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.threads.request, 2500);
    assert_int_equal(grant.allowance.time.request, 2000);
    assert_int_equal(grant.allowance.time.limit, 5000);
    wish.threads.request = wish.time.request = ALLOWANCE_UNSET;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.threads.request, 2500);
    assert_int_equal(grant.allowance.time.request, 4000);
    /* Never above the limit. */
    wish.threads.limit = 1000;
    wish.time.limit = 700;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.threads.request, 1000);
    assert_int_equal(grant.allowance.time.request, 700);
    /* Nothing may be reserved. */
    server.limits.threads.request = server.limits.time.request = 0;
    wish.threads.request = wish.time.request = 700;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.threads.request, 0);
    assert_int_equal(grant.allowance.time.request, 0);
    /* Memory: the smaller of size and share, and the limit. */
    server.limits.memory.request = 600 * MIB;
    server.limits.host_memory.request = 30 * MIB;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.request, 600 * MIB);
    assert_int_equal(grant.allowance.host_memory.request, 30 * MIB);
    server.limits.part[RESOURCE_MEMORY].request = 5000;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.request, 500 * MIB);
    wish.memory.limit = 100 * MIB;
    wish.host_memory.limit = 10 * MIB;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.request, 100 * MIB);
    assert_int_equal(grant.allowance.host_memory.request, 10 * MIB);
    /* A client may ask for less, */
    wish.memory.request = 99 * MIB;
    wish.host_memory.request = 9 * MIB;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.request, 99 * MIB);
    assert_int_equal(grant.allowance.host_memory.request, 9 * MIB);
    /* for as much as it may have where nobody says anything of it, */
    server.limits = allowance_none;
    wish.memory.request = 101 * MIB;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.request, 100 * MIB);
    assert_int_equal(grant.allowance.host_memory.request, 9 * MIB);
    /* and gets nothing where nothing may be reserved. */
    server.limits.part[RESOURCE_MEMORY].request = 0;
    server.limits.host_memory.request = 0;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.request, 0);
    assert_int_equal(grant.allowance.host_memory.request, 0);
}

/* The product of an exbibyte with a share does not fit 64 bits. */
static void a_share_of_a_device_is_rounded_down(void **state)
{
    (void)state;
    struct allowance wish = allowance_none;
    struct admission server = admit(allowance_none);
    struct proto_device_info device = {.memory = 10001};
    server.max_window = UINT64_C(1) << 62;
    server.limits.part[RESOURCE_MEMORY].limit = 3333;
    struct grant grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, 3333); /* and 3333 ten thousandths */
    device.memory = UINT64_C(1) << 60;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.allowance.memory.limit, (UINT64_C(1) << 60) / 10000 * 3333 +
                                                       (UINT64_C(1) << 60) % 10000 * 3333 / 10000);
}

static void a_limit_in_force_is_not_loosened(void **state)
{
    (void)state;
    struct allowance server = allowance_none, looser = server, stricter = server;
    server.memory.limit = server.memory.request = 100;
    server.host_memory.limit = server.host_memory.request = 200;
    server.part[RESOURCE_MEMORY].limit = server.part[RESOURCE_MEMORY].request = 900;
    server.threads.limit = server.threads.request = 1000;
    server.time.limit = server.time.request = 300;
    server.priority = 5;
    looser.memory.limit = looser.memory.request = 101;
    looser.host_memory.limit = looser.host_memory.request = 201;
    looser.part[RESOURCE_MEMORY].limit = looser.part[RESOURCE_MEMORY].request = 901;
    looser.threads.limit = looser.threads.request = 1001;
    looser.time.limit = looser.time.request = 301;
    looser.priority = 4;
    const struct allowance before = server;
    allowance_tighten(&server, &looser);
    allowance_tighten(&server, &allowance_none);
    assert_true(allowance_equal(&server, &before));
    /* Each is taken where it is stricter, and from nothing. */
    stricter = allowance_none;
    allowance_tighten(&stricter, &server);
    assert_true(allowance_equal(&stricter, &before));
    allowance_tighten(&looser, &server);
    assert_true(allowance_equal(&looser, &before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_admits_n_and_not_one_more),
        cmocka_unit_test(a_limit_lowered_below_its_use_has_nothing_left),
        cmocka_unit_test(both_accounts_must_have_room),
        cmocka_unit_test(descriptors_are_divided_without_a_rest),
        cmocka_unit_test(a_kept_descriptor_is_charged_until_it_is_closed),
        cmocka_unit_test(a_wish_can_only_tighten),
        cmocka_unit_test(a_share_of_a_device_is_rounded_down),
        cmocka_unit_test(a_limit_in_force_is_not_loosened),
        cmocka_unit_test(a_request_comes_from_either_side_and_the_administrators_is_the_ceiling),
        cmocka_unit_test(guaranteed_amounts_are_kept_from_others),
        cmocka_unit_test(a_guarantee_needs_room_and_gives_it_back),
        cmocka_unit_test(a_guarantee_is_restored_while_the_accounts_above_have_room),
        cmocka_unit_test(a_total_counts_all_accounts_that_joined_it),
        cmocka_unit_test(what_totals_leave_is_found_as_if_idle_charges_were_returned),
        cmocka_unit_test(sums_hold_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
