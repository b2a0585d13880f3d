/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Metrics as text, in both formats; no label can end its line or its quotes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "client/tools/metrics/exposition.h"
#include "client/tools/metrics/metrics.h"
#include "tests/support/printed.h"

static const struct exposition_family counter = {"x_bytes", EXPOSITION_COUNTER, "bytes", "Some."};

static void a_counter_in_the_older_format(void **state)
{
    (void)state;
    struct exposition text_form = {.out = printed.out, .form = EXPOSITION_TEXT};
    struct exposition_labels labels = {.count = 0};
    exposition_label(&labels, "gpu", "0");
    exposition_begin(&text_form, &counter);
    exposition_sample(&text_form, &labels, 3);
    exposition_end(&text_form);
    assert_string_equal(printed_text(), "# HELP x_bytes_total Some.\n"
                                        "# TYPE x_bytes_total counter\n"
                                        "x_bytes_total{gpu=\"0\"} 3\n");
}

static void a_counter_in_openmetrics(void **state)
{
    (void)state;
    struct exposition open = {.out = printed.out, .form = EXPOSITION_OPENMETRICS};
    exposition_begin(&open, &counter);
    exposition_sample(&open, NULL, 0.1);
    exposition_end(&open);
    assert_string_equal(printed_text(), "# HELP x_bytes Some.\n"
                                        "# TYPE x_bytes counter\n"
                                        "# UNIT x_bytes bytes\n"
                                        "x_bytes_total 0.1\n"
                                        "# EOF\n");
}

static void hostile_labels_stay_within_their_quotes(void **state)
{
    (void)state;
    static const struct exposition_family gauge = {"x", EXPOSITION_GAUGE, NULL, "Some."};
    struct exposition text_form = {.out = printed.out, .form = EXPOSITION_TEXT, .family = &gauge};
    struct exposition_labels labels = {.count = 0};
    exposition_label(&labels, "name", "a\"} 1\n# TYPE y counter\\");
    exposition_label(&labels, "other", "\xc3\xa9");
    exposition_sample(&text_form, &labels, 1);
    assert_string_equal(printed_text(),
                        "x{name=\"a\\\"} 1\\n# TYPE y counter\\\\\",other=\"\xc3\xa9\"} 1\n");
}

static void histograms_are_cumulative(void **state)
{
    (void)state;
    static const struct exposition_family wait = {"w_seconds", EXPOSITION_HISTOGRAM, "seconds",
                                                  "Some."};
    struct exposition text_form = {.out = printed.out, .form = EXPOSITION_TEXT, .family = &wait};
    uint64_t counts[EXPOSITION_BUCKETS] = {[0] = 1, [1] = 2, [2] = 4, [24] = 8, [31] = 16};
    exposition_histogram(&text_form, NULL, counts, -1);
    assert_non_null(strstr(printed_text(), "w_seconds_bucket{le=\"2e-06\"} 1\n"
                                           "w_seconds_bucket{le=\"8e-06\"} 7\n"
                                           "w_seconds_bucket{le=\"3.2e-05\"} 7\n"));
    assert_non_null(strstr(printed_text(), "w_seconds_bucket{le=\"33.554432\"} 15\n"
                                           "w_seconds_bucket{le=\"+Inf\"} 31\n"));
    /* 1 us, and 1.5 times 2, 4, 2^24 and 2^31 us. */
    assert_non_null(strstr(printed_text(), "w_seconds_sum 51740.934175\n"));
    assert_non_null(strstr(printed_text(), "w_seconds_count 31\n"));
}

static void a_server_that_does_not_answer_is_down_and_nothing_else(void **state)
{
    (void)state;
    metrics_write(printed.out, EXPOSITION_OPENMETRICS, NULL, NULL);
    assert_non_null(strstr(printed_text(), "\ngpushare_up 0\n# EOF\n"));
    assert_null(strstr(printed_text(), "gpushare_clients"));
}

/* An answer that is not as the schema has it comes of another program behind the socket. */
static void an_answer_of_another_form_is_survived(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "{}",
        "{\"devices\": 7, \"users\": {}}",
        "{\"devices\": [7, {}], \"faults\": [{}]}",
        "{\"users\": [{\"device\": -1, \"uid\": \"x\", \"waits\": [\"a\"]}]}",
        "{\"client_rows\": [{}, null]}",
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        json_t *answer = json_loads(answers[i], 0, NULL);
        assert_non_null(answer);
        metrics_write(printed.out, EXPOSITION_TEXT, answer, NULL);
        json_decref(answer);
    }
    assert_non_null(strstr(printed_text(), "gpushare_up 1\n"));
}

static void labels_of_clients_join_with_those_of_gpus(void **state)
{
    (void)state;
    json_t *answer =
        json_pack("{s:[{s:i, s:s, s:s}], s:[{s:i, s:i, s:s, s:i, s:f, s:{s:f}}], s:i}", "devices",
                  "device", 0, "uuid", "GPU-1", "state", "ready", "client_rows", "client", 7,
                  "device", 0, "name", "a\"b", "uid", 1000, "threads_limit_percent", 12.5,
                  "throttled_seconds", "duty", 0.25, "clients_left_out", 3);
    assert_non_null(answer);
    metrics_write(printed.out, EXPOSITION_TEXT, answer, NULL);
    json_decref(answer);
    assert_non_null(strstr(printed_text(), "gpushare_gpu_ready{gpu=\"0\",UUID=\"GPU-1\"} 1\n"));
    assert_non_null(strstr(printed_text(),
                           "gpushare_client_threads_limit_ratio{gpu=\"0\",UUID=\"GPU-1\","
                           "uid=\"1000\",client=\"7\",name=\"a\\\"b\"} 0.125\n"));
    assert_non_null(strstr(printed_text(),
                           "gpushare_client_throttled_seconds_total{gpu=\"0\",UUID=\"GPU-1\","
                           "uid=\"1000\",client=\"7\",name=\"a\\\"b\",reason=\"duty\"} 0.25\n"));
    assert_non_null(strstr(printed_text(), "gpushare_clients_left_out 3\n"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, printed_open, printed_close)
    const struct CMUnitTest tests[] = {
        T(a_counter_in_the_older_format),
        T(a_counter_in_openmetrics),
        T(hostile_labels_stay_within_their_quotes),
        T(histograms_are_cumulative),
        T(a_server_that_does_not_answer_is_down_and_nothing_else),
        T(an_answer_of_another_form_is_survived),
        T(labels_of_clients_join_with_those_of_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
