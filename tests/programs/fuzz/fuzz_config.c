/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A configuration file, and what its rules give clients known and unknown. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"

static void expect(int holds)
{
    if (!holds)
        abort();
}

static void check_limits(const struct config_limits *limits)
{
    expect(limits->memory > 0 && limits->memory_share <= PROTO_PERCENT_WHOLE);
    expect(limits->threads <= PROTO_PERCENT_WHOLE && limits->priority <= LIMITS_PRIORITY_MAX);
    expect(limits->time <= PROTO_PERCENT_WHOLE);
    expect(limits->thread_request == CONFIG_UNSAID ||
           limits->thread_request <= PROTO_PERCENT_WHOLE);
    expect(limits->time_request == CONFIG_UNSAID || limits->time_request <= PROTO_PERCENT_WHOLE);
    expect(limits->memory_request_share == CONFIG_UNSAID ||
           limits->memory_request_share <= PROTO_PERCENT_WHOLE);
}

/* Whoever is not identified has at most what any other has. */
static void choose(const struct config *config, uint32_t device)
{
    static const uint32_t gids[] = {0, 100, 4000};
    struct config_who who = {.identified = true,
                             .uid = 1000,
                             .gids = gids,
                             .gid_count = 3,
                             .cgroup = "/batch.slice/a.service",
                             .name = "notebook-1",
                             .profile = ""};
    struct config_limits known, unknown, both;
    expect(config_rules_choose(config, device, &who, &known) == 0);
    who.identified = false;
    expect(config_rules_choose(config, device, &who, &unknown) == 0);
    check_limits(&known);
    both = unknown;
    config_limits_tighten(&both, &known);
    expect(both.memory == unknown.memory && both.memory_share == unknown.memory_share &&
           both.host_memory == unknown.host_memory && both.threads == unknown.threads &&
           both.time == unknown.time && both.priority == unknown.priority);
    expect(both.memory_request == unknown.memory_request &&
           both.memory_request_share == unknown.memory_request_share &&
           both.host_request == unknown.host_request &&
           both.thread_request == unknown.thread_request &&
           both.time_request == unknown.time_request);
}

/* Likewise of what users and groups have in total; what is granted must be in range. */
static void total(const struct config *config)
{
    struct config_limits known, unknown, both;
    config_rules_total(config->users, config->user_count, CONFIG_ID_UNKNOWN, &unknown);
    config_rules_total(config->users, config->user_count, 1000, &known);
    check_limits(&known);
    both = unknown;
    config_limits_tighten(&both, &known);
    expect(both.memory == unknown.memory && both.memory_share == unknown.memory_share &&
           both.host_memory == unknown.host_memory);
    config_rules_total(config->groups, config->group_count, 4000, &known);
    check_limits(&known);
}

static void schedules(const struct config *config)
{
    for (unsigned i = 0; i < config->device_count; i++) {
        struct proto_worker_schedule body = schedule_message(&config->schedules[i]);
        expect(proto_message_find(PROTO_WORKER_SCHEDULE)->check(&body) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t uuids[2][LIMITS_UUID_BYTES] = {{0x2f, 0x9d}, {0x2f, 0x9e}};
    struct config *config;
    char why[600] = "";
    int result = config_parse(&config, "f", (const char *)data, bytes, why, sizeof why);
    if (result < 0) {
        /* "f:LINE: reason" */
        char *end;
        expect(!config && !strncmp(why, "f:", 2) && strtoul(why + 2, &end, 10) >= 1);
        expect(!strncmp(end, ": ", 2) && end[2]);
        return 0;
    }
    const struct schedule unsaid = schedule_default();
    if (config_resolve(config, &unsaid, uuids, 2, why, sizeof why) == 0) {
        choose(config, 0);
        choose(config, 1);
        total(config);
        schedules(config);
    }
    config_free(config);
    return 0;
}
