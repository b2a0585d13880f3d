/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/release.h"

#include "client/cuda/runtime/device_properties.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

__attribute__((constructor)) static void set_release(void)
{
    runtime_release = 12090;
}

cudart_error cudaGetDeviceProperties_v2(void *properties, int ordinal)
{
    return runtime_error_note(device_properties_12(properties, ordinal));
}
