/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_sharing: the block `sharing` of NVIDIA's device plugin for Kubernetes, as another spelling
 * of our limits.
 *
 * mps: each of N replicas gets one N-th of every GPU's memory and threads. timeSlicing: clients
 * with work use the GPU in turn, each for as long as any other, without limits. That is mode fair
 * without requests, and the number of replicas bounds nothing. Keys that concern only Kubernetes
 * are refused with the reason. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_SHARING_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_SHARING_H

#include "server/supervisor/config/reader.h"

/* Reads the block into reader->config; `to` is not used. */
config_field_reader config_sharing_read;

#endif
