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

#include "server/supervisor/admission.h"
#include "server/supervisor/keeper.h"
#include "server/supervisor/quota.h"

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
    charge_return(&more);
    charge_return(&charge);
    charge_return(&charge);
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
    charge_return(&charge);
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
    charge_return(&a);
    assert_int_equal(server.used, 40);
    charge_return(&b);
    quota_close(&one);
    quota_close(&two);
    quota_close(&server);
}

static void descriptors_are_divided_without_a_rest(void **state)
{
    (void)state;
    struct keeper_budget budget;
    /* The case: a thousand clients at a limit of 20000. */
    assert_int_equal(keeper_divide(&budget, 20000, 1, 0), 0);
    assert_true(budget.clients >= 1000);
    assert_true(budget.shared >= budget.clients);
    assert_int_equal(budget.clients * KEEPER_FDS_CLIENT + budget.shared + KEEPER_FDS_SERVER +
                         KEEPER_FDS_DEVICE,
                     20000);
    assert_int_equal(keeper_divide(&budget, 1024, 2, 50), 0);
    assert_int_equal(budget.clients, 50);
    assert_int_equal(budget.shared,
                     1024 - KEEPER_FDS_SERVER - 2 * KEEPER_FDS_DEVICE - 50 * KEEPER_FDS_CLIENT);
    assert_int_equal(budget.client_share, budget.shared / 4);
    assert_int_equal(keeper_divide(&budget, 1024, 1, 1000), -EMFILE);
    uint32_t most = budget.clients;
    assert_int_equal(keeper_divide(&budget, 1024, 1, most), 0);
    assert_int_equal(keeper_divide(&budget, 1024, 1, most + 1), -EMFILE);
    assert_int_equal(keeper_divide(&budget, 64, 1, 0), -EMFILE);
    assert_int_equal(keeper_divide(&budget, 1 << 30, 1, 0), 0);
    assert_int_equal(budget.clients, 4096);
}

static void a_kept_descriptor_is_charged_until_it_is_closed(void **state)
{
    (void)state;
    struct quota fds;
    struct kept kept = KEPT_NONE, more = KEPT_NONE;
    quota_open(&fds, "fds", 1, NULL);
    assert_int_equal(keeper_charge(&kept, &fds, NULL), 0);
    assert_int_equal(keeper_charge(&more, &fds, NULL), QUOTA_OVER);
    kept.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int number = kept.fd;
    keeper_release(&kept);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    keeper_release(&kept);
    keeper_release(&more);
    quota_close(&fds);
}

static void a_wish_can_only_tighten(void **state)
{
    (void)state;
    struct proto_device_info device = {.memory = 1000 * MIB};
    struct admission server = {.memory_limit = 300 * MIB,
                               .host_limit = 40 * MIB,
                               .thread_percentage = 5000,
                               .priority = 1};
    struct proto_attach wish = {.memory_limit = PROTO_UNSET, .host_memory_limit = PROTO_UNSET};
    struct grant grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.memory_limit, 300 * MIB);
    assert_int_equal(grant.host_limit, 40 * MIB);
    assert_int_equal(grant.thread_percentage, 5000);
    assert_int_equal(grant.priority, 1);
    assert_int_equal(grant.window_bytes, 1024 * MIB);
    wish = (struct proto_attach){.memory_limit = 100 * MIB,
                                 .host_memory_limit = 50 * MIB,
                                 .thread_percentage = 2500,
                                 .priority = 3};
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.memory_limit, 100 * MIB);
    assert_int_equal(grant.host_limit, 40 * MIB);
    assert_int_equal(grant.thread_percentage, 2500);
    assert_int_equal(grant.priority, 3);
    assert_int_equal(grant.window_bytes, 256 * MIB);
    server = (struct admission){.memory_limit = PROTO_UNSET, .host_limit = 5000 * MIB};
    wish = (struct proto_attach){.memory_limit = UINT64_MAX - 1,
                                 .host_memory_limit = UINT64_MAX - 1,
                                 .thread_percentage = 10000};
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.memory_limit, 1000 * MIB);
    assert_int_equal(grant.window_bytes, 1024 * MIB);
    assert_int_equal(grant.host_limit, 1024 * MIB); /* no more than there are addresses */
    assert_int_equal(grant.thread_percentage, 10000);
    server.max_window = 512 * MIB;
    grant = admission_grant(&server, &device, &wish);
    assert_int_equal(grant.memory_limit, 512 * MIB);
}

/* The product of an exbibyte with a share does not fit 64 bits. */
static void a_share_of_a_device_is_rounded_down(void **state)
{
    (void)state;
    struct config_limits limits = config_limits_none;
    struct admission server = {.memory_limit = PROTO_UNSET, .host_limit = PROTO_UNSET};
    limits.memory_share = 3333;
    admission_tighten(&server, &limits, 10001);
    assert_int_equal(server.memory_limit, 3333); /* and 3333 ten thousandths */
    server.memory_limit = PROTO_UNSET;
    admission_tighten(&server, &limits, UINT64_C(1) << 60);
    assert_int_equal(server.memory_limit, (UINT64_C(1) << 60) / 10000 * 3333 +
                                              (UINT64_C(1) << 60) % 10000 * 3333 / 10000);
}

static void what_holds_already_is_not_loosened(void **state)
{
    (void)state;
    struct admission server = {
        .memory_limit = 100, .host_limit = 200, .thread_percentage = 1000, .priority = 5};
    const struct admission before = server;
    struct config_limits looser = {.memory = 101,
                                   .host_memory = 201,
                                   .memory_share = PROTO_PERCENT_WHOLE,
                                   .threads = 1001,
                                   .priority = 4};
    admission_tighten(&server, &looser, 1000);
    assert_int_equal(server.memory_limit, before.memory_limit);
    assert_int_equal(server.host_limit, before.host_limit);
    assert_int_equal(server.thread_percentage, before.thread_percentage);
    assert_int_equal(server.priority, before.priority);
    admission_tighten(&server, &config_limits_none, 1000);
    assert_int_equal(server.memory_limit, before.memory_limit);
    assert_int_equal(server.host_limit, before.host_limit);
    struct config_limits stricter = {
        .memory = 99, .host_memory = 199, .memory_share = 980, .threads = 999, .priority = 6};
    admission_tighten(&server, &stricter, 1000);
    assert_int_equal(server.memory_limit, 98); /* the share is stricter still */
    assert_int_equal(server.host_limit, 199);
    assert_int_equal(server.thread_percentage, 999);
    assert_int_equal(server.priority, 6);
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
        cmocka_unit_test(what_holds_already_is_not_loosened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
