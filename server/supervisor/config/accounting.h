/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_accounting: the block `accounting`: where clients' use is written, and how often. Pure;
 * any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_ACCOUNTING_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_ACCOUNTING_H

#include "server/supervisor/config/reader.h"

/* A config_field_reader, into a struct config. */
uint32_t config_accounting_read(struct config_reader *reader, const struct config_node *value,
                                void *to);

#endif
