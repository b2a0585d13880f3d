/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A launch must not take a lock. So kernels are found in a table of lists, and what a kernel became
 * in each context is a list too, and all of them are read without one. They only grow: a kernel
 * whose image is gone keeps its place, without an address, until another one of its bucket needs
 * it, for a thread may be reading past it.
 */
#include "client/cuda/runtime/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_image.h"
#include "common/list.h"
#include "common/log.h"
#include "common/messages.h"

/* A kernel in one context. */
struct code {
    _Atomic(cuda_context) context; /* NULL: of a context that was reset */
    cuda_function function;
    struct code *next;
};

/* An image in one context. */
struct load {
    cuda_context context;
    cuda_module module;
    bool loading; /* a thread is in the driver for it, and has given up the lock */
    struct load *next;
};

struct registry_function {
    struct registry_image *image;
    _Atomic(const void *) host; /* NULL: unused */
    cuda_function handle;       /* whose address host is; NULL: registered */
    char *name;
    _Atomic(struct code *) codes;
    struct registry_function *in_bucket; /* set before a thread can find it */
    struct registry_function *next;      /* of the image */
};

struct variable {
    const void *host;
    void **managed; /* the program's pointer to it, whose place is host; NULL: it is not managed */
    char *name;
    struct variable *next;
};

/* Loads, kernels and variables leave with the image alone, so their lists are singly linked. */
struct registry_image {
    const void *wrapper; /* NULL: a library, which the driver has */
    cuda_library library;
    struct load *loads;
    unsigned users; /* threads that load it, or wait until another one has */
    bool loaded;    /* at some time */
    struct registry_function *functions;
    struct variable *variables;
    struct list_link in_images;
};

/* Not held while the driver loads a module, which may be compiled for a minute: other images are
 * loaded meanwhile, and what needs this one waits for the signal. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t load_ended = PTHREAD_COND_INITIALIZER;
static struct list images = LIST_INIT(images);

/* A large program registers some thousand kernels. */
enum { BUCKETS = 4096 };
static _Atomic(struct registry_function *) buckets[BUCKETS];

/* Whether an address of the bucket could not be registered for lack of memory. An address that is
 * found nowhere is then taken for such a one; its kernel is this one. */
static atomic_bool lost[BUCKETS];
static struct registry_function lost_function;

/* ---- registering ---------------------------------------------------------------------- */

struct registry_image *registry_image_add(const void *wrapper)
{
    struct registry_image *image = calloc(1, sizeof(*image));

    if (!image)
        return NULL;
    image->wrapper = wrapper;
    pthread_mutex_lock(&lock);
    list_prepend(&images, &image->in_images);
    pthread_mutex_unlock(&lock);
    return image;
}

/* Host addresses of kernels are some dozen bytes apart. */
static size_t bucket_number(const void *host)
{
    return ((uintptr_t)host >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 52;
}

static _Atomic(struct registry_function *) *bucket_of(const void *host)
{
    return &buckets[bucket_number(host)];
}

void registry_lose(const void *host)
{
    atomic_store_explicit(&lost[bucket_number(host)], true, memory_order_relaxed);
}

static bool is_lost(const void *host)
{
    return atomic_load_explicit(&lost[bucket_number(host)], memory_order_relaxed);
}

static struct registry_function *find_in(_Atomic(struct registry_function *) *bucket,
                                         const void *host)
{
    struct registry_function *function = atomic_load_explicit(bucket, memory_order_acquire);

    while (function && atomic_load_explicit(&function->host, memory_order_acquire) != host)
        function = function->in_bucket;
    return function;
}

/* The lock is held. An unused place, or a new one at the head of the bucket. */
static struct registry_function *take_place(_Atomic(struct registry_function *) *bucket)
{
    struct registry_function *function = find_in(bucket, NULL);

    if (function)
        return function;
    function = calloc(1, sizeof(*function));
    if (!function)
        return NULL;
    function->in_bucket = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, function, memory_order_release);
    return function;
}

void registry_function_add(struct registry_image *image, const void *host, const char *name)
{
    char *copy = strdup(name);
    struct registry_function *function;

    pthread_mutex_lock(&lock);
    function = copy ? take_place(bucket_of(host)) : NULL;
    if (function) {
        function->image = image;
        function->name = copy;
        function->next = image->functions;
        image->functions = function;
        atomic_store_explicit(&function->host, host, memory_order_release);
    } else {
        free(copy);
        registry_lose(host);
    }
    pthread_mutex_unlock(&lock);
}

static void add_variable(struct registry_image *image, const void *host, void **managed,
                         const char *name)
{
    struct variable *variable = calloc(1, sizeof(*variable));

    if (variable)
        variable->name = strdup(name);
    if (!variable || !variable->name) {
        free(variable);
        registry_lose(host);
        return;
    }
    variable->host = host;
    variable->managed = managed;
    pthread_mutex_lock(&lock);
    variable->next = image->variables;
    image->variables = variable;
    pthread_mutex_unlock(&lock);
}

void registry_variable_add(struct registry_image *image, const void *host, const char *name)
{
    add_variable(image, host, NULL, name);
}

void registry_managed_add(struct registry_image *image, void **pointer, const char *name)
{
    add_variable(image, (const void *)pointer, pointer, name);
}

/* The program ends, and its images with it: a kernel that does not end must not keep it. nvcc's
 * handler that unregisters an image was registered with the image, and so comes after this one,
 * which is registered when an image is loaded first. */
static atomic_bool exiting;

static void begin_exit(void)
{
    atomic_store(&exiting, true);
}

/* A library may be unloaded while kernels of it run. Not every driver waits for them by itself
 * before it takes their variables away. */
static void unload(struct load *loads)
{
    cuda_context before = NULL;

    if (!loads)
        return;
    (void)DRIVER(cuCtxGetCurrent, &before);
    while (loads) {
        struct load *load = loads;

        loads = load->next;
        if (!atomic_load(&exiting) && DRIVER(cuCtxSetCurrent, load->context) == CUDART_OK) {
            (void)DRIVER(cuCtxSynchronize);
            (void)DRIVER(cuModuleUnload, load->module);
        }
        free(load);
    }
    (void)DRIVER(cuCtxSetCurrent, before);
}

/* The lock is held. */
static void give_up(struct registry_function *function)
{
    struct code *code = atomic_load_explicit(&function->codes, memory_order_relaxed);

    atomic_store_explicit(&function->codes, NULL, memory_order_relaxed);
    while (code) {
        struct code *next = code->next;

        free(code);
        code = next;
    }
    free(function->name);
    function->name = NULL;
    function->handle = NULL;
    atomic_store_explicit(&function->host, NULL, memory_order_release);
}

/* The lock is held. */
static void give_up_functions(struct registry_function *functions)
{
    while (functions) {
        struct registry_function *function = functions;

        functions = function->next;
        give_up(function);
    }
}

/* The lock is held. The handles go, and the registered kernels stay. */
static void give_up_handles(struct registry_image *image)
{
    for (struct registry_function **at = &image->functions; *at;) {
        struct registry_function *function = *at;

        if (!function->handle) {
            at = &function->next;
            continue;
        }
        *at = function->next;
        give_up(function);
    }
}

static void free_variables(struct variable *variables)
{
    while (variables) {
        struct variable *variable = variables;

        variables = variable->next;
        free(variable->name);
        free(variable);
    }
}

void registry_image_remove(struct registry_image *image)
{
    if (!image)
        return;
    pthread_mutex_lock(&lock);
    while (image->users)
        pthread_cond_wait(&load_ended, &lock);
    list_remove(&image->in_images);
    give_up_functions(image->functions);
    pthread_mutex_unlock(&lock);
    unload(image->loads);
    free_variables(image->variables);
    free(image);
}

/* ---- handles ---- */

/* The lock is held. */
static cudart_error add_handle(struct registry_image *image, cuda_function handle)
{
    _Atomic(struct registry_function *) *bucket = bucket_of(handle);
    struct registry_function *function = find_in(bucket, handle);

    if (function)
        return CUDART_OK;
    function = take_place(bucket);
    if (!function)
        return CUDART_MEMORY_ALLOCATION;
    function->image = image;
    function->handle = handle;
    function->next = image->functions;
    image->functions = function;
    atomic_store_explicit(&function->host, handle, memory_order_release);
    return CUDART_OK;
}

cudart_error registry_function_handle(struct registry_function *function, cuda_function handle)
{
    cudart_error error;

    pthread_mutex_lock(&lock);
    error = add_handle(function->image, handle);
    pthread_mutex_unlock(&lock);
    return error;
}

/* The lock is held. */
static struct registry_image *find_library(cuda_library library)
{
    struct registry_image *image;

    LIST_FOR_EACH (image, &images, in_images)
        if (!image->wrapper && image->library == library)
            return image;
    return NULL;
}

cudart_error registry_library_handle(cuda_library library, cuda_function handle)
{
    struct registry_image *image;
    cudart_error error = CUDART_MEMORY_ALLOCATION;

    pthread_mutex_lock(&lock);
    image = find_library(library);
    if (!image && (image = calloc(1, sizeof(*image)))) {
        image->library = library;
        list_prepend(&images, &image->in_images);
    }
    if (image)
        error = add_handle(image, handle);
    pthread_mutex_unlock(&lock);
    return error;
}

void registry_library_forget(cuda_library library)
{
    struct registry_image *image;

    pthread_mutex_lock(&lock);
    image = find_library(library);
    if (image) {
        list_remove(&image->in_images);
        give_up_functions(image->functions);
    }
    pthread_mutex_unlock(&lock);
    free(image);
}

/* ---- loading ---------------------------------------------------------------------------- */

/* The lock is held. */
static struct load *find_load(const struct registry_image *image, cuda_context context)
{
    struct load *load = image->loads;

    while (load && load->context != context)
        load = load->next;
    return load;
}

/* The lock is held. */
static void drop_load(struct registry_image *image, struct load *load)
{
    struct load **at = &image->loads;

    while (*at != load)
        at = &(*at)->next;
    *at = load->next;
    free(load);
}

/* The image's variables were registered before. A program that reads the pointer of a variable
 * which the host can't reach would end by a signal, without a word. */
static void place_managed(const struct registry_image *image, cuda_module module)
{
    for (const struct variable *variable = image->variables; variable; variable = variable->next) {
        cuda_device_ptr place = 0;
        size_t bytes;
        unsigned managed = 0;

        if (!variable->managed)
            continue;
        if (DRIVER(cuModuleGetGlobal, &place, &bytes, module, variable->name) != CUDART_OK ||
            DRIVER(cuPointerGetAttribute, &managed, CUDA_POINTER_IS_MANAGED, place) != CUDART_OK ||
            !managed)
            log_error(MESSAGE_TEXT(runtime_managed_unreachable), variable->name);
        else
            *variable->managed = (void *)(uintptr_t)place;
    }
}

/* Loads the image in the context, where it is not. The lock is held, but not in the driver. */
static cudart_error load_first(struct registry_image *image, cuda_context context,
                               cuda_module *module)
{
    struct load *load = calloc(1, sizeof(*load));
    const bool first = !image->loads;
    cudart_error error;

    if (!load)
        return CUDART_MEMORY_ALLOCATION;
    *load = (struct load){.context = context, .loading = true, .next = image->loads};
    image->loads = load;
    pthread_mutex_unlock(&lock);
    error = runtime_image_load(image->wrapper, module);
    if (error == CUDART_OK && first)
        place_managed(image, *module);
    pthread_mutex_lock(&lock);
    load->loading = false;
    if (error != CUDART_OK) {
        drop_load(image, load);
        return error;
    }
    load->module = *module;
    if (!image->loaded)
        (void)atexit(begin_exit);
    image->loaded = true;
    return CUDART_OK;
}

/* The image's module in the context. The lock is held at the beginning and at the end. An image is
 * loaded once: a second thread waits for the first. If that one fails, the second one tries, too,
 * so that each gets the driver's own reason. */
static cudart_error load_image(struct registry_image *image, cuda_context context,
                               cuda_module *module)
{
    struct load *load;
    cudart_error error = CUDART_OK;

    image->users++;
    while ((load = find_load(image, context)) && load->loading)
        pthread_cond_wait(&load_ended, &lock);
    if (load)
        *module = load->module;
    else
        error = load_first(image, context, module);
    image->users--;
    pthread_cond_broadcast(&load_ended);
    return error;
}

static struct code *find_code(struct registry_function *function, cuda_context context)
{
    struct code *code = atomic_load_explicit(&function->codes, memory_order_acquire);

    while (code && atomic_load_explicit(&code->context, memory_order_acquire) != context)
        code = code->next;
    return code;
}

/* The lock is held, but not while the image is loaded. */
static cudart_error make_code(struct registry_function *function, cuda_context context,
                              struct code **made)
{
    struct code *code;
    cuda_module module;
    cudart_error error = load_image(function->image, context, &module);

    if (error != CUDART_OK)
        return error;
    *made = find_code(function, context); /* another thread's, meanwhile */
    if (*made)
        return CUDART_OK;
    code = calloc(1, sizeof(*code));
    if (!code)
        return CUDART_MEMORY_ALLOCATION;
    atomic_init(&code->context, context);
    error = DRIVER(cuModuleGetFunction, &code->function, module, function->name);
    if (error != CUDART_OK) {
        free(code);
        return error == CUDA_ERR_NOT_FOUND ? CUDART_INVALID_DEVICE_FUNCTION : error;
    }
    code->next = atomic_load_explicit(&function->codes, memory_order_relaxed);
    atomic_store_explicit(&function->codes, code, memory_order_release);
    *made = code;
    return CUDART_OK;
}

static void forget_loads(struct registry_image *image, cuda_context context)
{
    for (struct load **at = &image->loads; *at;) {
        struct load *load = *at;

        if (load->context != context) {
            at = &load->next;
            continue;
        }
        *at = load->next;
        free(load);
    }
}

/* The lock is held. */
static bool is_loading_in(cuda_context context)
{
    struct registry_image *image;
    const struct load *load;

    LIST_FOR_EACH (image, &images, in_images)
        if ((load = find_load(image, context)) && load->loading)
            return true;
    return false;
}

bool registry_managed_any(const struct registry_image *image)
{
    const struct variable *variable;

    pthread_mutex_lock(&lock);
    variable = image->variables;
    while (variable && !variable->managed)
        variable = variable->next;
    pthread_mutex_unlock(&lock);
    return variable != NULL;
}

cudart_error registry_managed_load(struct registry_image *image, cuda_context context)
{
    cuda_module module;
    cudart_error error;

    pthread_mutex_lock(&lock);
    error = load_image(image, context, &module);
    pthread_mutex_unlock(&lock);
    return error;
}

void registry_context_forget(cuda_context context)
{
    struct registry_image *image;

    pthread_mutex_lock(&lock);
    while (is_loading_in(context))
        pthread_cond_wait(&load_ended, &lock);
    LIST_FOR_EACH (image, &images, in_images) {
        forget_loads(image, context);
        if (image->wrapper)
            give_up_handles(image);
        for (struct registry_function *each = image->functions; each; each = each->next) {
            struct code *code = find_code(each, context);

            /* It stays in its list, which other threads may be reading. */
            if (code)
                atomic_store_explicit(&code->context, NULL, memory_order_release);
        }
    }
    pthread_mutex_unlock(&lock);
}

struct registry_function *registry_function_find(const void *host)
{
    struct registry_function *function = host ? find_in(bucket_of(host), host) : NULL;

    return function || !host || !is_lost(host) ? function : &lost_function;
}

bool registry_function_known(const void *host, cuda_context context, cuda_function *loaded)
{
    struct registry_function *function = host ? find_in(bucket_of(host), host) : NULL;
    const struct code *code = function ? find_code(function, context) : NULL;

    if (code)
        *loaded = code->function;
    return code != NULL;
}

cudart_error registry_function_load(struct registry_function *function, cuda_context context,
                                    cuda_function *loaded)
{
    struct code *code = find_code(function, context);
    cudart_error error;

    if (function == &lost_function)
        return CUDART_MEMORY_ALLOCATION;
    if (function->handle) {
        *loaded = function->handle;
        return CUDART_OK;
    }
    if (code) {
        *loaded = code->function;
        return CUDART_OK;
    }
    /* Behind the lock the image may be removed, which waits for its load alone. */
    pthread_mutex_lock(&lock);
    error = make_code(function, context, &code);
    if (error == CUDART_OK)
        *loaded = code->function;
    pthread_mutex_unlock(&lock);
    return error;
}

/* The lock is held. */
static struct variable *find_variable(const void *host, struct registry_image **of)
{
    struct registry_image *image;

    LIST_FOR_EACH (image, &images, in_images)
        for (struct variable *variable = image->variables; variable; variable = variable->next)
            if (variable->host == host ||
                (host && variable->managed && *variable->managed == host)) {
                *of = image;
                return variable;
            }
    return NULL;
}

cudart_error registry_variable_place(const void *host, cuda_context context, cuda_device_ptr *place,
                                     size_t *size)
{
    struct registry_image *image;
    struct variable *variable;
    cuda_module module;
    size_t bytes;
    cudart_error error = is_lost(host) ? CUDART_MEMORY_ALLOCATION : CUDART_INVALID_SYMBOL;

    pthread_mutex_lock(&lock);
    variable = find_variable(host, &image);
    if (variable) {
        error = load_image(image, context, &module);
        if (error == CUDART_OK) {
            error = DRIVER(cuModuleGetGlobal, place, size ? size : &bytes, module, variable->name);
            if (error == CUDA_ERR_NOT_FOUND)
                error = CUDART_INVALID_SYMBOL;
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}
