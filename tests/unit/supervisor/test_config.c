/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* config: every kind of mistake is refused with its line, and what is accepted says
 * what the file says. */
#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"
#include "server/supervisor/config/tree.h"
#include "tests/unit/supervisor/accepted_config.h"

/* The sentence begins with the file and this line, and holds the words. */
static void refused_bytes(const char *text, size_t bytes, unsigned line, const char *words)
{
    struct config *config = NULL;
    struct error why = {0};
    char place[32];
    uint32_t result = config_parse(&config, "file", text, bytes, &why);
    snprintf(place, sizeof place, "file:%u: ", line);
    if (result == 0 || config || strncmp(why.text, place, strlen(place)) ||
        !strstr(why.text, words))
        fail_msg("%u \"%s\", wanted line %u and \"%s\" of:\n%.300s", result, why.text, line, words,
                 text);
}

static void refused(const char *text, unsigned line, const char *words)
{
    refused_bytes(text, strlen(text), line, words);
}

/* ---- the file ---- */

static void an_empty_file_limits_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "{}\n",
        "~\n",
        "clients:\ngpus:\nprofiles:\nrules:\nusers:\ngroups:\ncgroups:\nsharing:\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct config *config = accepted_config(texts[i]);
        struct allowance limits;
        struct config_who who = {.identified = false, .name = "", .profile = ""};
        assert_int_equal(config_rules_choose(config, 1, &who, &limits), 0);
        assert_true(allowance_equal(&limits, &allowance_none));
        assert_int_equal(config->schedules[1].mode, PROTO_MODE_CONCURRENT);
        assert_int_equal(config->schedule_parts[1], 0);
        assert_false(config_rules_total(config->users, config->user_count, 0, &limits));
        config_free(config);
    }
}

static void malformed_yaml_names_its_line(void **state)
{
    (void)state;
    refused("clients:\n\tpriority: 1\n", 2, "tabs");
    refused("clients: {priority: 1\n\nrules: []\n", 3, "not YAML");
    refused("clients: [\n", 2, "not YAML");
    refused("a: b: c\n", 1, "not YAML");
    refused("clients:\n  name: \"open\n", 3, "not YAML");
    refused("clients:\n  priority: \xff\xfe\n", 2, "not YAML");
    refused("clients:\n  priority: \x01\n", 2, "not YAML");
    refused_bytes("clients:\n  pri\0ority: 1\n", 24, 2, "NUL");
    refused("clients:\n  \"pri\\0ority\": 1\n", 2, "NUL");
    refused("clients: {}\n---\nclients: {}\n", 2, "second document");
}

static void unneeded_features_of_yaml_are_refused(void **state)
{
    (void)state;
    refused("clients: &a {}\n", 1, "anchors");
    refused("profiles:\n  a: {priority: &x 1}\n", 2, "anchors");
    refused("rules: &a [*a, *a]\n", 1, "anchors");
    refused("clients: {}\nrules:\n  - *a\n", 3, "anchors");
    refused("clients: !!map {}\n", 1, "tags");
    refused("clients:\n  priority: !!int 1\n", 2, "tags");
    refused("? [a]\n: 1\n", 1, "a key must be a word");
    refused("? {a: 1}\n: 1\n", 1, "a key must be a word");
    refused("profiles:\n  a: {}\n  b: {}\n  a: {}\n", 4, "first in line 2");
    refused("clients: {priority: 1, priority: 2}\n", 1, "twice");
}

/* Every level names the one before it nine times; a reader that expands dies of it. */
static void a_recursive_bomb_of_aliases_is_refused_at_once(void **state)
{
    (void)state;
    char text[4096] = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (int level = 'b'; level < 'k'; level++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n",
                 level, level, level - 1, level - 1, level - 1, level - 1, level - 1, level - 1,
                 level - 1, level - 1, level - 1);
    }
    refused(text, 1, "anchors");
}

static void depth_and_size_are_bounded(void **state)
{
    (void)state;
    char *text = malloc(CONFIG_BYTES_MAX + 2);
    assert_non_null(text);
    memset(text, '[', 500000);
    refused_bytes(text, 500000, 1, "nested more than 8 deep");
    memset(text, '#', CONFIG_BYTES_MAX + 1);
    refused_bytes(text, CONFIG_BYTES_MAX + 1, 1, "more than 1048576 bytes");
    struct config *config;
    struct error why;
    assert_int_equal(config_parse(&config, "file", text, CONFIG_BYTES_MAX, &why), 0);
    config_free(config);
    size_t used = 0;
    for (unsigned i = 0; i < CONFIG_NODES_MAX; i++)
        used += (size_t)sprintf(text + used, "- x\n");
    refused_bytes(text, used, CONFIG_NODES_MAX, "more than 65536 values");
    used = 0;
    for (unsigned i = 0; i <= CONFIG_KEYS_MAX; i++)
        used += (size_t)sprintf(text + used, "k%u: x\n", i);
    refused_bytes(text, used, CONFIG_KEYS_MAX + 1, "more than 4096 keys");
    used = (size_t)sprintf(text, "rules:\n");
    for (unsigned i = 0; i <= CONFIG_RULES_MAX; i++)
        used += (size_t)sprintf(text + used, "- {}\n");
    refused_bytes(text, used, 2, "more than 1024 entries");
    used = (size_t)sprintf(text, "profiles:\n");
    for (unsigned i = 0; i <= CONFIG_PROFILES_MAX; i++)
        used += (size_t)sprintf(text + used, "  p%u: {}\n", i);
    refused_bytes(text, used, 2, "more than 256 entries");
    free(text);
}

/* ---- keys and types ---- */

static void unknown_keys_are_named_with_the_known(void **state)
{
    (void)state;
    refused("client: {}\n", 1,
            "unknown key \"client\" in the configuration: known are clients, "
            "gpus, profiles, rules, users, groups, cgroups, sharing");
    refused("clients:\n  memroy: {limit: 1G}\n", 2, "unknown key \"memroy\" in clients");
    refused("clients:\n  memory:\n    max: 1G\n", 3, "unknown key \"max\" in memory");
    refused("gpus:\n  - gpu: 0\n    leases: 1\n", 3, "unknown key \"leases\" in an entry of gpus");
    refused("profiles:\n  a:\n    gpu: 0\n", 3, "unknown key \"gpu\" in profile a");
    refused("rules:\n  - match:\n      user: 1\n", 3, "unknown key \"user\" in match");
    refused("rules:\n  - uid: 1\n", 2, "unknown key \"uid\" in a rule");
    refused("users:\n  - gid: 1\n", 2,
            "unknown key \"gid\" in an entry of users: known are uid, "
            "threads, time, memory, host_memory");
    refused("cgroups:\n  - {cgroup: /a, memory: {limit: 1G}}\n", 2, "unknown key \"memory\"");
    refused("sharing: {replicas: 2}\n", 1, "unknown key \"replicas\" in sharing");
}

static void wrong_types_are_refused(void **state)
{
    (void)state;
    refused("- a\n", 1, "the configuration must be a mapping");
    refused("word\n", 1, "the configuration must be a mapping");
    refused("clients: 3\n", 1, "clients must be a mapping");
    refused("gpus: {}\n", 1, "gpus must be a list");
    refused("gpus:\n  - 0\n", 2, "an entry of gpus must be a mapping");
    refused("profiles: []\n", 1, "profiles must be a mapping");
    refused("profiles:\n  a: 1\n", 2, "profile a must be a mapping");
    refused("rules: {}\n", 1, "rules must be a list");
    refused("rules:\n  - a\n", 2, "a rule must be a mapping");
    refused("rules:\n  - match: x\n", 2, "match must be a mapping");
    refused("clients:\n  memory: 4G\n", 2, "memory must be a mapping: memory: {request");
    refused("clients:\n  time: 50%\n", 2, "time must be a mapping");
    refused("users: {}\n", 1, "users must be a list");
    refused("users:\n  - 1000\n", 2, "an entry of users must be a mapping");
    refused("groups:\n  - memory: 1G\n", 2, "memory must be a mapping: memory: {limit");
    refused("sharing: mps\n", 1, "sharing must be a mapping");
    refused("clients:\n  memory: {limit: [1G]}\n", 2, "memory.limit must be");
    refused("clients:\n  priority: \"1\"\n", 2, "priority must be a number");
    refused("clients:\n  kernel_time_limit: 10\n", 2,
            "kernel_time_limit must be a time from 100ms");
    refused("rules:\n  - kernel_time_limit: 99ms\n", 2, "not \"99ms\"");
    refused("clients: {kernel_time_limit: [1s]}\n", 1, "kernel_time_limit must be a time");
    refused("clients:\n  priority: -1\n", 2,
            "priority must be a number from 0 to 1000, not \"-1\"");
    refused("clients:\n  priority: 1001\n", 2, "from 0 to 1000");
    refused("clients:\n  priority: 1.5\n", 2, "priority must be a number");
    refused("clients:\n  priority:\n", 2, "priority must be a number");
    refused("clients:\n  priority: {}\n", 2, "priority must be a number");
}

static void amounts_out_of_form_are_refused(void **state)
{
    (void)state;
    refused("clients:\n\n  threads: {limit: 25}\n", 3, "threads.limit \"25\" must be a share");
    refused("clients:\n  threads: {limit: 0%}\n", 2, "threads.limit");
    refused("clients:\n  threads: {limit: 101%}\n", 2, "threads.limit");
    refused("clients:\n  threads: {limit: 1G}\n", 2, "threads.limit");
    refused("clients:\n  threads: {limit: }\n", 2, "threads.limit");
    refused("clients:\n  memory: {limit: 0}\n", 2, "memory.limit");
    refused("clients:\n  memory: {limit: 90}\n", 2,
            "memory.limit \"90\" must be a size with its unit");
    refused("clients:\n  memory: {limit: 90B}\n", 2,
            "memory.limit \"90B\" must be a size above 100");
    refused("clients:\n  memory: {request: 10}\n", 2, "memory.request \"10\" must be a size");
    refused("clients:\n  memory: {limit: 1X}\n", 2, "memory.limit \"1X\" must be a size");
    refused("clients:\n  memory: {limit: 16777216T}\n", 2, "memory.limit");
    refused("clients:\n  host_memory: {limit: 10%}\n", 2, "host_memory.limit");
    refused("clients:\n  threads: {request: 25}\n", 2, "threads.request \"25\" must be a share");
    refused("clients:\n  threads: {request: 0.0}\n", 2, "or 0 so that nothing is reserved");
    refused("clients:\n  time: {request: 2.0}\n", 2, "time.request \"2.0\" must be a share");
    refused("clients:\n  time: {limit: 0}\n", 2, "time.limit \"0\" must be a share");
    refused("clients:\n  memory: {request: 1Q}\n", 2, "memory.request \"1Q\" must be a size");
    refused("clients:\n  memory: {request: []}\n", 2, "memory.request must be a size");
    refused("clients:\n  host_memory: {request: 10%}\n", 2, "host_memory.request \"10%\"");
    refused("clients:\n  fraction: 1\n", 2, "in steps of 0.01%, not \"1\"");
    refused("clients:\n  fraction: {}\n", 2, "fraction must be a share");
    refused("clients:\n  replicas: 0\n", 2, "replicas must be a number from 1 to 1000");
}

static void requests_that_no_limit_allows_are_refused(void **state)
{
    (void)state;
    refused("clients:\n  threads: {request: 60%, limit: 50%}\n", 2,
            "threads: the request 60% exceeds the limit 50%");
    refused("clients:\n  time:\n    limit: 0.1\n    request: 0.25\n", 4,
            "time: the request 25% exceeds the limit 10%");
    refused("clients:\n  memory: {limit: 1G, request: 2G}\n", 2,
            "memory: the request 2 GiB exceeds the limit 1 GiB");
    refused("clients:\n  memory: {limit: 50%, request: 50.01%}\n", 2,
            "memory: the request 50.01% exceeds the limit 50%");
    refused("profiles:\n  a:\n    host_memory: {limit: 1M, request: 1048577}\n", 3,
            "host_memory: the request 1048577B exceeds the limit 1M");
    /* Of one block, however it is written. */
    refused("clients:\n  time: {limit: 30%}\n  fraction: 0.5\n", 3,
            "time: the request 50% exceeds the limit 30%");
    refused("rules:\n  - replicas: 4\n    threads: {request: 30%}\n", 3,
            "threads: 4 replicas that request 30 % each need 120 %, and there are 100 %");
    refused("rules:\n  - memory: {request: 0.5}\n    replicas: 3\n", 2,
            "memory: 3 replicas that request 50 % each need 150 %");
    refused("clients: {replicas: 2, fraction: 0.6}\n", 1,
            "time: 2 replicas that request 60 % each need 120 %");
    config_free(
        accepted_config("clients: {replicas: 4, threads: {request: 25%}, time: {request: 25%}}\n"));
    config_free(accepted_config("clients: {memory: {limit: 1G, request: 50%}}\n"));
    /* Of several blocks the limit holds, and lowers the request: admission's. */
    config_free(
        accepted_config("clients: {time: {limit: 10%}}\nrules: [{time: {request: 20%}}]\n"));
}

static void schedules_are_the_gpus(void **state)
{
    (void)state;
    struct config *config = accepted_config(
        "gpus:\n  - {gpu: 1, mode: fair, lease: 50ms, precision: 2.5%}\n"
        "  - {gpu: 0, lease: medium, quantum: 2s, window_limit: 1s, local_memory: 8K,\n"
        "     departed_time_limit: 5s, watchdog_warning: 0, watchdog_limit: 1500ms,\n"
        "     standby: context}\n");
    struct schedule first = {PROTO_MODE_CONCURRENT,
                             500,
                             100000000,
                             2000000000,
                             1000000000,
                             8192,
                             UINT64_C(5000000000),
                             0,
                             1500000000,
                             SCHEDULE_STANDBY_CONTEXT,
                             {0}};
    struct schedule second = {PROTO_MODE_FAIR,       250,        50000000,
                              UINT64_C(30000000000), 500000000,  1024,
                              UINT64_C(10000000000), 2000000000, UINT64_C(10000000000),
                              SCHEDULE_STANDBY_NONE, {0}};
    assert_int_equal(schedule_differs(&config->schedules[0], &first), 0);
    assert_int_equal(schedule_differs(&config->schedules[1], &second), 0);
    assert_int_equal(config->schedule_parts[0], SCHEDULE_LEASE | SCHEDULE_QUANTUM |
                                                    SCHEDULE_WINDOW_LIMIT | SCHEDULE_LOCAL_MEMORY |
                                                    SCHEDULE_DEPARTED_LIMIT | SCHEDULE_WATCHDOG |
                                                    SCHEDULE_STANDBY);
    assert_int_equal(config->schedule_parts[1],
                     SCHEDULE_MODE | SCHEDULE_LEASE | SCHEDULE_PRECISION);
    config_free(config);
    static const char *const modes[] = {"concurrent", "strict", "fair", "turns"};
    for (unsigned i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "gpus: [{gpu: 0, mode: %s}]\n", modes[i]);
        config = accepted_config(text);
        assert_int_equal(config->schedules[0].mode, i);
        config_free(config);
    }
    refused("gpus:\n  - gpu: 0\n    mode: shared\n", 3,
            "mode: \"shared\" is not one of concurrent");
    refused("gpus:\n  - gpu: 0\n    mode: [fair]\n", 3, "mode must be a text");
    refused("gpus:\n  - {gpu: 0, lease: 4ms}\n", 2, "lease: \"4ms\" is not a time from 5ms");
    refused("gpus:\n  - {gpu: 0, lease: 250}\n", 2, "lease: \"250\" is not");
    refused("gpus:\n  - {gpu: 0, precision: 60%}\n", 2, "precision: \"60%\" is not a share");
    refused("gpus:\n  - {gpu: 0, quantum: 2h}\n", 2, "quantum: \"2h\" is not a time");
    refused("gpus:\n  - {gpu: 0, window_limit: 11s}\n", 2, "window_limit: \"11s\" is not a time");
    refused("gpus:\n  - {gpu: 0, local_memory: 1M}\n", 2, "local_memory: \"1M\" is not a size");
    refused("gpus:\n  - {gpu: 0, departed_time_limit: 5}\n", 2,
            "departed_time_limit: \"5\" is not 0, or a time");
    refused("gpus:\n  - {gpu: 0, watchdog_warning: 99ms}\n", 2,
            "watchdog_warning: \"99ms\" is not 0, or a time");
    refused("gpus:\n  - {gpu: 0, watchdog_limit: 25h}\n", 2,
            "watchdog_limit: \"25h\" is not 0, or a time");
    refused("gpus:\n  - {gpu: 0, standby: warm}\n", 2,
            "standby: \"warm\" is not one of none, driver and context");
}

static void nvidias_block_is_a_spelling(void **state)
{
    (void)state;
    struct config *config =
        accepted_config("sharing:\n  mps:\n    renameByDefault: false\n    resources:\n"
                        "      - {name: nvidia.com/gpu, replicas: 3, devices: all}\n"
                        "clients: {threads: {limit: 20%}}\n");
    assert_int_equal(config->ceilings[1].part[RESOURCE_MEMORY].limit, 3333);
    assert_int_equal(config->ceilings[1].threads.limit, 2000);
    assert_int_equal(config->schedules[0].mode, PROTO_MODE_CONCURRENT);
    config_free(config);
    config = accepted_config("gpus: [{gpu: 1, mode: turns}, {gpu: 0, lease: short}]\n"
                             "sharing: {timeSlicing: {failRequestsGreaterThanOne: false,\n"
                             "  resources: [{name: nvidia.com/gpu, replicas: 10}]}}\n");
    assert_true(config->ceilings[0].part[RESOURCE_MEMORY].limit == ALLOWANCE_UNSET);
    assert_true(config->ceilings[0].threads.limit == ALLOWANCE_UNSET);
    assert_int_equal(config->ceilings[0].time.request, ALLOWANCE_UNSET);
    assert_int_equal(config->schedules[0].mode, PROTO_MODE_FAIR);
    assert_int_equal(config->schedules[0].lease_ns, 10000000);
    assert_int_equal(config->schedule_parts[0], SCHEDULE_MODE | SCHEDULE_LEASE);
    /* A section for one GPU goes before. */
    assert_int_equal(config->schedules[1].mode, PROTO_MODE_TURNS);
    config_free(config);
}

static void options_of_nvidias_block_without_effect_are_refused(void **state)
{
    (void)state;
#define ONE "resources: [{name: nvidia.com/gpu, replicas: 2}]"
    refused("sharing:\n  mps: {" ONE "}\n  timeSlicing: {" ONE "}\n", 3,
            "sharing has both mps and timeSlicing");
    refused("sharing:\n  mps:\n    " ONE "\n    renameByDefault: true\n", 4,
            "renameByDefault: true is not supported");
    refused("sharing:\n  mps: {" ONE ",\n  failRequestsGreaterThanOne: true}\n", 3,
            "failRequestsGreaterThanOne: true is not supported");
    refused("sharing: {mps: {renameByDefault: 1}}\n", 1, "renameByDefault must be false");
    refused("sharing: {mps: {}}\n", 1, "mps needs the key resources");
    refused("sharing: {mps: {resources: []}}\n", 1, "resources must be a list");
    refused("sharing: {mps: {resources: [{name: nvidia.com/gpu}]}}\n", 1, "needs the key replicas");
    refused("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 0}]}}\n", 1,
            "replicas must be a number from 1");
    refused("sharing: {mps: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}}\n", 1,
            "name must be nvidia.com/gpu");
    refused("sharing:\n  timeSlicing:\n    resources:\n    - {replicas: 2}\n    - {replicas: 3}\n",
            5, "names nvidia.com/gpu twice");
    refused("sharing: {mps: {resources: [{replicas: 2, devices: [0]}]}}\n", 1,
            "devices must be all");
    refused("sharing: {mps: {resources: [{replicas: 2, rename: gpu.x}]}}\n", 1,
            "rename is not supported");
    refused("sharing: {mps: {interval: 1}}\n", 1, "unknown key \"interval\" in mps");
#undef ONE
}

static void totals_are_of_users_and_groups(void **state)
{
    (void)state;
    struct allowance limits;
    struct config *config = accepted_config("users:\n  - {uid: 1000-1999, memory: {limit: 8G}}\n"
                                            "  - {uid: [5, 1001], memory: {limit: 50%},\n"
                                            "     host_memory: {limit: 1G}}\n"
                                            "groups:\n  - {host_memory: {limit: 2G}}\n"
                                            "  - {gid: 100, host_memory: {limit: 4G}}\n");
    assert_true(config_rules_total(config->users, config->user_count, 1000, &limits));
    assert_int_equal(limits.memory.limit, UINT64_C(8) << 30);
    assert_true(limits.part[RESOURCE_MEMORY].limit == ALLOWANCE_UNSET);
    assert_true(limits.host_memory.limit == PROTO_UNSET);
    assert_true(config_rules_total(config->users, config->user_count, 1001, &limits));
    assert_int_equal(limits.memory.limit, UINT64_C(8) << 30);
    assert_int_equal(limits.part[RESOURCE_MEMORY].limit, 5000);
    assert_int_equal(limits.host_memory.limit, 1 << 30);
    assert_false(config_rules_total(config->users, config->user_count, 999, &limits));
    /* An unknown user is in every range. */
    assert_true(config_rules_total(config->users, config->user_count, CONFIG_ID_UNKNOWN, &limits));
    assert_int_equal(limits.host_memory.limit, 1 << 30);
    assert_true(config_rules_total(config->groups, config->group_count, 7, &limits));
    assert_int_equal(limits.host_memory.limit, UINT64_C(2) << 30);
    config_free(config);
    refused("users:\n  - uid: no-such-user\n", 2, "there is no user \"no-such-user\"");
    refused("groups:\n  - gid: []\n", 2, "empty list");
    refused("users:\n  - memory: {limit: 0}\n", 2,
            "memory.limit \"0\" must be a size above 100 bytes");
    refused("users:\n  - memory: {limit: 500}\n", 2, "did you mean 500M?");
    refused("clients:\n  host_memory: {request: 4096}\n", 2, "did you mean 4096M?");
    refused("users:\n  - host_memory: {limit: 5%}\n", 2, "host_memory.limit \"5%\"");
    refused("users:\n  - memory: {request: 1G}\n", 2, "all clients together can have a limit only");
}

static void gpus_are_numbers_or_uuids(void **state)
{
    (void)state;
    refused("gpus:\n  - {mode: concurrent}\n", 2, "needs the key gpu");
    refused("gpus:\n  - gpu: -1\n", 2, "gpu \"-1\"");
    refused("gpus:\n  - gpu: 0,1\n", 2, "gpu \"0,1\"");
    refused("gpus:\n  - gpu: all\n", 2, "gpu \"all\"");
    refused("gpus:\n  - gpu:\n", 2, "gpu must be");
    refused("gpus:\n  - gpu: [0]\n", 2, "gpu must be");
    struct config *config = accepted_config("gpus:\n  - {gpu: GPU-2f9e, memory: {limit: 2G}}\n"
                                            "  - {gpu: 0, threads: {limit: 0.5}}\n");
    assert_int_equal(config->ceilings[1].memory.limit, UINT64_C(2) << 30);
    assert_true(config->ceilings[1].threads.limit == ALLOWANCE_UNSET);
    assert_int_equal(config->ceilings[0].threads.limit, 5000);
    assert_true(config->ceilings[0].memory.limit == PROTO_UNSET);
    config_free(config);
}

static void unresolved(const char *text, const char *words)
{
    struct config *config;
    struct error why = {0};
    assert_int_equal(config_parse(&config, "file", text, strlen(text), &why), 0);
    const struct schedule unsaid = schedule_default();
    assert_int_equal(config_resolve(config, &unsaid, accepted_uuids, 2, &why),
                     PROTO_ERROR_INVALID_VALUE);
    if (!strstr(why.text, words))
        fail_msg("\"%s\" lacks \"%s\"", why.text, words);
    config_free(config);
}

static void gpus_that_are_not_there_or_twice_are_refused(void **state)
{
    (void)state;
    unresolved("gpus:\n  - gpu: 0\n  - gpu: 2\n",
               "file:3: there is no GPU \"2\": this server has 2");
    unresolved("gpus:\n  - gpu: GPU-2f\n",
               "file:2: GPU \"GPU-2f\" is the beginning of several UUIDs");
    unresolved("gpus:\n  - gpu: GPU-dead\n", "there is no GPU \"GPU-dead\": this server has 2");
    unresolved("gpus:\n  - gpu: 1\n  - gpu: GPU-2f9e\n", "file:3: GPU 1 has an entry already, in "
                                                         "line 2");
}

static void equal_gpus_are_refused_before_the_gpus_are_known(void **state)
{
    (void)state;
    refused("gpus:\n  - gpu: 1\n  - gpu: 0\n  - gpu: 1\n", 4,
            "GPU \"1\" has an entry already, in line 2");
    refused("gpus:\n  - gpu: GPU-2f9e\n  - gpu: GPU-2F9E\n", 3, "already, in line 2");
}

static void mistakes_in_rules_are_refused(void **state)
{
    (void)state;
    refused("rules:\n  - match: {uid: no-such-user}\n", 2,
            "there is no user \"no-such-user\" on this machine: correct the name, or give the uid");
    refused("rules:\n  - match: {uid: [root, 10k]}\n", 2, "there is no user \"10k\"");
    refused("rules:\n  - match: {uid: ~}\n", 2, "uid must be a number");
    refused("rules:\n  - match: {uid: 4294967295}\n", 2, "uid must be a number");
    refused("rules:\n  - match: {uid: 2000-1000}\n", 2, "this machine knows, not \"2000-1000\"");
    refused("rules:\n  - match: {uid: 1-}\n", 2, "uid must be a number");
    refused("rules:\n  - match:\n      gid:\n        - 1\n        - no such\n", 5,
            "there is no group \"no such\"");
    refused("rules:\n  - match: {gid: [[1]]}\n", 2, "gid must be a number");
    refused("rules:\n  - match: {uid: []}\n", 2, "empty list");
    refused("rules:\n  - match: {cgroup: user.slice}\n", 2, "absolute path");
    refused("rules:\n  - match: {cgroup: {}}\n", 2, "absolute path");
    refused("rules:\n  - match: {name: \"\"}\n", 2, "name must be a text");
    refused("rules:\n  - match: {name: }\n", 2, "name must be a text");
    refused("rules:\n  - except: {name: x}\n", 2, "a client chooses its own");
    refused("rules:\n  - except: {}\n", 2, "except is empty");
    refused("profiles: {a: {}}\nrules:\n  - profile: b\n", 3, "there is no profile \"b\"");
    refused("rules:\n  - profile: []\n", 2, "profile must be the name");
    refused("profiles:\n  \"a b\": {}\n", 2, "a profile's name");
    refused("profiles:\n  \"\": {}\n", 2, "a profile's name");
}

/* The users and groups are those of this machine; passwd(5) has root on each. */
static void users_and_groups_are_named(void **state)
{
    (void)state;
    struct config *config = accepted_config("rules:\n  - match: {uid: [root, 7, 9-11], gid: root}\n"
                                            "    except: {gid: [root]}\n"
                                            "users: [{uid: root, memory: {limit: 1G}}]\n"
                                            "groups: [{gid: 'root', memory: {limit: 1G}}]\n");
    const struct config_match *match = &config->rules[0].match;
    assert_int_equal(match->uid_count, 3);
    assert_int_equal(match->uids[0].first, 0);
    assert_int_equal(match->uids[0].last, 0);
    assert_int_equal(match->uids[1].first, 7);
    assert_int_equal(match->uids[2].last, 11);
    assert_int_equal(match->gids[0].last, 0);
    assert_int_equal(config->rules[0].except.gid_count, 1);
    assert_int_equal(config->users[0].ids[0].last, 0);
    assert_int_equal(config->groups[0].ids[0].last, 0);
    config_free(config);
}

/* A name is looked up whole, not taken for the range between its halves. */
static void a_name_may_have_a_dash(void **state)
{
    (void)state;
    const struct passwd *user;
    setpwent();
    while ((user = getpwent()) && (!strchr(user->pw_name, '-') || strpbrk(user->pw_name, ":{}[],")))
        ;
    char text[300];
    uint32_t uid = user ? user->pw_uid : 0;
    if (user)
        snprintf(text, sizeof text, "rules: [{match: {uid: %.200s}}]\n", user->pw_name);
    endpwent();
    if (!user)
        skip(); /* no user of this machine has such a name */
    struct config *config = accepted_config(text);
    assert_int_equal(config->rules[0].match.uids[0].first, uid);
    assert_int_equal(config->rules[0].match.uids[0].last, uid);
    config_free(config);
}

/* ---- files ---- */

static void files_are_read_whole_or_refused(void **state)
{
    (void)state;
    struct error why = {0};
    char folder[] = "/tmp/gpushare-config-XXXXXX", path[64];
    struct config *config = NULL;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file.yaml", folder);
    assert_int_equal(config_load(&config, path, &why), PROTO_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why.text, path));
    assert_int_equal(config_load(&config, folder, &why), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(config_load(&config, path, &why), PROTO_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why.text, "regular"));
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("clients: {priority: 3}\n", file);
    fclose(file);
    assert_int_equal(config_load(&config, path, &why), 0);
    assert_int_equal(config->clients.priority, 3);
    config_free(config);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_limits_nothing),
        cmocka_unit_test(malformed_yaml_names_its_line),
        cmocka_unit_test(unneeded_features_of_yaml_are_refused),
        cmocka_unit_test(a_recursive_bomb_of_aliases_is_refused_at_once),
        cmocka_unit_test(depth_and_size_are_bounded),
        cmocka_unit_test(unknown_keys_are_named_with_the_known),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(amounts_out_of_form_are_refused),
        cmocka_unit_test(requests_that_no_limit_allows_are_refused),
        cmocka_unit_test(schedules_are_the_gpus),
        cmocka_unit_test(nvidias_block_is_a_spelling),
        cmocka_unit_test(options_of_nvidias_block_without_effect_are_refused),
        cmocka_unit_test(totals_are_of_users_and_groups),
        cmocka_unit_test(gpus_are_numbers_or_uuids),
        cmocka_unit_test(gpus_that_are_not_there_or_twice_are_refused),
        cmocka_unit_test(equal_gpus_are_refused_before_the_gpus_are_known),
        cmocka_unit_test(mistakes_in_rules_are_refused),
        cmocka_unit_test(users_and_groups_are_named),
        cmocka_unit_test(a_name_may_have_a_dash),
        cmocka_unit_test(files_are_read_whole_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
