/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* exec_lanes.c for x86-64-v3; make/programs.mk has the flags. */
#define EXEC_LANES exec_lanes_v3
#include "server/softgpu/value/exec_lanes.c" /* NOLINT(bugprone-suspicious-include) */
