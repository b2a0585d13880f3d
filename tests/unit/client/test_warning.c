/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* warning: what a program is told through options.warn when it connects. How `gpushare info`
 * prints it is tested by test_info.py. */
#include "tests/unit/client/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct heard {
    unsigned count;
    char text[8][600];
};

static void hear(void *context, const char *text)
{
    struct heard *heard = context;
    assert_true(heard->count < 8);
    assert_null(strchr(text, '\n'));
    snprintf(heard->text[heard->count++], sizeof heard->text[0], "%s", text);
}

static int clean(void **state)
{
    (void)state;
    static const char *const names[] = {"GPUSHARE_FRACTION",        "GPUSHARE_TIME_REQUEST",
                                        "GPUSHARE_TIME_LIMIT",      "GPUSHARE_MEMROY_LIMIT",
                                        "GPUSHARE_THREADS_REQUEST", "GPUSHARE_WARNINGS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    return 0;
}

/* The warnings that one connection with these options, to such a server, gets. */
static struct heard connect_and_hear(const struct fake_options *fake,
                                     struct gpushare_options options)
{
    struct heard heard = {0};
    struct fake_server *server = fake_start(fake);
    gpushare_connection *gpu;
    options.size = sizeof options;
    options.socket = fake_socket(server);
    options.warn = hear;
    options.warn_context = &heard;
    OK(gpushare_connect(&options, &gpu));
    gpushare_close(&gpu);
    fake_stop(server);
    return heard;
}

static struct heard in_mode(uint32_t mode)
{
    struct fake_options fake = {.mode = mode};
    return connect_and_hear(&fake, (struct gpushare_options){0});
}

static void says(const struct heard *heard, const char *first, const char *second)
{
    if (heard->count != 1 || !strstr(heard->text[0], first) || !strstr(heard->text[0], second))
        fail_msg("%u told, \"%s\" and not \"%s\" and \"%s\"", heard->count, heard->text[0], first,
                 second);
}

static void without_wishes_there_is_no_warning(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode < 4; mode++)
        assert_int_equal(in_mode(mode).count, 0);
}

static void a_fraction_is_told_that_time_is_not_enforced(void **state)
{
    (void)state;
    setenv("GPUSHARE_FRACTION", "0.5", 1);
    struct heard heard = in_mode(GPUSHARE_MODE_CONCURRENT);
    says(&heard, "GPUSHARE_FRACTION asks for a share of time, which is not enforced",
         "shared in mode concurrent");
    says(&heard, "set gpu 0 mode=fair", "limit of device memory is enforced");
    heard = in_mode(GPUSHARE_MODE_TURNS);
    says(&heard, "GPUSHARE_FRACTION", "mode turns");
    assert_int_equal(in_mode(GPUSHARE_MODE_STRICT).count, 0);
    assert_int_equal(in_mode(GPUSHARE_MODE_FAIR).count, 0);
}

static void each_way_to_ask_for_time_is_named(void **state)
{
    (void)state;
    setenv("GPUSHARE_TIME_LIMIT", "50%", 1);
    struct heard heard = in_mode(GPUSHARE_MODE_CONCURRENT);
    says(&heard, "GPUSHARE_TIME_LIMIT asks", "mode concurrent");
    assert_null(strstr(heard.text[0], "fraction"));
    setenv("GPUSHARE_TIME_REQUEST", "25%", 1);
    heard = in_mode(GPUSHARE_MODE_CONCURRENT);
    says(&heard, "GPUSHARE_TIME_REQUEST asks", "mode concurrent");
    clean(NULL);
    setenv("GPUSHARE_TIME_LIMIT", "100%", 1); /* none */
    assert_int_equal(in_mode(GPUSHARE_MODE_CONCURRENT).count, 0);
    clean(NULL);
    heard = connect_and_hear(NULL, (struct gpushare_options){.time_request = 10});
    says(&heard, "the program asks for a share of time", "GPU 0");
}

static void the_device_is_named_as_the_administrator_does(void **state)
{
    (void)state;
    struct fake_options two = {.devices = 2};
    setenv("GPUSHARE_VISIBLE_DEVICES", "1", 1);
    struct heard heard = connect_and_hear(&two, (struct gpushare_options){.time_limit = 10});
    unsetenv("GPUSHARE_VISIBLE_DEVICES");
    says(&heard, "GPU 1 is shared", "set gpu 1 mode=fair");
}

static void a_request_of_threads_without_partitions_is_told(void **state)
{
    (void)state;
    struct fake_options whole = {.no_partitions = true};
    setenv("GPUSHARE_THREADS_REQUEST", "25%", 1);
    struct heard heard = connect_and_hear(&whole, (struct gpushare_options){0});
    says(&heard, "GPUSHARE_THREADS_REQUEST asks for multiprocessors", "no green contexts");
    assert_int_equal(in_mode(GPUSHARE_MODE_CONCURRENT).count, 0);
}

static void a_slip_in_a_name_is_told_each_time_even_without_a_server(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = "/nonexistent/gpushare.sock",
                                       .warn = hear,
                                       .warn_context = &heard};
    gpushare_connection *gpu;
    setenv("GPUSHARE_MEMROY_LIMIT", "1G", 1);
    for (int i = 0; i < 2; i++) {
        heard.count = 0;
        assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_CONNECTION_FAILED);
        says(&heard, "GPUSHARE_MEMROY_LIMIT is set", "perhaps be GPUSHARE_MEMORY_LIMIT");
        assert_non_null(strstr(gpushare_error_text(), "/nonexistent/gpushare.sock"));
    }
}

static void the_variable_silences_the_tool_and_no_program(void **state)
{
    (void)state;
    setenv("GPUSHARE_TIME_LIMIT", "50%", 1);
    setenv("GPUSHARE_WARNINGS", "0", 1);
    assert_int_equal(in_mode(GPUSHARE_MODE_CONCURRENT).count, 1);
    struct gpushare_options options = {.size = sizeof options};
    gpushare_connection *gpu;
    setenv("GPUSHARE_WARNINGS", "no", 1);
    assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(gpushare_error_text(), "GPUSHARE_WARNINGS=no: must be 1"));
}

static void the_library_prints_nothing(void **state)
{
    (void)state;
    struct fake_server *server = fake_start(NULL);
    struct gpushare_options options = {.size = sizeof options, .socket = fake_socket(server)};
    char text[4096] = "";
    int ends[2], output = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    setenv("GPUSHARE_MEMROY_LIMIT", "1G", 1);
    setenv("GPUSHARE_FRACTION", "0.5", 1);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    gpushare_connection *gpu = NULL;
    gpushare_error result = gpushare_connect(&options, &gpu);
    gpushare_close(&gpu);
    dup2(output, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    close(output);
    close(error);
    close(ends[1]);
    fake_stop(server);
    assert_int_equal(result, GPUSHARE_SUCCESS);
    assert_int_equal(read(ends[0], text, sizeof text - 1), 0);
    assert_string_equal(text, "");
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_wishes_there_is_no_warning, clean),
        cmocka_unit_test_setup(a_fraction_is_told_that_time_is_not_enforced, clean),
        cmocka_unit_test_setup(each_way_to_ask_for_time_is_named, clean),
        cmocka_unit_test_setup(the_device_is_named_as_the_administrator_does, clean),
        cmocka_unit_test_setup(a_request_of_threads_without_partitions_is_told, clean),
        cmocka_unit_test_setup(a_slip_in_a_name_is_told_each_time_even_without_a_server, clean),
        cmocka_unit_test_setup(the_library_prints_nothing, clean),
        cmocka_unit_test_setup(the_variable_silences_the_tool_and_no_program, clean),
    };
    return cmocka_run_group_tests(tests, NULL, clean);
}
