/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The past as monitoring reads it: sums of users only grow, and no client makes rows without end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "server/supervisor/account/history.h"

#define MS UINT64_C(1000000)

static struct history history;

static int tear_down(void **state)
{
    (void)state;
    history_close(&history);
    return 0;
}

static uint64_t launches_of(const struct history_user *row)
{
    return row->left.launches + row->now.launches;
}

static const struct history_user *find(uint32_t device, uint32_t uid)
{
    for (size_t i = 0; i < history.user_count; i++)
        if (history.users[i]->device == device && history.users[i]->uid == uid)
            return history.users[i];
    return NULL;
}

static void a_client_that_leaves_stays_in_its_users_sum(void **state)
{
    (void)state;
    struct history_use one = {.launches = 5, .waits = {[3] = 2}}, other = {.launches = 7};
    history_count_begin(&history);
    history_count(&history, 0, 1000, &one, 64);
    history_count(&history, 0, 1000, &other, 36);
    assert_int_equal(launches_of(find(0, 1000)), 12);
    assert_int_equal(find(0, 1000)->clients, 2);
    assert_int_equal(find(0, 1000)->memory, 100);
    history_leave(&history, 0, 1000, &one);
    history_count_begin(&history);
    history_count(&history, 0, 1000, &other, 36);
    assert_int_equal(launches_of(find(0, 1000)), 12);
    assert_int_equal(find(0, 1000)->left.waits[3], 2);
    assert_int_equal(find(0, 1000)->clients, 1);
    assert_int_equal(find(0, 1000)->memory, 36);
}

static void each_device_has_rows_of_its_own_in_order(void **state)
{
    (void)state;
    const struct history_use use = {.copies = 1};
    static const uint32_t uids[] = {7, 3, 9, 4, 1};
    for (size_t i = 0; i < 5; i++)
        history_leave(&history, (uint32_t)i % 2, uids[i], &use);
    assert_int_equal(history.user_count, 5);
    for (size_t i = 1; i < 5; i++) {
        const struct history_user *a = history.users[i - 1], *b = history.users[i];
        assert_true(a->device < b->device || (a->device == b->device && a->uid < b->uid));
    }
}

static void more_users_than_there_are_rows_share_one(void **state)
{
    (void)state;
    const struct history_use use = {.launches = 1};
    for (uint32_t uid = 0; uid < HISTORY_USERS_MAX + 10; uid++)
        history_leave(&history, 0, uid, &use);
    assert_int_equal(history.user_count, HISTORY_USERS_MAX + 1);
    assert_int_equal(launches_of(find(0, HISTORY_NOBODY)), 10);
    history_leave(&history, 0, 5, &use);
    assert_int_equal(launches_of(find(0, 5)), 2);
}

static uint64_t faults_of(uint32_t uid, uint32_t error)
{
    for (size_t i = 0; i < history.fault_count; i++)
        if (history.faults[i].uid == uid && history.faults[i].error == error)
            return history.faults[i].count;
    return 0;
}

static void a_loss_counts_once_with_the_first_author(void **state)
{
    (void)state;
    history_lose(&history, 0, 1000, PROTO_ERROR_ILLEGAL_ADDRESS, 5);
    history_lose(&history, 0, HISTORY_NOBODY, PROTO_ERROR_ILLEGAL_ADDRESS, 5);
    assert_int_equal(faults_of(1000, PROTO_ERROR_ILLEGAL_ADDRESS), 1);
    assert_int_equal(history.fault_count, 1);
    history_lose(&history, 0, HISTORY_NOBODY, PROTO_ERROR_WORKER_LOST, 6);
    assert_int_equal(faults_of(HISTORY_NOBODY, PROTO_ERROR_WORKER_LOST), 1);
}

static void a_worker_that_goes_for_a_kernel_without_end_is_no_second_fault(void **state)
{
    (void)state;
    history_overrun(&history, 0, 1000, PROTO_ERROR_LAUNCH_TIMEOUT);
    history_lose(&history, 0, HISTORY_NOBODY, PROTO_ERROR_WORKER_LOST, 5);
    assert_int_equal(faults_of(1000, PROTO_ERROR_LAUNCH_TIMEOUT), 1);
    assert_int_equal(history.fault_count, 1);
    history_lose(&history, 0, HISTORY_NOBODY, PROTO_ERROR_WORKER_LOST, 6);
    assert_int_equal(faults_of(HISTORY_NOBODY, PROTO_ERROR_WORKER_LOST), 1);
}

static void authors_beyond_the_limit_are_not_named(void **state)
{
    (void)state;
    for (uint32_t uid = 0; uid < HISTORY_FAULTS_MAX + 3; uid++)
        history_fault(&history, 0, uid, PROTO_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(faults_of(HISTORY_NOBODY, PROTO_ERROR_ILLEGAL_ADDRESS), 3);
    assert_int_equal(history.fault_count, HISTORY_FAULTS_MAX + 1);
}

static void each_recovery_counts_once(void **state)
{
    (void)state;
    history_recover(&history, 1, 0, 100 * MS); /* nothing was lost */
    history_recover(&history, 1, 100 * MS, 150 * MS);
    history_recover(&history, 1, 100 * MS, 900 * MS); /* the worker answers again */
    assert_int_equal(history.devices[1].recovery_ns, 50 * MS);
    assert_int_equal(history.devices[1].recoveries[latency_bucket(50 * MS)], 1);
}

static void windows_of_the_next_worker_are_added(void **state)
{
    (void)state;
    struct proto_worker_usage usage = {.quiet_windows = 3, .quiet_nanoseconds = 30};
    history_windows(&history, 0, 1, &usage);
    usage.quiet_windows = 2; /* an answer that was overtaken */
    history_windows(&history, 0, 1, &usage);
    usage.quiet_windows = 1;
    usage.quiet_nanoseconds = 4;
    history_windows(&history, 0, 2, &usage);
    const struct history_device *device = &history.devices[0];
    assert_int_equal(device->windows + device->seen_windows, 4);
    assert_int_equal(device->window_ns + device->seen_ns, 34);
}

static void buckets_are_powers_of_two_of_microseconds(void **state)
{
    (void)state;
    assert_int_equal(latency_bucket(0), 0);
    assert_int_equal(latency_bucket(1999), 0);
    assert_int_equal(latency_bucket(2000), 1);
    assert_int_equal(latency_bucket(1024 * 1000), 10);
    assert_int_equal(latency_bucket(UINT64_MAX), LATENCY_BUCKETS - 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_client_that_leaves_stays_in_its_users_sum),
        T(each_device_has_rows_of_its_own_in_order),
        T(more_users_than_there_are_rows_share_one),
        T(a_loss_counts_once_with_the_first_author),
        T(a_worker_that_goes_for_a_kernel_without_end_is_no_second_fault),
        T(authors_beyond_the_limit_are_not_named),
        T(each_recovery_counts_once),
        T(windows_of_the_next_worker_are_added),
        T(buckets_are_powers_of_two_of_microseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
