/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* table and show: columns align by characters, and nothing in a cell steers a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "client/tools/brief.h"
#include "client/tools/show.h"
#include "client/tools/table.h"
#include "tests/support/printed.h"

static const struct table_look plain;
static void columns_align(void **state)
{
    (void)state;
    static const char *const headings[] = {"NAME", ">SIZE", "END"};
    struct table *table = table_new(headings, 3, 1);
    table_add(table, "a");
    table_add(table, "%d", 12345);
    table_add(table, "x");
    table_add(table, "caf\xc3\xa9 au lait");
    table_add(table, "7");
    table_add(table, "%s", "");
    assert_true(table_print(table, printed.out, plain));
    assert_string_equal(printed_text(), "NAME           SIZE  END\n"
                                        "a             12345  x\n"
                                        "caf\xc3\xa9 au lait      7  \n");
    table_free(table);
}

/* Of 20 characters: the keys in each block, GRANTED with what it belongs to. */
static void wide_rows_are_folded_to_the_terminal(void **state)
{
    (void)state;
    static const char *const headings[] = {">ID", "NAME", ">A", ">ASKED", "+>GRANTED", ">Z"};
    static const char *const cells[] = {"1", "one", "a", "-", "25 %", "z", "12", "dozen", "b"};
    struct table *table = table_new(headings, 6, 2);
    for (int i = 0; i < 9; i++)
        table_add(table, "%s", cells[i]);
    for (int i = 0; i < 3; i++)
        table_add(table, "%d", i);
    assert_true(table_print(table, printed.out, (struct table_look){.width = 20}));
    assert_string_equal(printed_text(), "ID  NAME   A\n"
                                        " 1  one    a\n"
                                        "12  dozen  b\n"
                                        "\n"
                                        "ID  NAME   ASKED  GRANTED\n"
                                        " 1  one        -     25 %\n"
                                        "12  dozen      0        1\n"
                                        "\n"
                                        "ID  NAME   Z\n"
                                        " 1  one    z\n"
                                        "12  dozen  2\n");
    table_free(table);
}

static void rows_that_fit_are_not_folded(void **state)
{
    (void)state;
    static const char *const headings[] = {"NAME", ">ONE", ">TWO"};
    struct table *table = table_new(headings, 3, 1);
    assert_true(table_print(table, printed.out, (struct table_look){.width = 14}));
    assert_string_equal(printed_text(), "NAME  ONE  TWO\n");
    assert_true(table_print(table, printed.out, (struct table_look){.width = 13}));
    assert_string_equal(printed_text(), "NAME  ONE  TWO\nNAME  ONE\n\nNAME  TWO\n");
    table_free(table);
}

static void headings_stand_out_on_request(void **state)
{
    (void)state;
    static const char *const headings[] = {"A"};
    struct table *table = table_new(headings, 1, 0);
    assert_true(table_print(table, printed.out, (struct table_look){.bold = true}));
    assert_string_equal(printed_text(), "\033[1mA\033[0m\n");
    table_free(table);
    table_free(NULL);
}

static void cells_are_cleaned_and_cut(void **state)
{
    (void)state;
    char dirty[] = "a\x1b[31mb\nc\x7f\xc2\x9b\xc2\xa0z";
    table_clean(dirty);
    assert_string_equal(dirty, "a?[31mb?c??\xc2\xa0z");
    char halved[] = "x\xc2";
    table_clean(halved);
    assert_string_equal(halved, "x\xc2");
    static const char *const headings[] = {"A"};
    static char wide[1000];
    memset(wide, 'w', sizeof wide - 1);
    struct table *table = table_new(headings, 1, 0);
    for (int i = 0; i < 1000; i++)
        table_add(table, "%s", wide);
    assert_true(table_print(table, printed.out, plain));
    printed_text();
    assert_int_equal(strlen(strrchr(strstr(printed_text(), "\nw"), 'w')), 2);
    assert_true(printed.bytes < 1000u * TABLE_CELL + TABLE_CELL);
    table_free(table);
}

static void show(void (*what)(FILE *, const json_t *, struct table_look), const char *json)
{
    json_t *answer = json_loads(json, 0, NULL);
    assert_non_null(answer);
    what(printed.out, answer, plain);
    json_decref(answer);
}

/* With the same answer as sample before and after. */
static struct sample sample_of(const json_t *answer)
{
    return (struct sample){(json_t *)(uintptr_t)answer, (json_t *)(uintptr_t)answer};
}

static void show_both_status(FILE *to, const json_t *answer, struct table_look look)
{
    const struct sample sample = sample_of(answer);
    show_status(to, answer, NULL, look);
    show_status(to, answer, &sample, look);
}

static void show_both_clients(FILE *to, const json_t *answer, struct table_look look)
{
    const struct sample sample = sample_of(answer);
    show_clients(to, answer, look);
    brief_clients(to, &sample, look);
}

static void answers_of_another_version_are_shown(void **state)
{
    (void)state;
    show(show_both_status,
         "{\"devices\":[{\"device\":0,\"future\":1}],\"kernel_isolation\":\"fenced\"}");
    assert_non_null(strstr(printed_text(), "isolation between clients' kernels: fenced"));
    show(show_both_status, "{}");
    show(show_both_clients, "{\"clients\":[{}, 7, null]}");
    show(show_both_clients, "{\"clients\":\"many\"}");
    assert_non_null(strstr(printed_text(), "no clients"));
}

static void impossible_numbers_are_shown_as_a_dash(void **state)
{
    (void)state;
    show(show_both_clients,
         "{\"clients\":[{\"client\":1,\"name\":\"\\u001b]0;x\\u0007\",\"memory\":{\"limit\":"
         "{\"asked_bytes\":-1}},\"threads\":{\"limit\":{\"asked_percent\":1e300}},\"waits\":[1e9,-"
         "1],"
         "\"throttled_seconds\":{\"lease\":-1e300},\"gpu_time_seconds\":\"much\","
         "\"launches\":1.5}]}");
    show(show_both_clients, "{\"clients\":[{\"client\":1,\"name\":\"\\u001b]0;x\\u0007\"}]}");
    assert_null(strchr(printed_text(), '\x1b'));
    assert_null(strchr(printed_text(), '\x07'));
    assert_non_null(strstr(printed_text(), "?]0;x?"));
    show(show_both_status, "{\"uptime_seconds\":-1e300,\"driver\":{\"path\":\"/a\\u009bb\"}}");
    assert_null(strstr(printed_text(), "\xc2\x9b"));
}

static void amounts_are_for_people(void **state)
{
    (void)state;
    show(show_both_clients,
         "{\"clients\":[{\"client\":3,\"name\":\"job\",\"memory\":{\"request\":{\"granted_bytes\":"
         "536870912},\"limit\":{\"asked_bytes\":null,\"granted_bytes\":1610612736}},"
         "\"threads\":{\"request\":{\"asked_percent\":30,\"granted_percent\":0},"
         "\"limit\":{\"asked_percent\":null,\"granted_percent\":12.5},\"multiprocessors\":16,"
         "\"partitioned\":true},\"time\":{\"request\":{\"granted_percent\":25},\"limit\":"
         "{\"granted_percent\":50}},\"gpu_time_seconds\":2.5,\"copied_bytes\":2048}]}");
    assert_non_null(strstr(printed_text(), " 30 % to any "));
    assert_non_null(strstr(printed_text(), " 12.5 % "));
    assert_non_null(strstr(printed_text(), " 25 to 50 % "));
    assert_non_null(strstr(printed_text(), " 16 "));
    assert_non_null(strstr(printed_text(), " 512 MiB to 1.5 GiB "));
    assert_non_null(strstr(printed_text(), "2.500 s"));
    assert_non_null(strstr(printed_text(), " 2 KiB "));
    assert_null(strstr(printed_text(), "duty cycle"));
    show(show_limits, "{\"clients\":[{\"client\":3,\"threads\":{\"multiprocessors\":16,"
                      "\"partitioned\":false}}]}");
    assert_non_null(strstr(printed_text(), " 16, duty cycle "));
}

static void a_standby_is_shown_with_its_cost(void **state)
{
    (void)state;
    show(show_both_status,
         "{\"devices\":[{\"device\":3,\"standby\":{\"kind\":\"context\",\"state\":\"ready\","
         "\"pid\":77,\"device_memory_bytes\":1610612736,\"resident_bytes\":2048,\"takeovers\":0,"
         "\"failures\":0,\"trouble\":\"long ago\"}}]}");
    assert_non_null(strstr(printed_text(),
                           "device 3: standby: context, ready, process 77, 1.5 GiB of device "
                           "memory, 2 KiB of host memory\n"));
    assert_null(strstr(printed_text(), "long ago"));
    show(show_both_status,
         "{\"devices\":[{\"device\":3,\"standby\":{\"kind\":\"driver\",\"state\":\"waiting\","
         "\"pid\":null,\"device_memory_bytes\":null,\"resident_bytes\":null,\"takeovers\":2,"
         "\"failures\":1,\"trouble\":\"it was \\u001b killed\"}}]}");
    assert_non_null(strstr(printed_text(), "device 3: standby: driver, waiting\n"));
    assert_non_null(
        strstr(printed_text(), "device 3: the latest standby failed: it was ? killed\n"));
    show(show_both_status, "{\"devices\":[{\"device\":4,\"standby\":{\"kind\":\"none\"}}]}");
    assert_null(strstr(printed_text(), "device 4"));
}

static void waiting_is_summed_up(void **state)
{
    (void)state;
    /* 98 of 100 below 2 us, one below 64 us, one of 2^20 us and more. */
    show(show_both_clients,
         "{\"clients\":[{\"client\":1,\"waits\":[98,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,"
         "0,0,1,0,0,0,0,0,0,0,0,0,0,0],\"throttled_seconds\":{\"lease\":0.25,"
         "\"duty\":0,\"priority\":1.5,\"threads\":0}}]}");
    assert_non_null(strstr(printed_text(), " <2 us  "));
    assert_non_null(strstr(printed_text(), " <64 us  "));
    assert_non_null(strstr(printed_text(), " 1.750 s, priority "));
}

static void a_client_that_never_waited_has_a_dash(void **state)
{
    (void)state;
    show(show_both_clients, "{\"clients\":[{\"client\":1,\"waits\":[0,0],\"throttled_seconds\":"
                            "{\"lease\":0}}]}");
    assert_null(strchr(printed_text(), '<'));
    assert_non_null(strstr(printed_text(), " 0.000 s "));
}

static void a_schedule_is_shown_as_it_is_written(void **state)
{
    (void)state;
    show(show_gpus, "{\"gpus\":[{\"gpu\":0,\"schedule\":{\"mode\":\"fair\",\"lease_seconds\":0.05,"
                    "\"precision_percent\":2.5,\"quantum_seconds\":90,\"window_limit_seconds\":0.5,"
                    "\"local_memory_bytes\":2048,\"departed_time_limit_seconds\":0,"
                    "\"watchdog_warning_seconds\":0.5,\"watchdog_limit_seconds\":10,"
                    "\"standby\":\"driver\"},"
                    "\"threads_enforced_by\":\"duty_cycle\"}]}");
    assert_string_equal(printed_text(),
                        "GPU  MODE  LEASE  PRECISION  QUANTUM  WINDOW  LOCAL  THREADS BY  "
                        "DEPARTED  WARNING  WATCHDOG  STANDBY\n"
                        "  0  fair   50ms      2.5 %      90s   500ms  2 KiB  duty cycle   "
                        "      -    500ms       10s  driver\n");
    show(show_gpus,
         "{\"gpus\":[{\"schedule\":{\"lease_seconds\":-1,\"quantum_seconds\":1e300}},7]}");
    show(show_gpus, "{}");
}

static void escape_sequences_need_a_willing_terminal(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    struct table_look look = show_look(file, NULL, "xterm");
    assert_false(look.bold);
    assert_int_equal(look.width, 0);
    fclose(file);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, printed_open, printed_close)
    const struct CMUnitTest tests[] = {
        CASE(columns_align),
        CASE(wide_rows_are_folded_to_the_terminal),
        CASE(rows_that_fit_are_not_folded),
        CASE(headings_stand_out_on_request),
        CASE(cells_are_cleaned_and_cut),
        CASE(answers_of_another_version_are_shown),
        CASE(impossible_numbers_are_shown_as_a_dash),
        CASE(amounts_are_for_people),
        CASE(a_standby_is_shown_with_its_cost),
        CASE(waiting_is_summed_up),
        CASE(a_client_that_never_waited_has_a_dash),
        CASE(a_schedule_is_shown_as_it_is_written),
        CASE(escape_sequences_need_a_willing_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
