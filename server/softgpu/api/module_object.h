/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module_object: what the handles of modules and functions point to. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_API_MODULE_OBJECT_H
#define GPUSHARE_SERVER_SOFTGPU_API_MODULE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/list.h"
#include "server/softgpu/device/device.h"
#include "server/softgpu/exec/description.h"

/* The code of a module. It lives as long as the module is loaded or a launch of it is in flight. */
struct code {
    atomic_uint refs;
    struct module *module;
};

struct cuda_function_object {
    unsigned magic;
    struct queue_link link; /* of its module, or in the store */
    struct cuda_module_object *module;
    uint32_t index; /* in the module */
    struct function_info info;
    struct function *function; /* once the module has code */
    atomic_int max_dynamic_shared;
    atomic_int carveout;
    void *note; /* the front's */
};

struct cuda_module_object {
    unsigned magic;
    bool standing;           /* on its device, without a context: a library's */
    struct queue_link link;  /* in the store */
    struct list_link loaded; /* once it is loaded whole */
    struct device *device;
    struct code *_Atomic code; /* NULL of a linked image whose code nobody has needed */
    char *text;                /* its PTX until then, of so many bytes */
    size_t length;
    struct description *description;
    cuda_device_ptr globals, constants;
    struct queue functions; /* in the order of the module */
    unsigned function_count;
};

/* A load. standing: the module is a library's, whose calls need no current context. */
struct module_request {
    const void *image;
    bool standing;
    unsigned count; /* of options */
    cuda_jit_option *options;
    void **values;
};

/* Loads a module onto the device. */
cuda_result module_object_load(struct device *device, const struct module_request *request,
                               cuda_module *module);

/* Whether the handle may be used now, by this thread. */
cuda_result module_object_check_function(cuda_function function);

/* The dynamic shared memory that a launch may ask for. */
uint32_t module_object_dynamic_limit(const struct cuda_function_object *function);

#endif
