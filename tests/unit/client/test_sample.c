/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* sample: shares of time from two answers of the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/tools/sample.h"

/* 1 worked for half of the time, 2 all the time, 3 came in between; 4 has a kernel of 3 s that has
 * ended. 5 has a worker that does not answer; it is on another device, as 6 is. */
static const char before[] =
    "{'clients': ["
    "{'client': 1, 'device': 0, 'connected_seconds': 10, 'gpu_time_seconds': 4.0},"
    "{'client': 2, 'device': 0, 'connected_seconds': 1, 'gpu_time_seconds': 0.25},"
    "{'client': 4, 'device': 2, 'connected_seconds': 7, 'gpu_time_seconds': 1},"
    "{'client': 5, 'device': 1, 'connected_seconds': 7, 'gpu_time_seconds': null},"
    "{'client': 6, 'device': 1, 'connected_seconds': 7, 'gpu_time_seconds': 1}]}";
static const char after[] =
    "{'clients': ["
    "{'client': 1, 'device': 0, 'multiprocessors_now': 32, 'connected_seconds': 10.5,"
    " 'gpu_time_seconds': 4.25},"
    "{'client': 2, 'device': 0, 'multiprocessors_now': 8, 'connected_seconds': 1.5,"
    " 'gpu_time_seconds': 0.75},"
    "{'client': 3, 'device': 3, 'multiprocessors_now': 8, 'connected_seconds': 0.1,"
    " 'gpu_time_seconds': 0.1},"
    "{'client': 4, 'device': 2, 'multiprocessors_now': 64, 'connected_seconds': 7.5,"
    " 'gpu_time_seconds': 4},"
    "{'client': 5, 'device': 1, 'multiprocessors_now': null, 'connected_seconds': 7.5,"
    " 'gpu_time_seconds': null},"
    "{'client': 6, 'device': 1, 'multiprocessors_now': 8, 'connected_seconds': 7.5,"
    " 'gpu_time_seconds': 1}]}";

static json_t *parse(const char *text)
{
    char line[2048];
    size_t i = 0;
    for (; i < sizeof line - 1 && text[i]; i++)
        line[i] = text[i] == '\'' ? '"' : text[i];
    line[i] = '\0';
    json_t *json = json_loads(line, 0, NULL);
    assert_non_null(json);
    return json;
}

static void shares_of_clients(void **state)
{
    (void)state;
    static const double shares[] = {0.5, 1, -1, 1, -1, 0};
    struct sample sample = {parse(before), parse(after)};
    const json_t *clients = json_object_get(sample.after, "clients");
    assert_int_equal(json_array_size(clients), 6);
    for (size_t i = 0; i < 6; i++)
        assert_float_equal(sample_client_share(&sample, json_array_get(clients, i)), shares[i],
                           1e-9);
    sample_free(&sample);
}

/* A list in another order is searched all the same. */
static void clients_are_found_in_any_order(void **state)
{
    (void)state;
    struct sample sample = {parse(before), parse(after)};
    json_t *rows = json_object_get(sample.before, "clients"), *reversed = json_array();
    for (size_t i = json_array_size(rows); i-- > 0;)
        json_array_append(reversed, json_array_get(rows, i));
    json_object_set_new(sample.before, "clients", reversed);
    const json_t *clients = json_object_get(sample.after, "clients");
    assert_float_equal(sample_client_share(&sample, json_array_get(clients, 0)), 0.5, 1e-9);
    assert_float_equal(sample_client_share(&sample, json_array_get(clients, 5)), 0, 1e-9);
    assert_true(sample_client_share(&sample, json_array_get(clients, 2)) < 0);
    sample_free(&sample);
}

static void shares_of_devices(void **state)
{
    (void)state;
    /* (0.5 * 32 + 1 * 8) / 64; a client that is not known leaves its device unknown; idle. */
    static const double shares[] = {0.375, -1, 1, -1, 0};
    struct sample sample = {parse(before), parse(after)};
    for (int i = 0; i < 5; i++) {
        json_t *device = json_pack("{s:i, s:i}", "device", i, "multiprocessors", 64);
        assert_float_equal(sample_device_share(&sample, device), shares[i], 1e-9);
        json_decref(device);
    }
    sample_free(&sample);
}

/* Clients 1 and 2 are of user 7. */
static void use_of_users(void **state)
{
    (void)state;
    static const struct {
        int user, device;
        double time, multiprocessors;
    } rows[] = {{7, 0, 1, 24}, {8, 2, 1, 64}, {8, 1, -1, -1}, {9, 0, 0, 0}};
    struct sample sample = {parse(before), parse(after)};
    json_t *clients = json_object_get(sample.after, "clients"), *row;
    for (size_t i = 0; (row = json_array_get(clients, i)); i++)
        json_object_set_new(row, "uid", json_integer(i < 2 ? 7 : 8));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *user = json_integer(rows[i].user), *device = json_integer(rows[i].device);
        struct sample_use use = sample_user_use(&sample, user, device);
        assert_float_equal(use.time, rows[i].time, 1e-9);
        assert_float_equal(use.multiprocessors, rows[i].multiprocessors, 1e-9);
        json_decref(user);
        json_decref(device);
    }
    sample_free(&sample);
}

static void nothing_is_known_without_answers(void **state)
{
    (void)state;
    struct sample sample = {NULL, NULL};
    json_t *device = json_pack("{s:i, s:i}", "device", 0, "multiprocessors", 64);
    assert_true(sample_device_share(&sample, device) < 0);
    assert_true(sample_client_share(&sample, NULL) < 0);
    json_decref(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_clients),
        cmocka_unit_test(clients_are_found_in_any_order),
        cmocka_unit_test(shares_of_devices),
        cmocka_unit_test(use_of_users),
        cmocka_unit_test(nothing_is_known_without_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
