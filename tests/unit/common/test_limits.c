/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* limits: the environment's dialect, read and resolved against a table of devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/limits/limits.h"
#include "common/units.h"

/* An environment of NAME, VALUE, ..., NULL. */
static const char *get(const char *name, void *context)
{
    const char *const *pairs = context;
    for (; pairs[0]; pairs += 2)
        if (strcmp(pairs[0], name) == 0)
            return pairs[1];
    return NULL;
}

#define READ(wish, why, ...)                                                                       \
    limits_wish_read(wish, get, (void *)(const char *[]){__VA_ARGS__, NULL}, why)

/* The variable that said a value; NULL if none did. */
static const char *from(const struct limits_wish *wish, enum resource resource,
                        enum allowance_bound bound)
{
    return allowance_variable_of(&wish->allowance, resource, bound);
}

static const char *from_on_device(const struct limits_wish *wish, enum allowance_bound bound)
{
    struct allowance on_device = limits_on_device(wish, 1 << 30, PROTO_UNSET);
    return allowance_variable_of(&on_device, RESOURCE_MEMORY, bound);
}

/* Three devices; the first two begin alike. */
static const uint8_t uuids[3][LIMITS_UUID_BYTES] = {
    {0xab, 0xcd, 0xef, 0x01, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 1, 2, 3, 4, 5, 6},
    {0xab, 0xcd, 0xef, 0x02, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 1, 2, 3, 4, 5, 6},
    {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde,
     0xf0},
};
#define UUID2 "12345678-9abc-def0-1234-56789abcdef0"

static void nothing_set_asks_for_nothing(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, NULL), 0);
    assert_true(allowance_equal(&wish.allowance, &allowance_none));
    assert_int_equal(wish.memory.count, 0);
    assert_false(wish.visible.listed);
    assert_string_equal(wish.name, "");
    assert_string_equal(wish.socket, "");
    assert_null(wish.memory_from);
    assert_null(from(&wish, RESOURCE_THREADS, ALLOWANCE_LIMIT));
    assert_string_equal(why.text, "");
}

static void every_variable_is_read(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "12.5",
                          "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=1G, GPU-" UUID2 "=512MB",
                          "GPUSHARE_PINNED_HOST_MEM_LIMIT", "64K", "GPUSHARE_CLIENT_PRIORITY", "1",
                          "GPUSHARE_CLIENT_NAME", "train \xc3\xa9t\xc3\xa9",
                          "GPUSHARE_VISIBLE_DEVICES", "1,GPU-abcdef01", "GPUSHARE_SOCKET", "/s",
                          "GPUSHARE_KERNEL_TIME_LIMIT", "1500ms"),
                     0);
    assert_int_equal(wish.allowance.kernel_time, 1500000000);
    assert_int_equal(wish.allowance.scalar_from[SCALAR_KERNEL_TIME].origin, ALLOWANCE_BY_SELF);
    assert_string_equal(allowance_scalar_variable(&wish.allowance, SCALAR_KERNEL_TIME),
                        "GPUSHARE_KERNEL_TIME_LIMIT");
    assert_int_equal(wish.allowance.threads.limit, 1250);
    assert_int_equal(wish.memory.count, 2);
    assert_int_equal(wish.memory.entries[0].device.ordinal, 0);
    assert_int_equal(wish.memory.entries[0].bytes, 1073741824);
    assert_true(wish.memory.entries[1].device.by_uuid);
    assert_string_equal(wish.memory.entries[1].device.uuid, UUID2);
    assert_int_equal(wish.memory.entries[1].bytes, 536870912);
    assert_int_equal(wish.allowance.host_memory.limit, 65536);
    assert_int_equal(wish.allowance.priority, 1);
    assert_string_equal(wish.name, "train \xc3\xa9t\xc3\xa9");
    assert_true(wish.visible.listed);
    assert_int_equal(wish.visible.count, 2);
    assert_string_equal(wish.socket, "/s");
    assert_string_equal(wish.memory_from, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT");
    assert_string_equal(wish.visible_from, "GPUSHARE_VISIBLE_DEVICES");
}

static void shares_are_read_and_a_fraction_is_memory_and_time(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_REQUEST", "12.5%", "GPUSHARE_TIME_REQUEST",
                          "0.2", "GPUSHARE_TIME_LIMIT", "60%"),
                     0);
    assert_int_equal(wish.allowance.threads.request, 1250);
    assert_int_equal(wish.allowance.time.request, 2000);
    assert_int_equal(wish.allowance.time.limit, 6000);
    assert_true(wish.allowance.part[RESOURCE_MEMORY].limit == ALLOWANCE_UNSET);
    assert_string_equal(from(&wish, RESOURCE_TIME, ALLOWANCE_REQUEST), "GPUSHARE_TIME_REQUEST");
    assert_int_equal(READ(&wish, &why, "GPUSHARE_FRACTION", "0.5"), 0);
    assert_int_equal(wish.allowance.part[RESOURCE_MEMORY].limit, 5000);
    assert_int_equal(wish.allowance.time.request, 5000);
    assert_true(wish.allowance.time.limit == ALLOWANCE_UNSET);
    assert_string_equal(from(&wish, RESOURCE_TIME, ALLOWANCE_REQUEST), "GPUSHARE_FRACTION");
    /* The least, as of everything. */
    assert_int_equal(READ(&wish, &why, "GPUSHARE_FRACTION", "50%", "GPUSHARE_TIME_REQUEST", "30%"),
                     0);
    assert_int_equal(wish.allowance.part[RESOURCE_MEMORY].limit, 5000);
    assert_int_equal(wish.allowance.time.request, 3000);
    assert_int_equal(READ(&wish, &why, "GPUSHARE_FRACTION", "0.2", "GPUSHARE_TIME_REQUEST", "30%"),
                     0);
    assert_int_equal(wish.allowance.time.request, 2000);
    assert_int_equal(READ(&wish, &why, "GPUSHARE_FRACTION", "1.0", "GPUSHARE_TIME_LIMIT", "100%"),
                     0);
}

static void a_request_above_its_limit_names_both(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_REQUEST", "50%",
                          "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "49.99"),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_string_equal(why.text, "GPUSHARE_THREADS_REQUEST requests 50%, and "
                                  "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE limits it to 49.99%: "
                                  "lower the request or raise the limit");
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_REQUEST", "50%",
                          "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "50"),
                     0);
    assert_int_equal(
        READ(&wish, &why, "GPUSHARE_TIME_REQUEST", "0.5", "GPUSHARE_TIME_LIMIT", "20%"),
        PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(
        strstr(why.text, "GPUSHARE_TIME_REQUEST requests 50%, and GPUSHARE_TIME_LIMIT"));
    assert_int_equal(READ(&wish, &why, "GPUSHARE_FRACTION", "0.5", "GPUSHARE_TIME_LIMIT", "20%"),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "GPUSHARE_FRACTION requests 50%"));
}

static void limits_have_the_names_of_the_dialect_too(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_LIMIT", "12.5%", "GPUSHARE_MEMORY_LIMIT",
                          "0.25", "GPUSHARE_HOST_MEMORY_LIMIT", "2M"),
                     0);
    assert_int_equal(wish.allowance.threads.limit, 1250);
    assert_string_equal(from(&wish, RESOURCE_THREADS, ALLOWANCE_LIMIT), "GPUSHARE_THREADS_LIMIT");
    assert_int_equal(limits_on_device(&wish, 1000, PROTO_UNSET).memory.limit, 250);
    assert_int_equal(limits_on_device(&wish, 1000, 100).memory.limit, 100);
    assert_string_equal(from_on_device(&wish, ALLOWANCE_LIMIT), "GPUSHARE_MEMORY_LIMIT");
    assert_int_equal(wish.allowance.host_memory.limit, 2 << 20);
    assert_string_equal(from(&wish, RESOURCE_HOST_MEMORY, ALLOWANCE_LIMIT),
                        "GPUSHARE_HOST_MEMORY_LIMIT");
    /* The tighter one of both; MPS's own gives way. */
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_LIMIT", "50%",
                          "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "40", "GPUSHARE_HOST_MEMORY_LIMIT",
                          "2M", "GPUSHARE_PINNED_HOST_MEM_LIMIT", "1M"),
                     0);
    assert_int_equal(wish.allowance.threads.limit, 4000);
    assert_string_equal(from(&wish, RESOURCE_THREADS, ALLOWANCE_LIMIT),
                        "GPUSHARE_ACTIVE_THREAD_PERCENTAGE");
    assert_int_equal(wish.allowance.host_memory.limit, 1 << 20);
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_LIMIT", "50%",
                          "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "40"),
                     0);
    assert_int_equal(wish.allowance.threads.limit, 5000);
    assert_int_equal(READ(&wish, &why, "GPUSHARE_CLIENT_NAME", "a"), 0);
    assert_true(limits_on_device(&wish, 1000, PROTO_UNSET).memory.limit == PROTO_UNSET);
    assert_int_equal(READ(&wish, &why, "GPUSHARE_THREADS_LIMIT", "25"),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_string_equal(why.text,
                        "GPUSHARE_THREADS_LIMIT=\"25\" is not a share above 0, like 25% or 0.25, "
                        "up to 100% or 1.0, in steps of 0.01%");
    assert_int_equal(READ(&wish, &why, "GPUSHARE_MEMORY_LIMIT", "4"),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_int_equal(READ(&wish, &why, "GPUSHARE_HOST_MEMORY_LIMIT", "5%"),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_int_equal(
        READ(&wish, &why, "GPUSHARE_THREADS_REQUEST", "50%", "GPUSHARE_THREADS_LIMIT", "30%"),
        PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "GPUSHARE_THREADS_LIMIT limits it to 30%"));
    assert_int_equal(
        READ(&wish, &why, "GPUSHARE_MEMORY_REQUEST", "50%", "GPUSHARE_MEMORY_LIMIT", "30%"),
        PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "GPUSHARE_MEMORY_LIMIT limits it to 30%"));
}

static void a_request_of_memory_is_a_size_or_a_share(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_CLIENT_NAME", "a"), 0);
    assert_true(allowance_equal(&wish.allowance, &allowance_none));
    assert_int_equal(
        READ(&wish, &why, "GPUSHARE_MEMORY_REQUEST", "12.5%", "GPUSHARE_HOST_MEMORY_REQUEST", "2M"),
        0);
    assert_int_equal(limits_on_device(&wish, 1000, PROTO_UNSET).memory.request, 125);
    assert_int_equal(wish.allowance.host_memory.request, 2 << 20);
    assert_string_equal(from_on_device(&wish, ALLOWANCE_REQUEST), "GPUSHARE_MEMORY_REQUEST");
    assert_string_equal(from(&wish, RESOURCE_HOST_MEMORY, ALLOWANCE_REQUEST),
                        "GPUSHARE_HOST_MEMORY_REQUEST");
    assert_int_equal(READ(&wish, &why, "GPUSHARE_MEMORY_REQUEST", "3K"), 0);
    assert_int_equal(limits_on_device(&wish, 1000, PROTO_UNSET).memory.request, 3072);
    assert_int_equal(
        READ(&wish, &why, "GPUSHARE_MEMORY_REQUEST", "51%", "GPUSHARE_FRACTION", "0.5"),
        PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(
        why.text, "GPUSHARE_MEMORY_REQUEST requests 51%, and GPUSHARE_FRACTION limits it to 50%"));
    assert_int_equal(READ(&wish, &why, "GPUSHARE_HOST_MEMORY_REQUEST", "3M",
                          "GPUSHARE_PINNED_HOST_MEM_LIMIT", "2M"),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "GPUSHARE_HOST_MEMORY_REQUEST"));
    assert_non_null(strstr(why.text, "GPUSHARE_PINNED_HOST_MEM_LIMIT limits it to 2M"));
}

static void a_namesake_counts_where_ours_is_unset(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "40",
                          "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=2G", "CUDA_MPS_CLIENT_PRIORITY",
                          "1", "CUDA_VISIBLE_DEVICES", "2"),
                     0);
    assert_int_equal(wish.allowance.threads.limit, 4000);
    assert_string_equal(from(&wish, RESOURCE_THREADS, ALLOWANCE_LIMIT),
                        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    assert_int_equal(wish.memory.count, 1);
    assert_int_equal(wish.allowance.priority, 1);
    assert_int_equal(wish.visible.devices[0].ordinal, 2);
    /* Ours wins even where it is looser; a malformed namesake is then not looked at. */
    assert_int_equal(READ(&wish, &why, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "banana",
                          "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "100", "GPUSHARE_VISIBLE_DEVICES",
                          "0", "CUDA_VISIBLE_DEVICES", "2"),
                     0);
    assert_int_equal(wish.allowance.threads.limit, 10000);
    assert_int_equal(wish.visible.devices[0].ordinal, 0);
    /* Also where ours has another form. */
    assert_int_equal(READ(&wish, &why, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "banana",
                          "GPUSHARE_MEMORY_LIMIT", "4G"),
                     0);
    assert_int_equal(wish.memory.count, 0);
    assert_int_equal(READ(&wish, &why, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "banana",
                          "GPUSHARE_THREADS_LIMIT", "100%"),
                     0);
    assert_int_equal(wish.allowance.threads.limit, 10000);
    /* MPS has no namesake for host memory, and names of ours have none. */
    assert_int_equal(READ(&wish, &why, "CUDA_MPS_PINNED_HOST_MEM_LIMIT", "1K"), 0);
    assert_true(wish.allowance.host_memory.limit == PROTO_UNSET);
}

/* The sentence names the variable, quotes the value and says the form. */
static void refused(const char *variable, const char *value, const char *form)
{
    struct limits_wish wish;
    struct error why = {0};
    if (READ(&wish, &why, variable, value) != PROTO_ERROR_INVALID_ENVIRONMENT)
        fail_msg("%s=\"%s\" was accepted", variable, value);
    if (strncmp(why.text, variable, strlen(variable)) != 0 || !strstr(why.text, form))
        fail_msg("%s=\"%s\": \"%s\" lacks variable or \"%s\"", variable, value, why.text, form);
    for (const char *c = why.text; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            fail_msg("%s: a control character in the sentence", variable);
}

static void malformed_values_are_refused_in_words(void **state)
{
    (void)state;
    static const char *const percentages[] = {"", "0", "101", "-5", "50%", "half", "1.234", " 5"};
    for (unsigned i = 0; i < sizeof percentages / sizeof percentages[0]; i++) {
        refused("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", percentages[i], "above 0 and up to 100");
        refused("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentages[i], "above 0 and up to 100");
    }
    static const char *const memory[] = {
        "",
        "1G",
        "0",
        "0=",
        "=1G",
        "0=1G,",
        ",0=1G",
        "0=1G,,",
        "0=-1",
        "-1=1G",
        "0:1G",
        "0=1G;1=1G",
        "0=1G,0=2G",
        "0=1G,00=2G",
        "GPU-=1G",
        "GPU-zz=1G",
        "gpu=1G",
        "4294967296=1G",
        "0=18446744073709551615",
        "0=18446744073709551616",
        "GPU-abcdef01-1=1G,GPU-ABCDEF01-1=2G",
        "0=1=2",
        "GPU-" UUID2 "0=1G",
        "GPU-12345678=9abc",
    };
    for (unsigned i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        refused("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", memory[i], "0=1G,1=512MB");
        refused("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", memory[i], "0=1G,1=512MB");
    }
    static const char *const host[] = {"", "-1", "1X", "1G,", "18446744073709551615"};
    for (unsigned i = 0; i < sizeof host / sizeof host[0]; i++)
        refused("GPUSHARE_PINNED_HOST_MEM_LIMIT", host[i], "512M");
    static const char *const priorities[] = {"",    "-1",   "1001",
                                             "1.5", "high", "18446744073709551616"};
    for (unsigned i = 0; i < sizeof priorities / sizeof priorities[0]; i++) {
        refused("GPUSHARE_CLIENT_PRIORITY", priorities[i], "0 (normal) to 1000");
        refused("CUDA_MPS_CLIENT_PRIORITY", priorities[i], "0 (normal) to 1000");
    }
    static const char *const times[] = {"", "0", "10", "99ms", "25h", "-1s", "long", "1s "};
    for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++)
        refused("GPUSHARE_KERNEL_TIME_LIMIT", times[i],
                "a time from 100ms to 24h (units: " UNITS_DURATIONS "), like 30s or 5min");
    static const char *const visible[] = {"all",  "0,,1",  "0,",  "0 1",  "0;1",
                                          "GPU-", "GPU-x", "0,0", "-1,x", "GPU-ab,gpu-AB"};
    for (unsigned i = 0; i < sizeof visible / sizeof visible[0]; i++) {
        refused("GPUSHARE_VISIBLE_DEVICES", visible[i], "device indices");
        refused("CUDA_VISIBLE_DEVICES", visible[i], "device indices");
    }
    static const char *const shares[] = {"",     "1",   "50",   "0",  "0%",      "0.0", "1.01",
                                         "101%", "-5%", "half", "1G", "0.12345", " 5%", "5 %"};
    for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        refused("GPUSHARE_THREADS_REQUEST", shares[i], "a share above 0, like 25% or 0.25");
        refused("GPUSHARE_TIME_REQUEST", shares[i], "a share above 0, like 25% or 0.25");
        refused("GPUSHARE_TIME_LIMIT", shares[i], "a share above 0, like 25% or 0.25");
        refused("GPUSHARE_FRACTION", shares[i], "a share above 0, like 25% or 0.25");
    }
    static const char *const amounts[] = {"", "90B", "half", "-1", "101%", "1.5G%"};
    for (unsigned i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        refused("GPUSHARE_MEMORY_REQUEST", amounts[i], "a size above 100 bytes, like 512M or 4G");
    /* A number whose unit was forgotten, in each variable of memory. */
    refused("GPUSHARE_MEMORY_REQUEST", "90", "did you mean 90M, or 90%?");
    refused("GPUSHARE_MEMORY_LIMIT", "500", "did you mean 500M?");
    refused("GPUSHARE_HOST_MEMORY_REQUEST", "500", "did you mean 500M?");
    refused("GPUSHARE_HOST_MEMORY_LIMIT", "999999", "did you mean 999999M?");
    refused("GPUSHARE_PINNED_HOST_MEM_LIMIT", "500", "did you mean 500M?");
    refused("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=1G,1=500", "did you mean 500M?");
    refused("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=500", "did you mean 500M?");
    static const char *const host_requests[] = {"", "25%", "half", "-1", "99999999999999999999G"};
    for (unsigned i = 0; i < sizeof host_requests / sizeof host_requests[0]; i++)
        refused("GPUSHARE_HOST_MEMORY_REQUEST", host_requests[i], "512M");
    refused("GPUSHARE_SOCKET", "", "absolute path");
    refused("GPUSHARE_SOCKET", "run/gpushare.sock", "absolute path");
}

static void names_and_paths_at_their_longest(void **state)
{
    (void)state;
    struct limits_wish wish;
    char text[200];
    struct error why;
    memset(text, 'n', sizeof text);
    text[LIMITS_NAME_MAX] = '\0';
    assert_int_equal(READ(&wish, &why, "GPUSHARE_CLIENT_NAME", text), 0);
    assert_string_equal(wish.name, text);
    text[LIMITS_NAME_MAX] = 'n';
    text[LIMITS_NAME_MAX + 1] = '\0';
    refused("GPUSHARE_CLIENT_NAME", text, "63 bytes");
    /* 62 bytes and a character of two. */
    memcpy(text + 62, "\xc3\xa9", 3);
    refused("GPUSHARE_CLIENT_NAME", text, "63 bytes");
    assert_int_equal(READ(&wish, &why, "GPUSHARE_CLIENT_NAME", ""), 0);
    memset(text, 'p', sizeof text);
    text[0] = '/';
    text[LIMITS_SOCKET_MAX] = '\0';
    assert_int_equal(READ(&wish, &why, "GPUSHARE_SOCKET", text), 0);
    text[LIMITS_SOCKET_MAX] = 'p';
    text[LIMITS_SOCKET_MAX + 1] = '\0';
    refused("GPUSHARE_SOCKET", text, "107 bytes");
}

static void names_are_clean_utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "a b",
                                       "\xc2\xa0",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "\xed\x9f\xbf"};
    static const char *const bad[] = {
        "\n",
        "\x1b[31m",
        "\x7f",
        "\x80",
        "\xc3",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2\x85",
        "\xe0\x80\x80",
        "\xe2\x82",
        "\xed\xa0\x80",
        "\xf0\x80\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf4\x90\x80\x80",
        "\xff",
        "a\xe2\x82",
    };
    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(limits_name_is_valid(good[i]));
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (limits_name_is_valid(bad[i]))
            fail_msg("bad name %u was accepted", i);
}

static void a_long_value_is_cut_in_the_sentence(void **state)
{
    (void)state;
    struct limits_wish wish;
    char value[5000];
    struct error why;
    memset(value, '9', sizeof value);
    value[sizeof value - 1] = '\0';
    assert_int_equal(READ(&wish, &why, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", value),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "999...\""));
    assert_true(strlen(why.text) < 380);
}

static void lists_at_their_longest(void **state)
{
    (void)state;
    char value[2000] = "";
    struct error why;
    struct limits_memory memory;
    struct limits_visible visible;
    size_t at = 0;
    for (int i = 0; i < DEVICES_MAX; i++)
        at += (size_t)snprintf(value + at, sizeof value - at, "%s%d=1B", i ? "," : "", i);
    assert_int_equal(limits_parse_memory(&memory, "V", value, &why), 0);
    assert_int_equal(memory.count, DEVICES_MAX);
    snprintf(value + at, sizeof value - at, ",64=1B");
    assert_int_equal(limits_parse_memory(&memory, "V", value, &why),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "at most 64"));
    at = 0;
    for (int i = 0; i <= DEVICES_MAX; i++)
        at += (size_t)snprintf(value + at, sizeof value - at, "%s%d", i ? "," : "", i);
    assert_int_equal(limits_parse_visible(&visible, "V", value, &why),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "at most 64"));
}

/* Resolves a list of visible devices against the table above. */
static int visible_of(const char *value, unsigned indices[DEVICES_MAX])
{
    struct limits_wish wish;
    struct error why = {0};
    if (value)
        assert_int_equal(READ(&wish, &why, "CUDA_VISIBLE_DEVICES", value), 0);
    else
        assert_int_equal(READ(&wish, &why, NULL), 0);
    struct limits_devices devices = {.uuids = uuids, .count = 3};
    uint32_t error = limits_visible_resolve(&wish, &devices, &why);
    memcpy(indices, devices.indices, sizeof devices.indices);
    if (!error)
        return (int)devices.visible;
    assert_int_equal(error, PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "CUDA_VISIBLE_DEVICES names device"));
    return -1;
}

static void visible_devices_follow_cudas_rules(void **state)
{
    (void)state;
    unsigned at[DEVICES_MAX];
    assert_int_equal(visible_of(NULL, at), 3);
    assert_true(at[0] == 0 && at[1] == 1 && at[2] == 2);
    assert_int_equal(visible_of("", at), 0);
    assert_int_equal(visible_of("-1", at), 0);
    assert_int_equal(visible_of("none", at), 0);
    assert_int_equal(visible_of("NoDevFiles", at), 0);
    assert_int_equal(visible_of("2,1", at), 2);
    assert_true(at[0] == 2 && at[1] == 1);
    /* The list ends before the first device that does not exist. */
    assert_int_equal(visible_of("0,2,-1,1", at), 2);
    assert_true(at[0] == 0 && at[1] == 2);
    assert_int_equal(visible_of("1,3,0", at), 1);
    assert_int_equal(visible_of("4294967295", at), 0);
    assert_int_equal(visible_of("GPU-" UUID2 ",0", at), 2);
    assert_true(at[0] == 2 && at[1] == 0);
    assert_int_equal(visible_of("MIG-1234", at), 1);
    assert_int_equal(visible_of("gpu-ABCDEF02", at), 1);
    assert_int_equal(at[0], 1);
    /* A beginning that fits two devices is none. */
    assert_int_equal(visible_of("GPU-abcdef0", at), 0);
    assert_int_equal(visible_of("GPU-ffff,0", at), 0);
    /* The same device by two names. */
    assert_int_equal(visible_of("2,GPU-1234", at), -1);
}

static uint32_t memory_of(const char *value, const char *visible, uint64_t bytes[DEVICES_MAX],
                          struct error *why)
{
    struct limits_wish wish;
    struct limits_devices devices = {.uuids = uuids, .count = 3};
    assert_int_equal(READ(&wish, why, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", value,
                          visible ? "GPUSHARE_VISIBLE_DEVICES" : "IGNORED", visible),
                     0);
    assert_int_equal(limits_visible_resolve(&wish, &devices, why), 0);
    return limits_memory_resolve(&wish, &devices, bytes, why);
}

static void memory_limits_count_visible_devices(void **state)
{
    (void)state;
    uint64_t bytes[DEVICES_MAX];
    struct error why = {0};
    assert_int_equal(memory_of("0=1G,2=512M", NULL, bytes, &why), 0);
    assert_true(bytes[0] == 1073741824 && bytes[1] == PROTO_UNSET && bytes[2] == 536870912);
    assert_int_equal(memory_of("0=1G", "2,1", bytes, &why), 0);
    assert_true(bytes[0] == 1073741824 && bytes[1] == PROTO_UNSET);
    /* A UUID means the device itself, wherever it stands in the list. */
    assert_int_equal(memory_of("GPU-" UUID2 "=3G", "1,2", bytes, &why), 0);
    assert_true(bytes[0] == PROTO_UNSET && bytes[1] == UINT64_C(3221225472));
    /* One setting for a whole node: what this client does not see has no effect. */
    assert_int_equal(memory_of("0=1G,1=2G,GPU-abcdef01=3G", "2", bytes, &why), 0);
    assert_true(bytes[0] == 1073741824 && bytes[1] == PROTO_UNSET);
    assert_int_equal(memory_of("0=1G", "", bytes, &why), 0);
    assert_int_equal(memory_of("0=0", NULL, bytes, &why), 0);
    assert_int_equal(bytes[0], 0);
}

static void memory_limits_of_unknown_devices_are_refused(void **state)
{
    (void)state;
    uint64_t bytes[DEVICES_MAX];
    struct error why = {0};
    assert_int_equal(memory_of("3=1G", NULL, bytes, &why), PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "device 3, which does not exist: this server has 3,"));
    assert_int_equal(memory_of("GPU-ffff=1G", NULL, bytes, &why), PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "UUID ffff"));
    assert_int_equal(memory_of("GPU-abcd=1G", NULL, bytes, &why), PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "one of several"));
    assert_int_equal(memory_of("2=1G,GPU-1234=2G", NULL, bytes, &why),
                     PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "twice"));
}

static void no_device_at_all(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct limits_devices devices = {.visible = 1};
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_VISIBLE_DEVICES", "0"), 0);
    assert_int_equal(limits_visible_resolve(&wish, &devices, &why), 0);
    assert_int_equal(devices.visible, 0);
}

/* The list holds beside the other limits of memory, and each keeps its variable. */
static void the_strictest_limit_of_memory_names_its_variable(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_MEMORY_LIMIT", "50%", "GPUSHARE_FRACTION", "0.4",
                          "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=300B"),
                     0);
    struct allowance listed = limits_on_device(&wish, 1000, 300);
    assert_int_equal(listed.memory.limit, 300);
    assert_string_equal(allowance_variable_of(&listed, RESOURCE_MEMORY, ALLOWANCE_LIMIT),
                        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    struct allowance parts = limits_on_device(&wish, 1000, 700);
    assert_int_equal(parts.memory.limit, 400);
    assert_string_equal(allowance_variable_of(&parts, RESOURCE_MEMORY, ALLOWANCE_LIMIT),
                        "GPUSHARE_FRACTION");
    assert_int_equal(READ(&wish, &why, "GPUSHARE_MEMORY_LIMIT", "400B", "GPUSHARE_FRACTION", "0.4"),
                     0);
    struct allowance alike = limits_on_device(&wish, 1000, 700);
    assert_string_equal(allowance_variable_of(&alike, RESOURCE_MEMORY, ALLOWANCE_LIMIT),
                        "GPUSHARE_MEMORY_LIMIT");
}

/* A client that asks for nothing leaves its grant alone. */
static void a_request_of_nothing_is_no_wish(void **state)
{
    (void)state;
    struct limits_wish wish;
    struct error why = {0};
    assert_int_equal(READ(&wish, &why, "GPUSHARE_HOST_MEMORY_REQUEST", "0"), 0);
    assert_true(allowance_equal(&wish.allowance, &allowance_none));
}

static void uuids_are_written_as_nvidia_does(void **state)
{
    (void)state;
    char text[LIMITS_UUID_TEXT];
    assert_string_equal(limits_format_uuid(uuids[2], text), "GPU-" UUID2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_set_asks_for_nothing),
        cmocka_unit_test(every_variable_is_read),
        cmocka_unit_test(shares_are_read_and_a_fraction_is_memory_and_time),
        cmocka_unit_test(a_request_above_its_limit_names_both),
        cmocka_unit_test(limits_have_the_names_of_the_dialect_too),
        cmocka_unit_test(a_request_of_memory_is_a_size_or_a_share),
        cmocka_unit_test(a_namesake_counts_where_ours_is_unset),
        cmocka_unit_test(malformed_values_are_refused_in_words),
        cmocka_unit_test(names_and_paths_at_their_longest),
        cmocka_unit_test(names_are_clean_utf8),
        cmocka_unit_test(a_long_value_is_cut_in_the_sentence),
        cmocka_unit_test(lists_at_their_longest),
        cmocka_unit_test(visible_devices_follow_cudas_rules),
        cmocka_unit_test(memory_limits_count_visible_devices),
        cmocka_unit_test(memory_limits_of_unknown_devices_are_refused),
        cmocka_unit_test(no_device_at_all),
        cmocka_unit_test(the_strictest_limit_of_memory_names_its_variable),
        cmocka_unit_test(a_request_of_nothing_is_no_wish),
        cmocka_unit_test(uuids_are_written_as_nvidia_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
