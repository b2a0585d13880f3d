/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_context: CUDA's contexts. All contexts of a device share its objects. A thread has a stack
 * of current ones. Any thread.
 *
 * A context object is never freed, so that a handle of a destroyed one is recognised.
 */
#ifndef GPUSHARE_COMMON_CUDA_FRONT_DRIVER_CONTEXT_H
#define GPUSHARE_COMMON_CUDA_FRONT_DRIVER_CONTEXT_H

#include "common/cuda/cuda_driver.h"
#include "common/cuda/front/front.h"
#include "common/list.h"

struct cuda_context_object {
    struct list_link link; /* of the created ones that are alive */
    cuda_device device;
    unsigned long long id; /* unique in the process */
    _Atomic unsigned flags;
    _Atomic unsigned users; /* of cuCtxAttach, and its maker */
    atomic_bool alive;
};

/* A context, or a library, begins and ends to stand on a device, which is one of the process. The
 * first enters the device, and the last leaves it; a thread that enters waits until another one has
 * left. A function of the program that runs in a stream's order gets CUDA_ERR_NOT_PERMITTED. */
cuda_result driver_context_enter(cuda_device device);
void driver_context_leave(cuda_device device);

/* The device's primary context. It is alive while it is retained. */
cuda_result driver_context_primary(cuda_device device, cuda_context *context);
cuda_result driver_context_retain(cuda_context primary);
/* all: whoever retained it. Returns CUDA_ERR_INVALID_CONTEXT if nobody has. */
cuda_result driver_context_release(cuda_context primary, bool all);

/* The context to name as the maker of an object: the thread's current one, if it is of the device;
 * else the primary one while that is alive; else the oldest created one; else the primary one. */
cuda_result driver_context_of_object(cuda_device device, cuda_context *context);

cuda_result driver_context_create(cuda_device device, unsigned flags, cuda_context *context);
cuda_result driver_context_destroy(cuda_context context);

/* The thread's current context gets or loses a user; the last one's leaving destroys it. Primary
 * contexts are counted by whoever retains them. */
cuda_result driver_context_attach(cuda_context *context);
cuda_result driver_context_detach(cuda_context context);

/* The thread's stack. The top is NULL if it is empty. */
cuda_result driver_context_push(cuda_context context);
cuda_result driver_context_pop(cuda_context *context);
cuda_result driver_context_set(cuda_context context);
cuda_context driver_context_top(void);

/* Gives the context of a handle: NULL stands for the thread's current one. */
cuda_result driver_context_check(cuda_context handle, cuda_context *context);

#endif
