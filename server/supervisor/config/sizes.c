/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/sizes.h"

#include <string.h>

#include "common/util.h"
#include "server/supervisor/config/config.h"

static void add_size(uint32_t *sizes, uint64_t size, uint64_t most)
{
    /* An unset value is above everything. */
    size = min(size, most);
    if (size == 0 || size >= PROTO_PERCENT_WHOLE)
        return;
    for (uint32_t i = 0; i < PROTO_PARTITION_SIZES_MAX; i++) {
        if (sizes[i] == size)
            return;
        if (sizes[i] == 0) {
            sizes[i] = (uint32_t)size;
            return;
        }
    }
}

void config_sizes_find(const struct config *config, uint32_t device, uint32_t *sizes)
{
    const struct allowance_range *ceiling = &config->ceilings[device].threads;
    uint64_t most = min(ceiling->limit, (uint64_t)PROTO_PERCENT_WHOLE);
    memset(sizes, 0, PROTO_PARTITION_SIZES_MAX * sizeof *sizes);
    add_size(sizes, ceiling->request, most);
    add_size(sizes, ceiling->limit, most);
    for (size_t i = 0; i < config->rule_count; i++) {
        add_size(sizes, config->rules[i].limits.threads.request, most);
        add_size(sizes, config->rules[i].limits.threads.limit, most);
    }
    for (size_t i = 0; i < config->profile_count; i++) {
        add_size(sizes, config->profiles[i].limits.threads.request, most);
        add_size(sizes, config->profiles[i].limits.threads.limit, most);
    }
}
