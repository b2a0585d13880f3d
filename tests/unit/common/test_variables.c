/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* variables: what is told of an environment, and that every limit which is read is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/limits/limits.h"
#include "common/limits/variables.h"

struct told {
    unsigned count;
    char text[20][ERROR_TEXT_BYTES];
};

static void note(void *context, const struct error *why)
{
    struct told *told = context;
    assert_true(told->count < 20);
    assert_non_null(why->format);
    strcpy(told->text[told->count++], why->text);
}

static struct told look(const char *variable)
{
    char copy[300];
    snprintf(copy, sizeof copy, "%s", variable);
    char *environment[] = {copy, NULL};
    struct told told = {0};
    variables_check(environment, note, &told);
    return told;
}

static void quiet(const char *variable)
{
    struct told told = look(variable);
    if (told.count)
        fail_msg("%s: %s", variable, told.text[0]);
}

static void meant(const char *variable, const char *text)
{
    struct told told = look(variable);
    if (told.count != 1 || !strstr(told.text[0], text) ||
        strncmp(told.text[0], variable, strcspn(variable, "=")) != 0)
        fail_msg("%s: %u told, \"%s\"", variable, told.count, told.text[0]);
}

static void known_variables_are_not_reported(void **state)
{
    (void)state;
    quiet("GPUSHARE_MEMORY_LIMIT=4G");
    quiet("GPUSHARE_WARNINGS=1");
    quiet("GPUSHARE_MODE=");
    quiet("GPUSHARE_ACTIVE_THREAD_PERCENTAGE=25");
}

static void variables_of_other_programs_are_not_reported(void **state)
{
    (void)state;
    quiet("PATH=/bin");
    quiet("GPUSHARE=1");
    quiet("gpushare_MEMORY_LIMIT=1G");
    quiet("MY_GPUSHARE_MEMROY_LIMIT=1G");
    quiet("SOFTGPU_SMS=GPUSHARE_X");
}

static void misspelt_names_are_reported_with_the_nearest_name(void **state)
{
    (void)state;
    meant("GPUSHARE_MEMROY_LIMIT=4G", "perhaps be GPUSHARE_MEMORY_LIMIT");
    meant("GPUSHARE_MEM_LIMIT=4G", "perhaps be GPUSHARE_MEMORY_LIMIT");
    meant("GPUSHARE_THREAD_LIMIT=25%", "perhaps be GPUSHARE_THREADS_LIMIT");
    meant("GPUSHARE_FRACTIONS=0.5", "perhaps be GPUSHARE_FRACTION");
    meant("GPUSHARE_ACTIVE_THREADS_PERCENTAGE=5", "perhaps be GPUSHARE_ACTIVE_THREAD_PERCENTAGE");
}

static void a_beginning_of_a_known_name_is_told(void **state)
{
    (void)state;
    meant("GPUSHARE_SOCKE=/x", "perhaps be GPUSHARE_SOCKET");
    meant("GPUSHARE_=x", "is it misspelt");
}

static void names_far_off_are_told_without_a_guess(void **state)
{
    (void)state;
    meant("GPUSHARE_COLOUR=red", "is it misspelt, or of another version?");
    meant("GPUSHARE_TIME=1", "is it misspelt, or of another version?");
}

static void links_of_a_service_are_passed_over(void **state)
{
    (void)state;
    quiet("GPUSHARE_SERVICE_HOST=10.0.0.1");
    quiet("GPUSHARE_SERVICE_PORT=9400");
    quiet("GPUSHARE_SERVICE_PORT_METRICS=9400");
    quiet("GPUSHARE_PORT=tcp://10.0.0.1:9400");
    quiet("GPUSHARE_PORT_9400_TCP_ADDR=10.0.0.1");
    quiet("GPUSHARE_SERVER_SERVICE_HOST=10.0.0.1");
    quiet("GPUSHARE_SERVER_SERVICE_PORT=80");
    quiet("GPUSHARE_SERVER_SERVICE_PORT_HTTP=80");
    quiet("GPUSHARE_WEB_UI_PORT=tcp://10.0.0.1:80");
    quiet("GPUSHARE_WEB_UI_PORT_80_TCP=tcp://10.0.0.1:80");
    quiet("GPUSHARE_WEB_UI_PORT_80_TCP_PROTO=tcp");
    quiet("GPUSHARE_WEB_UI_PORT_80_TCP_PORT=80");
    quiet("GPUSHARE_WEB_UI_PORT_80_TCP_ADDR=10.0.0.1");
    meant("GPUSHARE_PORT_NAME=x", "misspelt");
    meant("GPUSHARE_TRANSPORT=x", "misspelt");
    meant("GPUSHARE_PORTS=1", "misspelt");
    meant("GPUSHARE_SERVICE_HOSTS=1", "misspelt");
}

static void long_and_strange_names_stay_a_sentence(void **state)
{
    (void)state;
    char name[300] = "GPUSHARE_";
    memset(name + 9, 'X', 250);
    name[259] = 0;
    struct told told = look(name);
    assert_int_equal(told.count, 1);
    assert_null(memchr(told.text[0], '=', strlen(told.text[0])));
    told = look("GPUSHARE_\033[31m\nX=secret");
    assert_int_equal(told.count, 1);
    assert_non_null(strstr(told.text[0], "GPUSHARE_?[31m?X is set"));
    assert_null(strstr(told.text[0], "secret"));
}

static void not_more_than_sixteen_are_told_in_order(void **state)
{
    (void)state;
    char text[40][32];
    char *environment[41];
    for (int i = 0; i < 40; i++) {
        snprintf(text[i], sizeof text[i], "GPUSHARE_NONE%d=1", i);
        environment[i] = text[i];
    }
    environment[40] = NULL;
    struct told told = {0};
    variables_check(environment, note, &told);
    assert_int_equal(told.count, 16);
    assert_non_null(strstr(told.text[0], "GPUSHARE_NONE0 "));
    assert_non_null(strstr(told.text[15], "GPUSHARE_NONE15 "));
    told.count = 0;
    variables_check(NULL, note, &told);
    assert_int_equal(told.count, 0);
}

struct names {
    unsigned count;
    const char *name[64];
};

/* In place of the environment: has nothing, and every name of ours must be known. */
static const char *note_read(const char *name, void *context)
{
    unsigned *count = context;
    if (!strncmp(name, "GPUSHARE_", strlen("GPUSHARE_"))) {
        quiet(name);
        ++*count;
    }
    return NULL;
}

static void every_limit_that_is_read_is_known(void **state)
{
    (void)state;
    unsigned count = 0;
    struct limits_wish wish;
    struct error why;
    assert_int_equal(limits_wish_read(&wish, note_read, &count, &why), 0);
    assert_true(count > 10);
}

static void note_known(const char *name, void *context)
{
    struct names *names = context;
    assert_true(names->count < 64);
    names->name[names->count++] = name;
}

static void the_known_names_are_told_once_each_and_in_order(void **state)
{
    (void)state;
    struct names names = {0};
    variables_known(note_known, &names);
    assert_true(names.count > 20);
    for (unsigned i = 0; i < names.count; i++) {
        quiet(names.name[i]);
        assert_true(i == 0 || strcmp(names.name[i - 1], names.name[i]) < 0);
    }
}

static void those_of_clients_are_told_to_a_server(void **state)
{
    (void)state;
    char *environment[] = {"GPUSHARE_PROFILE=batch", "GPUSHARE_MEMORY_LIMIT=1G",
                           "GPUSHARE_PROFILES=x", "GPUSHARE_CLIENT_NAME=", NULL};
    struct told told = {0};
    variables_check_clients(NULL, note, &told);
    assert_int_equal(told.count, 0);
    variables_check_clients(environment, note, &told);
    assert_int_equal(told.count, 2);
    assert_string_equal(told.text[0], "GPUSHARE_CLIENT_NAME is set, and has no effect on "
                                      "gpushared: each client reads it in its own environment");
    assert_memory_equal(told.text[1], "GPUSHARE_PROFILE is set", strlen("GPUSHARE_PROFILE is set"));
    /* They are names that gpushare knows, and the server's own are none of them. */
    assert_true(variables_is_clients("GPUSHARE_WARNINGS"));
    assert_false(variables_is_clients("GPUSHARE_VISIBLE_DEVICES"));
    assert_false(variables_is_clients("GPUSHARE_MODE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_variables_are_not_reported),
        cmocka_unit_test(variables_of_other_programs_are_not_reported),
        cmocka_unit_test(misspelt_names_are_reported_with_the_nearest_name),
        cmocka_unit_test(a_beginning_of_a_known_name_is_told),
        cmocka_unit_test(names_far_off_are_told_without_a_guess),
        cmocka_unit_test(links_of_a_service_are_passed_over),
        cmocka_unit_test(long_and_strange_names_stay_a_sentence),
        cmocka_unit_test(not_more_than_sixteen_are_told_in_order),
        cmocka_unit_test(every_limit_that_is_read_is_known),
        cmocka_unit_test(the_known_names_are_told_once_each_and_in_order),
        cmocka_unit_test(those_of_clients_are_told_to_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
