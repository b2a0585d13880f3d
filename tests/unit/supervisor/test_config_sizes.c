/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The sizes of partitions that a configuration names, for each GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server/supervisor/config/config.h"

static const uint8_t uuids[2][LIMITS_UUID_BYTES] = {{0x2f, 0x9d, 1}, {0x2f, 0x9e, 2}};

static struct config *read_config(const char *text)
{
    struct config *config;
    struct error why = {0};
    const struct schedule unsaid = schedule_default();
    if (config_parse(&config, "file", text, strlen(text), &why) ||
        config_resolve(config, &unsaid, uuids, 2, &why))
        fail_msg("refused: %s", why.text);
    return config;
}

static void sizes_are_those_that_limits_of_threads_name(void **state)
{
    (void)state;
    static const char text[] =
        "clients: {threads: {limit: 90%}}\n"
        "profiles: {small: {threads: {request: 12.5%}}, all: {threads: {limit: 100%}}}\n"
        "rules:\n  - {match: {uid: 7}, threads: {limit: 37%}, memory: {limit: 1G}}\n"
        "  - {threads: {request: 20%, limit: 37%}}\n  - {match: {name: a}, time: {limit: 30%}}\n"
        "gpus:\n  - {gpu: 1, threads: {limit: 25%}}\n";
    static const uint32_t first[PROTO_PARTITION_SIZES_MAX] = {9000, 3700, 2000, 1250};
    static const uint32_t second[PROTO_PARTITION_SIZES_MAX] = {2500, 2000, 1250};
    struct config *config = read_config(text);
    assert_memory_equal(config->schedules[0].partition_sizes, first, sizeof first);
    assert_memory_equal(config->schedules[1].partition_sizes, second, sizeof second);
    config_free(config);
}

static void more_sizes_than_a_worker_is_told_are_left_out(void **state)
{
    (void)state;
    char text[2048] = "rules:\n";
    for (int i = 1; i <= PROTO_PARTITION_SIZES_MAX + 4; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "  - {threads: {limit: %d%%}}\n",
                 i);
    struct config *config = read_config(text);
    for (uint32_t i = 0; i < PROTO_PARTITION_SIZES_MAX; i++)
        assert_int_equal(config->schedules[0].partition_sizes[i], 100 * (i + 1));
    config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_that_limits_of_threads_name),
        cmocka_unit_test(more_sizes_than_a_worker_is_told_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
