/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A library that asks the driver for an undocumented table, as libraries with a static runtime do.
 */
#include "common/cuda/front/driver_exports.h"

API cuda_result asker_ask(const void **table, const cuda_uuid *id);
cuda_result asker_ask(const void **table, const cuda_uuid *id)
{
    /* The result is used after the call, so that the call is no jump: it would return to the
     * program. */
    volatile cuda_result result = cuGetExportTable(table, id);
    return result;
}
