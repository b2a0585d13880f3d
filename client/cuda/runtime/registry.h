/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * registry: the images, kernels and variables that a program's start-up code registers, found by
 * their addresses in the program. An image is loaded when one of its kernels or variables is first
 * used in a context, so registering makes no driver call. Different images may be loaded at the
 * same time; a thread that needs one which is being loaded waits for it. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_REGISTRY_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_REGISTRY_H

#include <stdbool.h>

#include "client/cuda/runtime/base/runtime_abi.h"

struct registry_image;

/* Registers an image; wrapper is what nvcc puts around a fatbin, and stays the caller's. NULL
 * without memory. */
struct registry_image *registry_image_add(const void *wrapper);

/* Unloads the image wherever it was loaded, and forgets its kernels and variables. NULL is
 * allowed. */
void registry_image_remove(struct registry_image *image);

/* Registers a kernel or variable of the image: the address in the program, and the name in the
 * image. The name is copied. An address that can't be registered for lack of memory is lost. */
void registry_function_add(struct registry_image *image, const void *host, const char *name);
void registry_variable_add(struct registry_image *image, const void *host, const char *name);

/* Registers a managed variable: the place in the program of the pointer to it, which is set when
 * the image is loaded first, in whichever context, and again after a reset. */
void registry_managed_add(struct registry_image *image, void **pointer, const char *name);

/* Whether the image has managed variables. */
bool registry_managed_any(const struct registry_image *image);

/* Loads the image in the context, which is current, so that the pointers are set. Returns 0, or why
 * it can't be loaded. */
cudart_error registry_managed_load(struct registry_image *image, cuda_context context);

/* Says that the address can't be registered for lack of memory. A use of it later
 * is CUDART_MEMORY_ALLOCATION. */
void registry_lose(const void *host);

/* Finds the kernel registered under an address, or that was lost; NULL if there is none. */
struct registry_function *registry_function_find(const void *host);

/* Gives the code of the kernel under an address, in one call. Returns false if it was not loaded in
 * this context yet, or if there is no such kernel. */
bool registry_function_known(const void *host, cuda_context context, cuda_function *loaded);

/* Gives the code of a kernel in the context, which is current. Returns 0,
 * CUDART_INVALID_DEVICE_FUNCTION if the image lacks it, CUDART_MEMORY_ALLOCATION, or why the image
 * can't be loaded. */
cudart_error registry_function_load(struct registry_function *function, cuda_context context,
                                    cuda_function *loaded);

/* Has the address of a driver's handle stand for a kernel too, in every context, so that a program
 * can launch what it has from a call. The handle is of a kernel that is registered; or of a
 * library, which need not be known before. Returns 0 or CUDART_MEMORY_ALLOCATION. */
cudart_error registry_function_handle(struct registry_function *function, cuda_function handle);
cudart_error registry_library_handle(cuda_library library, cuda_function handle);

/* Forgets the handles of a library. */
void registry_library_forget(cuda_library library);

/* The context is about to be reset: what was loaded in it goes with it, and is loaded again at the
 * next use. A launch at the same time is the program's mistake, as CUDA says of cudaDeviceReset. */
void registry_context_forget(cuda_context context);

/* Gives place and size of a variable in the context, which is current; host may be the address of a
 * managed variable itself. *size may be NULL. Returns
 * 0, CUDART_INVALID_SYMBOL, CUDART_MEMORY_ALLOCATION, or why the image can't be loaded. */
cudart_error registry_variable_place(const void *host, cuda_context context, cuda_device_ptr *place,
                                     size_t *size);

#endif
