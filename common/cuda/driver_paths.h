/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* driver_paths: the places where distributions put NVIDIA's library; the first one that exists is
 * taken. */
#ifndef GPUSHARE_COMMON_CUDA_DRIVER_PATHS_H
#define GPUSHARE_COMMON_CUDA_DRIVER_PATHS_H

/* The initializer of an array of strings. */
#define DRIVER_PATHS                                                                               \
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",                           \
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1", "/usr/lib/libcuda.so.1",                        \
        "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"

#endif
