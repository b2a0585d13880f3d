/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The tables of exec_values.c and exec_lanes.c that an x86-64 processor uses, asked of itself. */
#include "server/softgpu/exec/exec.h"

static int vector_level(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 3;
    return 1;
}

const struct exec_lanes *exec_lanes_of(void)
{
    int level = vector_level();
    return level == 4 ? &exec_lanes_v4 : level == 3 ? &exec_lanes_v3 : &exec_lanes_v1;
}

exec_value *exec_value_of(enum value_id id)
{
    int level = vector_level();
    return (level == 4 ? exec_values_v4 : level == 3 ? exec_values_v3 : exec_values_v1)[id];
}
