/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* schedule: what administrators write of a device, held to what the scheduler accepts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/units.h"
#include "server/scheduler/scheduler.h"
#include "server/supervisor/config/schedule.h"

static struct error why;

static uint32_t set(struct schedule *schedule, const char *name, const char *value)
{
    unsigned part = schedule_part_of(name, strlen(name));
    assert_int_not_equal(part, 0);
    why.text[0] = '\0';
    return schedule_set(schedule, part, value, strlen(value), &why);
}

static void accepts(struct schedule *schedule, const char *name, const char *value)
{
    uint32_t result = set(schedule, name, value);
    if (result != 0)
        fail_msg("%s=%s gave %u: %s", name, value, result, why.text);
}

/* Refused with a sentence that has the name and the value, and nothing changed. */
static void refuses(const char *name, const char *value, const char *form)
{
    struct schedule schedule = schedule_default(), before = schedule;
    if (set(&schedule, name, value) == 0)
        fail_msg("%s=%s was accepted", name, value);
    assert_int_equal(schedule_differs(&schedule, &before), 0);
    assert_ptr_equal(strstr(why.text, name), why.text);
    assert_non_null(strstr(why.text, value));
    if (!strstr(why.text, form))
        fail_msg("\"%s\" lacks \"%s\"", why.text, form);
}

static void scheduler_says(const struct schedule *schedule, int want)
{
    struct scheduler_schedule settings;
    struct error refusal;
    scheduler_defaults(&settings);
    settings.mode = (enum proto_mode)schedule->mode;
    settings.lease_ns = schedule->lease_ns;
    settings.precision = schedule->precision;
    settings.quantum_ns = schedule->quantum_ns;
    assert_int_equal(scheduler_check(&settings, &refusal) != 0, want != 0);
}

static void default_is_the_schedulers(void **state)
{
    (void)state;
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    struct schedule schedule = schedule_default();
    assert_int_equal(schedule.mode, PROTO_MODE_CONCURRENT);
    assert_int_equal(settings.mode, PROTO_MODE_CONCURRENT);
    assert_int_equal(schedule.lease_ns, settings.lease_ns);
    assert_int_equal(schedule.precision, settings.precision);
    assert_int_equal(schedule.quantum_ns, settings.quantum_ns);
}

static void modes_have_the_schedulers_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"concurrent", "strict", "fair", "turns"};
    static const enum proto_mode numbers[] = {PROTO_MODE_CONCURRENT, PROTO_MODE_STRICT,
                                              PROTO_MODE_FAIR, PROTO_MODE_TURNS};
    for (unsigned i = 0; i < 4; i++) {
        struct schedule schedule = schedule_default();
        accepts(&schedule, "mode", names[i]);
        assert_int_equal(schedule.mode, numbers[i]);
        assert_string_equal(proto_mode_name(schedule.mode), names[i]);
        assert_int_equal(schedule_time_enforced(schedule.mode), i == 1 || i == 2);
        assert_int_equal(schedule_message(&schedule).mode, i);
    }
    refuses("mode", "Fair", "concurrent, strict, fair and turns");
    refuses("mode", "", "concurrent, strict, fair and turns");
    refuses("mode", "fai", "concurrent, strict, fair and turns");
}

static void nvidia_classes_are_leases(void **state)
{
    (void)state;
    static const char *const names[] = {"default", "short", "medium", "long"};
    static const uint64_t leases[] = {250000000, 10000000, 100000000, 1000000000};
    for (unsigned i = 0; i < 4; i++) {
        struct schedule schedule = schedule_default();
        char number[2] = {(char)('0' + i), 0};
        accepts(&schedule, "lease", names[i]);
        assert_int_equal(schedule.lease_ns, leases[i]);
        schedule.lease_ns = 1;
        accepts(&schedule, "lease", number);
        assert_int_equal(schedule.lease_ns, leases[i]);
    }
    refuses("lease", "4", "5ms to 10s");
}

static void edges_are_the_schedulers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *least, *most, *below, *above, *form;
    } edges[] = {
        {"lease", "5ms", "10s", "4999999ns", "10000000001ns", "5ms to 10s"},
        {"precision", "1%", "0.5", "0.99%", "50.01%", "1% to 50%"},
        {"quantum", "5ms", "1h", "4999999ns", "3600000000001ns", "5ms to 1h"},
        {"window_limit", "1ms", "10s", "999999ns", "10000000001ns", "1ms to 10s"},
        {"local_memory", "1K", "512K", "1023", "524289", "1K to 512K"},
        {"departed_time_limit", "100ms", "24h", "99999999ns", "86400000000001ns", "100ms to 24h"},
        {"watchdog_warning", "100ms", "24h", "99999999ns", "86400000000001ns", "100ms to 24h"},
        {"watchdog_limit", "100ms", "24h", "99999999ns", "86400000000001ns", "100ms to 24h"},
    };
    for (unsigned i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        struct schedule schedule = schedule_default();
        accepts(&schedule, edges[i].name, edges[i].least);
        scheduler_says(&schedule, 0);
        accepts(&schedule, edges[i].name, edges[i].most);
        scheduler_says(&schedule, 0);
        refuses(edges[i].name, edges[i].below, edges[i].form);
        refuses(edges[i].name, edges[i].above, edges[i].form);
    }
    /* One past each edge, where only the numbers say it. */
    struct schedule past = schedule_default();
    past.lease_ns = 4999999;
    scheduler_says(&past, -EINVAL);
    past.lease_ns = UINT64_C(10000000001);
    scheduler_says(&past, -EINVAL);
    past = schedule_default();
    past.precision = 99;
    scheduler_says(&past, -EINVAL);
    past.precision = 5001;
    scheduler_says(&past, -EINVAL);
    past = schedule_default();
    past.quantum_ns = 4999999;
    scheduler_says(&past, -EINVAL);
    past.quantum_ns = UINT64_C(3600000000001);
    scheduler_says(&past, -EINVAL);
}

static void malformed_times_and_shares_are_refused(void **state)
{
    (void)state;
    static const char *const times[] = {
        "",      "50",     "50 ms", "-50ms", "50MS", "0", "0s", "1e3ms", "99999999999999999999s",
        "50ms ", "forever"};
    for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (strcmp(times[i], "0") != 0) /* a class */
            refuses("lease", times[i], "50ms");
        refuses("quantum", times[i], "30s");
        refuses("window_limit", times[i], "500ms");
        if (strcmp(times[i], "0") != 0) /* none */
            refuses("watchdog_limit", times[i], "500ms, 5s or 2min");
    }
    refuses("local_memory", "4 K", "4K");
    refuses("local_memory", "-4K", "4K");
    refuses("local_memory", "50%", "4K");
    refuses("precision", "5", "5%");
    refuses("precision", "0%", "5%");
    refuses("precision", "5.001%", "5%");
}

static void a_standby_is_one_of_three(void **state)
{
    (void)state;
    struct schedule schedule = schedule_default();
    assert_int_equal(schedule.standby, SCHEDULE_STANDBY_NONE);
    accepts(&schedule, "standby", "driver");
    assert_int_equal(schedule.standby, SCHEDULE_STANDBY_DRIVER);
    accepts(&schedule, "standby", "context");
    assert_int_equal(schedule.standby, SCHEDULE_STANDBY_CONTEXT);
    accepts(&schedule, "standby", "none");
    assert_int_equal(schedule.standby, SCHEDULE_STANDBY_NONE);
    refuses("standby", "", "one of none, driver and context");
    refuses("standby", "drivers", "one of none, driver and context");
    refuses("standby", "1", "one of none, driver and context");
}

static void zero_is_no_limit(void **state)
{
    (void)state;
    struct schedule schedule = schedule_default();
    assert_int_equal(schedule.departed_limit_ns, UINT64_C(10000000000));
    assert_int_equal(schedule.watchdog_warning_ns, 2000000000);
    assert_int_equal(schedule.watchdog_limit_ns, UINT64_C(10000000000));
    accepts(&schedule, "departed_time_limit", "1.5s");
    accepts(&schedule, "watchdog_warning", "0");
    accepts(&schedule, "watchdog_limit", "0");
    assert_int_equal(schedule.departed_limit_ns, 1500000000);
    assert_int_equal(schedule.watchdog_warning_ns, 0);
    assert_int_equal(schedule.watchdog_limit_ns, 0);
    accepts(&schedule, "departed_time_limit", "0");
    assert_int_equal(schedule.departed_limit_ns, 0);
    refuses("watchdog_limit", "00", "0, or a time");
}

static void only_the_parts_named_are_merged(void **state)
{
    (void)state;
    struct schedule from = {PROTO_MODE_TURNS,
                            1000,
                            7000000,
                            9000000,
                            11000000,
                            8192,
                            13000000,
                            15000000,
                            17000000,
                            SCHEDULE_STANDBY_CONTEXT,
                            {3700}};
    for (unsigned parts = 0; parts <= SCHEDULE_WHOLE; parts++) {
        struct schedule into = schedule_default(), was = into;
        schedule_merge(&into, &from, parts);
        assert_int_equal(into.mode, parts & SCHEDULE_MODE ? from.mode : was.mode);
        assert_int_equal(into.lease_ns, parts & SCHEDULE_LEASE ? from.lease_ns : was.lease_ns);
        assert_int_equal(into.precision,
                         parts & SCHEDULE_PRECISION ? from.precision : was.precision);
        assert_int_equal(into.quantum_ns,
                         parts & SCHEDULE_QUANTUM ? from.quantum_ns : was.quantum_ns);
        assert_int_equal(into.window_limit_ns, parts & SCHEDULE_WINDOW_LIMIT ? from.window_limit_ns
                                                                             : was.window_limit_ns);
        assert_int_equal(into.local_memory,
                         parts & SCHEDULE_LOCAL_MEMORY ? from.local_memory : was.local_memory);
        assert_int_equal(into.departed_limit_ns, parts & SCHEDULE_DEPARTED_LIMIT
                                                     ? from.departed_limit_ns
                                                     : was.departed_limit_ns);
        assert_int_equal(into.watchdog_warning_ns, parts & SCHEDULE_WATCHDOG_WARNING
                                                       ? from.watchdog_warning_ns
                                                       : was.watchdog_warning_ns);
        assert_int_equal(into.watchdog_limit_ns, parts & SCHEDULE_WATCHDOG_LIMIT
                                                     ? from.watchdog_limit_ns
                                                     : was.watchdog_limit_ns);
        assert_int_equal(into.standby, parts & SCHEDULE_STANDBY ? from.standby : was.standby);
        assert_int_equal(into.partition_sizes[0],
                         parts & SCHEDULE_PARTITION_SIZES ? 3700 : was.partition_sizes[0]);
        assert_int_equal(schedule_differs(&into, &was), parts);
        assert_int_equal(schedule_differs(&into, &was) == 0, parts == 0);
        assert_int_equal(schedule_differs(&into, &from) == 0, parts == SCHEDULE_WHOLE);
    }
    assert_int_equal(schedule_part_of("leases", 6), 0);
    assert_int_equal(schedule_part_of("lea", 3), 0);
}

static void a_schedule_is_told_in_words_and_to_the_worker(void **state)
{
    (void)state;
    struct schedule schedule = {
        PROTO_MODE_FAIR, 250, 50000000,   UINT64_C(90000000000),   750000000, 6144,
        1500000000,      0,   5000000000, SCHEDULE_STANDBY_DRIVER, {1}};
    schedule.partition_sizes[PROTO_PARTITION_SIZES_MAX - 1] = 9999;
    char text[SCHEDULE_TEXT];
    assert_string_equal(
        schedule_format(&schedule, text, sizeof text),
        "mode fair, lease 50ms, precision 2.5%, quantum 90s, window_limit 750ms, local_memory 6K, "
        "departed_time_limit 1500ms, watchdog_warning 0, watchdog_limit 5s, standby driver");
    struct proto_worker_schedule message = schedule_message(&schedule);
    assert_int_equal(message.mode, 2);
    assert_int_equal(message.precision, 250);
    assert_int_equal(message.lease, 50000000);
    assert_int_equal(message.quantum, UINT64_C(90000000000));
    assert_int_equal(message.window_limit, 750000000);
    assert_int_equal(message.local_memory, 6144);
    assert_int_equal(message.departed_limit, 1500000000);
    assert_int_equal(message.partition_sizes[0], 1);
    assert_int_equal(message.partition_sizes[PROTO_PARTITION_SIZES_MAX - 1], 9999);
}

static void names_both_ends(const char *form, const char *from, const char *to, const char *mark)
{
    char range[128];
    snprintf(range, sizeof range, "from %s%s to %s%s", from, mark, to, mark);
    const char *found = strstr(form, range);
    const char after = found ? found[strlen(range)] : 0;
    if (after != ',' && after != ' ')
        fail_msg("\"%s\" lacks \"%s\"", form, range);
}

static void the_forms_name_the_ends_of_the_ranges(void **state)
{
    (void)state;
    char from[UNITS_TEXT], to[UNITS_TEXT];
    names_both_ends(SCHEDULE_FORM_LEASE,
                    units_format_duration(PROTO_WORKER_SCHEDULE_LEASE_MIN, from),
                    units_format_duration(PROTO_WORKER_SCHEDULE_LEASE_MAX, to), "");
    names_both_ends(SCHEDULE_FORM_PRECISION,
                    units_format_percentage(PROTO_WORKER_SCHEDULE_PRECISION_MIN, from),
                    units_format_percentage(PROTO_WORKER_SCHEDULE_PRECISION_MAX, to), "%");
    /* units_format_duration writes no hours. */
    assert_int_equal(PROTO_WORKER_SCHEDULE_QUANTUM_MAX, UINT64_C(3600000000000));
    names_both_ends(SCHEDULE_FORM_QUANTUM,
                    units_format_duration(PROTO_WORKER_SCHEDULE_QUANTUM_MIN, from), "1h", "");
    names_both_ends(SCHEDULE_FORM_WINDOW_LIMIT,
                    units_format_duration(PROTO_WORKER_SCHEDULE_WINDOW_LIMIT_MIN, from),
                    units_format_duration(PROTO_WORKER_SCHEDULE_WINDOW_LIMIT_MAX, to), "");
    names_both_ends(SCHEDULE_FORM_LOCAL_MEMORY,
                    units_format_size(PROTO_WORKER_SCHEDULE_LOCAL_MEMORY_MIN, from),
                    units_format_size(PROTO_WORKER_SCHEDULE_LOCAL_MEMORY_MAX, to), "");
}

static void a_worker_may_take_many_times_the_watchdogs_limit_to_start(void **state)
{
    (void)state;
    struct schedule schedule = {.watchdog_limit_ns = UINT64_C(10000000000)};
    assert_int_equal(schedule_start_limit_ns(&schedule), UINT64_C(120000000000));
    schedule.watchdog_limit_ns = UINT64_MAX / 2;
    assert_int_equal(schedule_start_limit_ns(&schedule), UINT64_MAX);
    schedule.watchdog_limit_ns = 0;
    assert_int_equal(schedule_start_limit_ns(&schedule), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_the_schedulers),
        cmocka_unit_test(modes_have_the_schedulers_numbers),
        cmocka_unit_test(nvidia_classes_are_leases),
        cmocka_unit_test(edges_are_the_schedulers),
        cmocka_unit_test(malformed_times_and_shares_are_refused),
        cmocka_unit_test(a_standby_is_one_of_three),
        cmocka_unit_test(zero_is_no_limit),
        cmocka_unit_test(only_the_parts_named_are_merged),
        cmocka_unit_test(a_schedule_is_told_in_words_and_to_the_worker),
        cmocka_unit_test(a_worker_may_take_many_times_the_watchdogs_limit_to_start),
        cmocka_unit_test(the_forms_name_the_ends_of_the_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
