/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/front/driver_context.h"

#include <pthread.h>
#include <stdlib.h>

/* Programs nest a handful. */
enum { STACK_MAX = 64 };

/*
 * A device, as contexts stand on it. The lock is held while the device is entered or left, so a
 * thread that enters it finds all of its last contexts' objects there, or none. To leave it waits
 * for functions of the program, which would wait for ever if they took the lock: front_check is
 * asked before.
 */
static struct {
    pthread_mutex_t lock;
    unsigned standing; /* contexts and libraries; under the lock */
    unsigned retained; /* how often the primary context is; under the lock */
} places[DEVICES_MAX] = {[0 ... DEVICES_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_mutex_t created_lock = PTHREAD_MUTEX_INITIALIZER; /* for a moment only */
static struct list created = LIST_INIT(created);
/* Under it, too: never freed, so that a handle of theirs is recognised. */
static struct list destroyed = LIST_INIT(destroyed);

static struct cuda_context_object primaries[DEVICES_MAX];
static _Atomic unsigned long long last_id;

static _Thread_local struct {
    cuda_context contexts[STACK_MAX];
    unsigned depth;
} stack;

/* ---- devices ---- */

/* The place's lock is held. */
static cuda_result enter(cuda_device device)
{
    if (places[device].standing == 0)
        DRIVER_TRY(front_enter(device));
    places[device].standing++;
    return CUDA_OK;
}

/* The place's lock is held. */
static void leave(cuda_device device)
{
    if (--places[device].standing == 0)
        front_leave(device);
}

cuda_result driver_context_enter(cuda_device device)
{
    DRIVER_TRY(front_check());
    pthread_mutex_lock(&places[device].lock);
    cuda_result result = enter(device);
    pthread_mutex_unlock(&places[device].lock);
    return result;
}

void driver_context_leave(cuda_device device)
{
    pthread_mutex_lock(&places[device].lock);
    leave(device);
    pthread_mutex_unlock(&places[device].lock);
}

/* ---- the objects ---- */

static cuda_result check_device(cuda_device device)
{
    const int count = front_device_count();
    if (count < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    return device >= 0 && device < count ? CUDA_OK : CUDA_ERR_INVALID_DEVICE;
}

cuda_result driver_context_primary(cuda_device device, cuda_context *context)
{
    DRIVER_TRY(check_device(device));
    *context = &primaries[device];
    pthread_mutex_lock(&created_lock);
    if (!(*context)->id) {
        (*context)->device = device;
        (*context)->id = atomic_fetch_add(&last_id, 1) + 1;
    }
    pthread_mutex_unlock(&created_lock);
    return CUDA_OK;
}

cuda_result driver_context_retain(cuda_context primary)
{
    DRIVER_TRY(front_check());
    unsigned *count = &places[primary->device].retained;
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&places[primary->device].lock);
    if (*count == 0)
        result = enter(primary->device);
    if (result == CUDA_OK) {
        (*count)++;
        atomic_store(&primary->alive, true);
    }
    pthread_mutex_unlock(&places[primary->device].lock);
    return result;
}

cuda_result driver_context_release(cuda_context primary, bool all)
{
    DRIVER_TRY(front_check());
    unsigned *count = &places[primary->device].retained;
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&places[primary->device].lock);
    if (*count == 0) {
        result = CUDA_ERR_INVALID_CONTEXT;
    } else {
        *count = all ? 0 : *count - 1;
        if (*count == 0) {
            atomic_store(&primary->alive, false);
            leave(primary->device);
        }
    }
    pthread_mutex_unlock(&places[primary->device].lock);
    return result;
}

cuda_result driver_context_of_object(cuda_device device, cuda_context *context)
{
    cuda_context top = driver_context_top(), each;
    if (top && top->device == device) {
        *context = top;
        return CUDA_OK;
    }
    DRIVER_TRY(driver_context_primary(device, context));
    pthread_mutex_lock(&created_lock);
    if (!atomic_load(&(*context)->alive))
        LIST_FOR_EACH (each, &created, link)
            if (each->device == device) {
                *context = each;
                break;
            }
    pthread_mutex_unlock(&created_lock);
    return CUDA_OK;
}

cuda_result driver_context_create(cuda_device device, unsigned flags, cuda_context *context)
{
    DRIVER_TRY(check_device(device));
    struct cuda_context_object *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = driver_context_enter(device);
    if (result == CUDA_OK) {
        made->device = device;
        made->id = atomic_fetch_add(&last_id, 1) + 1;
        atomic_store(&made->flags, flags);
        atomic_store(&made->users, 1);
        atomic_store(&made->alive, true);
        result = driver_context_push(made);
        if (result != CUDA_OK)
            driver_context_leave(device);
    }
    if (result != CUDA_OK) {
        free(made);
        return result;
    }
    pthread_mutex_lock(&created_lock);
    list_append(&created, &made->link);
    pthread_mutex_unlock(&created_lock);
    *context = made;
    return CUDA_OK;
}

static bool is_primary(cuda_context context)
{
    return context >= primaries && context < primaries + DEVICES_MAX;
}

cuda_result driver_context_destroy(cuda_context context)
{
    DRIVER_TRY(front_check());
    if (!context || is_primary(context))
        return CUDA_ERR_INVALID_CONTEXT;
    if (!atomic_exchange(&context->alive, false))
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    pthread_mutex_lock(&created_lock);
    list_remove(&context->link);
    list_append(&destroyed, &context->link);
    pthread_mutex_unlock(&created_lock);
    if (driver_context_top() == context)
        stack.depth--;
    driver_context_leave(context->device);
    return CUDA_OK;
}

cuda_result driver_context_attach(cuda_context *context)
{
    cuda_context top;
    DRIVER_TRY(driver_context_check(NULL, &top));
    if (is_primary(top))
        return CUDA_ERR_INVALID_CONTEXT;
    atomic_fetch_add(&top->users, 1);
    *context = top;
    return CUDA_OK;
}

cuda_result driver_context_detach(cuda_context context)
{
    if (!context || context != driver_context_top() || is_primary(context))
        return CUDA_ERR_INVALID_CONTEXT;
    DRIVER_TRY(driver_context_check(context, &context));
    return atomic_fetch_sub(&context->users, 1) > 1 ? CUDA_OK : driver_context_destroy(context);
}

/* ---- the thread's stack ---- */

cuda_result driver_context_push(cuda_context context)
{
    if (stack.depth == STACK_MAX)
        return CUDA_ERR_OUT_OF_MEMORY;
    stack.contexts[stack.depth++] = context;
    return CUDA_OK;
}

cuda_result driver_context_pop(cuda_context *context)
{
    if (stack.depth == 0)
        return CUDA_ERR_INVALID_CONTEXT;
    stack.depth--;
    if (context)
        *context = stack.contexts[stack.depth];
    return CUDA_OK;
}

cuda_result driver_context_set(cuda_context context)
{
    if (stack.depth)
        stack.depth--;
    return context ? driver_context_push(context) : CUDA_OK;
}

cuda_context driver_context_top(void)
{
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

cuda_result driver_context_check(cuda_context handle, cuda_context *context)
{
    DRIVER_TRY(front_check());
    *context = handle ? handle : driver_context_top();
    if (!*context)
        return CUDA_ERR_INVALID_CONTEXT;
    return atomic_load_explicit(&(*context)->alive, memory_order_relaxed)
               ? CUDA_OK
               : CUDA_ERR_CONTEXT_IS_DESTROYED;
}
