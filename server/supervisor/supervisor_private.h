/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor_private: what the rooms of the supervisor share: the one object that
 * holds all others.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define GPUSHARE_SERVER_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "common/channel.h"
#include "server/supervisor/address_plan.h"
#include "server/supervisor/device.h"
#include "server/supervisor/discovery.h"
#include "server/supervisor/image.h"
#include "server/supervisor/keeper.h"
#include "server/supervisor/quota.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/total.h"
#include "server/supervisor/total_setting.h"

struct session;
struct reload;

struct supervisor {
    uv_loop_t *loop;
    const struct settings *settings;
    struct supervisor_events events;
    struct device devices[SETTINGS_DEVICES_MAX];
    uint32_t device_count;
    struct session *first, *last; /* by number */
    uint32_t sessions;
    uint32_t surplus; /* of them: only kept until they are refused at hello */
    uint32_t next_number;
    struct session *due, *due_last; /* marked to end: looked at in the loop's turn */
    uv_prepare_t before_wait;       /* the loop's turn */
    uv_check_t after_wait;
    uint8_t uuids[SETTINGS_DEVICES_MAX][LIMITS_UUID_BYTES];
    struct config *config; /* in force; NULL: none */
    struct reload *reload; /* under way; NULL: none */
    struct keeper_budget budget;
    uint32_t user_clients_max; /* clients of one uid */
    struct address_plan plan;
    struct quota host;    /* pinned host memory, bytes */
    struct quota fds;     /* descriptors for handles and buffers */
    struct quota images;  /* bytes of module images */
    struct totals totals; /* of users and groups */
    struct total_settings total_settings;
    struct image_cache cache;
    bool ready, stopping, stopped;
    uint64_t started_at;
    uint64_t served, refused; /* clients that attached; connections turned away */
    /* Every client's messages arrive here, one at a time; a copy, whole while it is handled. */
    struct channel_message message;
};

/* supervisor_start without the workers: tests adopt fake ones. */
int supervisor_add_devices(struct supervisor *supervisor, const struct discovery *discovery,
                           char *text, size_t text_bytes);

#endif
