/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Every aarch64 processor has the vectors that exec_values.c and exec_lanes.c are compiled for. */
#include "server/softgpu/exec/exec.h"

const struct exec_lanes *exec_lanes_of(void)
{
    return &exec_lanes_v1;
}

exec_value *exec_value_of(enum value_id id)
{
    return exec_values_v1[id];
}
