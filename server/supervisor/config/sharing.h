/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_sharing: the block `sharing` of NVIDIA's device plugin for Kubernetes, as a
 * spelling of ours.
 *
 * mps: each of N replicas gets one N-th of every GPU's memory and threads. timeSlicing:
 * whoever has work gets the GPU in turn for as long as any other, without limits; that
 * is mode fair without requests, and the number of replicas bounds nothing. What
 * concerns Kubernetes alone is refused with the reason. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_SHARING_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_SHARING_H

#include "server/supervisor/config/reader.h"

/* to: the struct config. */
config_field_reader config_sharing_read;

#endif
