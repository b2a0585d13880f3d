/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_environment: the environment of a process that calls the driver for all clients.
 *
 * CUDA reads variables that would change the driver below every client. A worker therefore gets no
 * CUDA_ variable but those of the cache, CUDA_MPS_PIPE_DIRECTORY that points nowhere, modules that
 * load eagerly, and 32 hardware queues. The checks for machines with a GPU use the same function,
 * so that they see the driver as a worker does. Source: CUDA C++ Programming Guide, "CUDA
 * Environment Variables"; ld.so(8).
 */
#ifndef GPUSHARE_COMMON_CUDA_DRIVER_ENVIRONMENT_H
#define GPUSHARE_COMMON_CUDA_DRIVER_ENVIRONMENT_H

/*
 * A scrubbed copy of an environment, which the caller frees with one free(). Its strings are the
 * original's. environment: ends with NULL. visible: one more variable, which must outlive the copy,
 * or NULL. Returns NULL without memory. Any thread that nobody changes `environment` beside.
 */
char **driver_environment_copy(char *const environment[], const char *visible);

#endif
