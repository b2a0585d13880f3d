/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * info: shows the device and the limits that a client with this environment would get: the limits
 * that its variables ask for, and the limits that the server grants. To learn these, it becomes a
 * client for a moment. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_INFO_H
#define GPUSHARE_CLIENT_TOOLS_INFO_H

#include <stdio.h>

#include <jansson.h>

#include "client/gpushare.h"
#include "client/tools/table.h"
#include "common/limits/limits.h"
#include "protocol.h"

struct info {
    struct limits_wish wish;
    uint32_t devices; /* number of visible devices */
    struct gpushare_device device;
    struct gpushare_limits limits;
    struct gpushare_load_wait wait;
    struct proto_owners owners; /* whose limits hold beside its own */
};

/*
 * Asks the server. info->wish has been filled. socket: NULL for the environment's or the default
 * one. warn: called with each warning of gpushare_connect; NULL for none. Returns GPUSHARE_SUCCESS,
 * or an error whose sentence is gpushare_error_text()'s.
 */
gpushare_error info_collect(struct info *info, const char *socket, uint32_t device,
                            gpushare_warn warn);

/* Prints it for people. */
void info_show(const struct info *info, FILE *out, struct table_look look);

/* Returns it as schemas/gpushare-info.schema.json describes. The caller owns it; NULL without
 * memory. */
json_t *info_json(const struct info *info);

#endif
