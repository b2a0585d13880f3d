/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A libcuda.so.1 in the way of gpushare's: its driver is of version 1. */
__attribute__((visibility("default"))) int cuInit(unsigned flags);
__attribute__((visibility("default"))) int cuDriverGetVersion(int *version);

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 1;
    return 0;
}
