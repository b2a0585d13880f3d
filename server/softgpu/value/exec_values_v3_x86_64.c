/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* exec_values.c for x86-64-v3; make/programs.mk has the flags. */
#define EXEC_TABLE exec_values_v3
#include "server/softgpu/value/exec_values.c" /* NOLINT(bugprone-suspicious-include) */
