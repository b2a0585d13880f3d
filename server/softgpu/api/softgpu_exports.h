/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * softgpu_exports: the functions that the software GPU carries beside those of driver_exports.h,
 * because the worker needs them. Rows are as there.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_API_SOFTGPU_EXPORTS_H
#define GPUSHARE_SERVER_SOFTGPU_API_SOFTGPU_EXPORTS_H

/* clang-format off */
#define SOFTGPU_EXPORTS(E) \
    /* virtual memory */ \
    E(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020, (size_t *bytes, const cuda_mem_allocation_prop *prop, cuda_mem_granularity option)) \
    E(cuMemAddressReserve, cuMemAddressReserve, 10020, (cuda_device_ptr *ptr, size_t size, size_t alignment, cuda_device_ptr hint, unsigned long long flags)) \
    E(cuMemAddressFree, cuMemAddressFree, 10020, (cuda_device_ptr ptr, size_t size)) \
    E(cuMemCreate, cuMemCreate, 10020, (cuda_mem_handle *handle, size_t size, const cuda_mem_allocation_prop *prop, unsigned long long flags)) \
    E(cuMemRelease, cuMemRelease, 10020, (cuda_mem_handle handle)) \
    E(cuMemMap, cuMemMap, 10020, (cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle, unsigned long long flags)) \
    E(cuMemUnmap, cuMemUnmap, 10020, (cuda_device_ptr ptr, size_t size)) \
    E(cuMemSetAccess, cuMemSetAccess, 10020, (cuda_device_ptr ptr, size_t size, const cuda_mem_access_desc *desc, size_t count)) \
    E(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, (void *shareable, cuda_mem_handle handle, cuda_mem_handle_type type, unsigned long long flags)) \
    E(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, (cuda_mem_handle *handle, void *os_handle, cuda_mem_handle_type type)) \
    /* green contexts */ \
    E(cuDeviceGetDevResource, cuDeviceGetDevResource, 12040, (cuda_device device, cuda_dev_resource *resource, cuda_resource_type type)) \
    E(cuDevSmResourceSplitByCount, cuDevSmResourceSplitByCount, 12040, (cuda_dev_resource *result, unsigned *groups, const cuda_dev_resource *input, cuda_dev_resource *remaining, unsigned flags, unsigned min_count)) \
    E(cuDevResourceGenerateDesc, cuDevResourceGenerateDesc, 12040, (cuda_resource_desc *desc, cuda_dev_resource *resources, unsigned count)) \
    E(cuGreenCtxCreate, cuGreenCtxCreate, 12040, (cuda_green_ctx *green, cuda_resource_desc desc, cuda_device device, unsigned flags)) \
    E(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040, (cuda_green_ctx green)) \
    E(cuGreenCtxStreamCreate, cuGreenCtxStreamCreate, 12050, (cuda_stream *stream, cuda_green_ctx green, unsigned flags, int priority)) \
    E(cuGreenCtxGetDevResource, cuGreenCtxGetDevResource, 12040, (cuda_green_ctx green, cuda_dev_resource *resource, cuda_resource_type type))
/* clang-format on */

#define E(name, symbol, version, params) API cuda_result symbol params;
SOFTGPU_EXPORTS(E)
#undef E

#endif
