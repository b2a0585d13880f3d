/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Every aarch64 processor has the vectors that exec_values.c is compiled for. */
#include "server/softgpu/exec/exec.h"

exec_blend *exec_blend_of(void)
{
    return exec_blend_v1;
}

exec_value *exec_value_of(enum value_id id)
{
    return exec_values_v1[id];
}
