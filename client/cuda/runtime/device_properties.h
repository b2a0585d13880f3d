/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_properties: what a device is, in cudaDeviceProp of CUDA 12 and of CUDA 13. The two differ
 * in members, so in most offsets.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_DEVICE_PROPERTIES_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_DEVICE_PROPERTIES_H

#include "client/cuda/runtime/base/runtime_abi.h"

/*
 * The members in their order. M is in both layouts, M12 and M13 in one.
 * M(type, name, count, attribute): count members of a type, which are the driver's attribute and
 * the ones behind it; 0 as attribute: filled otherwise.
 */
#define DEVICE_PROPERTIES(M, M12, M13)                                                             \
    M(char, name, 256, 0)                                                                          \
    M(char, uuid, 16, 0)                                                                           \
    M(char, luid, 8, 0)                                                                            \
    M(unsigned, luid_device_node_mask, 1, 0)                                                       \
    M(size_t, total_global_memory, 1, 0)                                                           \
    M(size_t, shared_per_block, 1, 8)                                                              \
    M(int, registers_per_block, 1, 12)                                                             \
    M(int, warp_size, 1, 10)                                                                       \
    M(size_t, memory_pitch, 1, 11)                                                                 \
    M(int, max_threads_per_block, 1, 1)                                                            \
    M(int, max_threads_dim, 3, 2)                                                                  \
    M(int, max_grid_size, 3, 5)                                                                    \
    M12(int, clock_rate, 1, 13)                                                                    \
    M(size_t, total_constant_memory, 1, 9)                                                         \
    M(int, major, 1, 75)                                                                           \
    M(int, minor, 1, 76)                                                                           \
    M(size_t, texture_alignment, 1, 14)                                                            \
    M(size_t, texture_pitch_alignment, 1, 51)                                                      \
    M12(int, device_overlap, 1, 15)                                                                \
    M(int, multiprocessor_count, 1, 16)                                                            \
    M12(int, kernel_exec_timeout, 1, 17)                                                           \
    M(int, integrated, 1, 18)                                                                      \
    M(int, can_map_host_memory, 1, 19)                                                             \
    M12(int, compute_mode, 1, 20)                                                                  \
    M(int, max_texture_1d, 1, 21)                                                                  \
    M(int, max_texture_1d_mipmap, 1, 77)                                                           \
    M12(int, max_texture_1d_linear, 1, 69)                                                         \
    M(int, max_texture_2d, 2, 22)                                                                  \
    M(int, max_texture_2d_mipmap, 2, 73)                                                           \
    M(int, max_texture_2d_linear, 3, 70)                                                           \
    M(int, max_texture_2d_gather, 2, 45)                                                           \
    M(int, max_texture_3d, 3, 24)                                                                  \
    M(int, max_texture_3d_alt, 3, 47)                                                              \
    M(int, max_texture_cubemap, 1, 52)                                                             \
    M(int, max_texture_1d_layered, 2, 42)                                                          \
    M(int, max_texture_2d_layered, 3, 27)                                                          \
    M(int, max_texture_cubemap_layered, 2, 53)                                                     \
    M(int, max_surface_1d, 1, 55)                                                                  \
    M(int, max_surface_2d, 2, 56)                                                                  \
    M(int, max_surface_3d, 3, 58)                                                                  \
    M(int, max_surface_1d_layered, 2, 61)                                                          \
    M(int, max_surface_2d_layered, 3, 63)                                                          \
    M(int, max_surface_cubemap, 1, 66)                                                             \
    M(int, max_surface_cubemap_layered, 2, 67)                                                     \
    M(size_t, surface_alignment, 1, 30)                                                            \
    M(int, concurrent_kernels, 1, 31)                                                              \
    M(int, ecc_enabled, 1, 32)                                                                     \
    M(int, pci_bus_id, 1, 33)                                                                      \
    M(int, pci_device_id, 1, 34)                                                                   \
    M(int, pci_domain_id, 1, 50)                                                                   \
    M(int, tcc_driver, 1, 35)                                                                      \
    M(int, async_engine_count, 1, 40)                                                              \
    M(int, unified_addressing, 1, 41)                                                              \
    M12(int, memory_clock_rate, 1, 36)                                                             \
    M(int, memory_bus_width, 1, 37)                                                                \
    M(int, l2_cache_size, 1, 38)                                                                   \
    M(int, persisting_l2_max, 1, 108)                                                              \
    M(int, max_threads_per_multiprocessor, 1, 39)                                                  \
    M(int, stream_priorities, 1, 78)                                                               \
    M(int, global_l1_cache, 1, 79)                                                                 \
    M(int, local_l1_cache, 1, 80)                                                                  \
    M(size_t, shared_per_multiprocessor, 1, 81)                                                    \
    M(int, registers_per_multiprocessor, 1, 82)                                                    \
    M(int, managed_memory, 1, 83)                                                                  \
    M(int, is_multi_gpu_board, 1, 84)                                                              \
    M(int, multi_gpu_board_group, 1, 85)                                                           \
    M(int, host_native_atomics, 1, 86)                                                             \
    M12(int, single_to_double_ratio, 1, 87)                                                        \
    M(int, pageable_memory_access, 1, 88)                                                          \
    M(int, concurrent_managed_access, 1, 89)                                                       \
    M(int, compute_preemption, 1, 90)                                                              \
    M(int, host_pointer_for_registered, 1, 91)                                                     \
    M(int, cooperative_launch, 1, 95)                                                              \
    M12(int, cooperative_multi_device_launch, 1, 96)                                               \
    M(size_t, shared_per_block_optin, 1, 97)                                                       \
    M(int, pageable_uses_host_tables, 1, 100)                                                      \
    M(int, direct_managed_access_from_host, 1, 101)                                                \
    M(int, max_blocks_per_multiprocessor, 1, 106)                                                  \
    M(int, access_policy_max_window, 1, 109)                                                       \
    M(size_t, reserved_shared_per_block, 1, 111)                                                   \
    M(int, host_register, 1, 99)                                                                   \
    M(int, sparse_arrays, 1, 112)                                                                  \
    M(int, host_register_read_only, 1, 113)                                                        \
    M(int, timeline_semaphores, 1, 114)                                                            \
    M(int, memory_pools, 1, 115)                                                                   \
    M(int, gpu_direct_rdma, 1, 116)                                                                \
    M(unsigned, gpu_direct_rdma_flush_options, 1, 117)                                             \
    M(int, gpu_direct_rdma_ordering, 1, 118)                                                       \
    M(unsigned, memory_pool_handle_types, 1, 119)                                                  \
    M(int, deferred_mapping, 1, 121)                                                               \
    M(int, ipc_event, 1, 125)                                                                      \
    M(int, cluster_launch, 1, 120)                                                                 \
    M(int, unified_function_pointers, 1, 129)                                                      \
    M12(int, reserved, 63, 0)                                                                      \
    M13(int, device_numa_config, 1, 130)                                                           \
    M13(int, device_numa_id, 1, 131)                                                               \
    M13(int, mps_enabled, 1, 133)                                                                  \
    M13(int, host_numa_id, 1, 134)                                                                 \
    M13(unsigned, gpu_pci_device_id, 1, 139)                                                       \
    M13(unsigned, gpu_pci_subsystem_id, 1, 140)                                                    \
    M13(int, host_numa_multinode_ipc, 1, 143)                                                      \
    M13(int, reserved, 56, 0)

#define MEMBER(type, name, count, attribute) type name[count];
#define NO_MEMBER(type, name, count, attribute)
struct device_properties_12 {
    DEVICE_PROPERTIES(MEMBER, MEMBER, NO_MEMBER)
};
struct device_properties_13 {
    DEVICE_PROPERTIES(MEMBER, NO_MEMBER, MEMBER)
};
#undef MEMBER
#undef NO_MEMBER

/* An attribute that the driver does not know is 0. Returns 0, CUDART_INVALID_VALUE,
 * CUDART_INVALID_DEVICE, or why there is no driver. */
cudart_error device_properties_12(struct device_properties_12 *properties, int ordinal);
cudart_error device_properties_13(struct device_properties_13 *properties, int ordinal);

#endif
