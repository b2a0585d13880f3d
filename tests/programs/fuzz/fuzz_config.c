/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Fuzzes a configuration file, and computes limits by its rules for clients known and unknown. */
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

static void check_limits(const struct allowance *limits)
{
    expect(limits->memory.limit > 0);
    expect(limits->priority == ALLOWANCE_UNSET ||
           limits->priority <= allowance_scalar(SCALAR_PRIORITY)->most);
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_range *shares =
            allowance_resource(i)->unit == DIALECT_SHARE ? &limits->of[i] : &limits->part[i];
        expect(shares->limit == ALLOWANCE_UNSET || shares->limit <= ALLOWANCE_WHOLE);
        expect(shares->request == ALLOWANCE_UNSET || shares->request <= ALLOWANCE_WHOLE);
    }
}

/* A client that is not identified has at most what any other client has. */
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
    struct allowance known, unknown, both;
    expect(config_rules_choose(config, device, &who, &known) == 0);
    who.identified = false;
    expect(config_rules_choose(config, device, &who, &unknown) == 0);
    check_limits(&known);
    both = unknown;
    allowance_tighten(&both, &known);
    expect(allowance_equal(&both, &unknown));
}

/* The same for totals of users and groups; and grants must be in range. */
static void total(const struct config *config)
{
    struct allowance known, unknown, both;
    config_rules_total(config->users, config->user_count, CONFIG_ID_UNKNOWN, &unknown);
    config_rules_total(config->users, config->user_count, 1000, &known);
    check_limits(&known);
    both = unknown;
    allowance_tighten(&both, &known);
    expect(allowance_equal(&both, &unknown));
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
    struct error why = {0};
    uint32_t error = config_parse(&config, "f", (const char *)data, bytes, &why);
    if (error) {
        /* "f:LINE: reason" */
        char *end;
        expect(!config && !strncmp(why.text, "f:", 2) && strtoul(why.text + 2, &end, 10) >= 1);
        expect(!strncmp(end, ": ", 2) && end[2]);
        return 0;
    }
    const struct schedule unsaid = schedule_default();
    if (config_resolve(config, &unsaid, uuids, 2, &why) == 0) {
        choose(config, 0);
        choose(config, 1);
        total(config);
        schedules(config);
    }
    config_free(config);
    return 0;
}
