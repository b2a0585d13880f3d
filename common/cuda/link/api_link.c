/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The linker. Each input that needs no other is compiled while it is added, so that its errors come
 * where programs look for them. One input alone may be of any kind that a module is loaded from;
 * several are joined as PTX, and compiled together.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/fatbin.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "common/cuda/jit_log.h"
#include "common/cuda/link/device_runtime.h"
#include "common/cuda/link/ptx_merge.h"
#include "common/list.h"
#include "common/log.h"
#include "common/messages.h"

enum { LIVING = 0x474c4e4b };

struct cuda_link_object {
    unsigned magic;
    struct queue_link link; /* among unused ones */
    cuda_device device;
    unsigned count; /* options, as the program gave them */
    cuda_jit_option *options;
    void **values; /* the program's own array, in which sizes are told */
    void **rooms;  /* the sizes that it held at first */
    struct ptx_merge *merge;
    /* Of the first input as long as it is the only one: its image, NULL while it needs another; and
     * the reason why it takes no other, NULL if it does. */
    char *image;
    size_t bytes;
    char *alone;
    bool complete;
};

/* For reuse: a stale handle meets magic 0, not freed memory. */
static struct queue unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

static struct cuda_link_object *link_take(void)
{
    pthread_mutex_lock(&unused_lock);
    struct cuda_link_object *link = QUEUE_TAKE(&unused, struct cuda_link_object, link);
    pthread_mutex_unlock(&unused_lock);
    return link ? link : malloc(sizeof *link);
}

static void link_drop(struct cuda_link_object *link)
{
    link->magic = 0;
    ptx_merge_destroy(link->merge);
    free(link->options);
    free(link->rooms);
    free(link->image);
    free(link->alone);
    pthread_mutex_lock(&unused_lock);
    queue_prepend(&unused, &link->link);
    pthread_mutex_unlock(&unused_lock);
}

static cuda_result find_link(cuda_link link)
{
    cuda_device device;
    DRIVER_TRY(cuCtxGetDevice(&device));
    return link && link->magic == LIVING ? CUDA_OK : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuLinkCreate_v2(unsigned count, cuda_jit_option *options, void **values,
                            cuda_link *handle)
{
    cuda_device device;
    DRIVER_TRY(cuCtxGetDevice(&device));
    if (!handle || (count && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    struct cuda_link_object *link = link_take();
    if (!link)
        return CUDA_ERR_OUT_OF_MEMORY;
    *link = (struct cuda_link_object){
        .magic = LIVING, .device = device, .count = count, .values = values};
    /* One more, for no options are no reason to get NULL. */
    link->options = calloc((size_t)count + 1, sizeof *options);
    link->rooms = calloc((size_t)count + 1, sizeof *values);
    link->merge = ptx_merge_create();
    if (!link->options || !link->rooms || !link->merge) {
        link_drop(link);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    for (unsigned i = 0; i < count; i++) {
        link->options[i] = options[i];
        link->rooms[i] = values[i];
    }
    *handle = link;
    return CUDA_OK;
}

/* Each call has the whole buffer, though the last one has told there how much of it was used. */
static void write_log(const struct cuda_link_object *link, const char *text)
{
    for (unsigned i = 0; i < link->count; i++)
        if (link->options[i] == CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
            link->options[i] == CUDA_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
            link->values[i] = link->rooms[i];
    jit_log_write(link->count, link->options, link->values, text);
}

/* ---- what an input is ---- */

struct input {
    const char *name;
    const char *data; /* with a zero byte behind it */
    size_t bytes;
    const char *text; /* its PTX; NULL: it has none, and `error` says so */
    size_t length;
    char *owned;  /* the text, where it had to be unpacked */
    bool whole;   /* it needs no other input */
    bool runtime; /* the device runtime, which is left out until something of it is missing */
    struct error error;
};

static cuda_result open_fatbin(struct input *input, cuda_device device)
{
    struct fatbin_entry entry;
    int major, minor;
    DRIVER_TRY(cuDeviceGetAttribute(&major, CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, device));
    DRIVER_TRY(cuDeviceGetAttribute(&minor, CUDA_ATTR_COMPUTE_CAPABILITY_MINOR, device));
    input->runtime = device_runtime_is_fatbin(input->data, input->bytes);
    if (input->runtime)
        return CUDA_OK;
    int found =
        fatbin_select_ptx(input->data, input->bytes, (uint32_t)(major * 10 + minor), &entry);
    int unpacked = found > 0 ? fatbin_payload(&entry, &input->owned, &input->length) : 0;
    if (found == 0)
        error_set(&input->error, CUDA_ERR_NO_BINARY_FOR_GPU, MESSAGE_TEXT(merge_fatbin_no_text),
                  input->name, major, minor);
    else if (unpacked == -ENOMEM)
        error_set(&input->error, CUDA_ERR_OUT_OF_MEMORY, MESSAGE_TEXT(merge_no_memory));
    else if (found < 0 || unpacked < 0)
        error_set(&input->error, CUDA_ERR_INVALID_IMAGE, MESSAGE_TEXT(merge_fatbin_damaged),
                  input->name);
    else
        input->text = input->owned;
    return CUDA_OK;
}

static bool begins_with(const struct input *input, const void *word, size_t bytes)
{
    return input->bytes >= bytes && memcmp(input->data, word, bytes) == 0;
}

/* By what it is, whatever the program calls it: what an earlier link made may be a text. */
static cuda_result open_input(struct input *input, cuda_device device)
{
    const uint32_t fatbin = FATBIN_MAGIC;
    if (begins_with(input, &fatbin, sizeof fatbin))
        return open_fatbin(input, device);
    if (begins_with(input, "\177ELF", 4)) {
        if (!front_link_text(input->data, input->bytes, &input->text, &input->length))
            error_set(&input->error, CUDA_ERR_NOT_SUPPORTED, MESSAGE_TEXT(merge_no_text),
                      input->name);
        return CUDA_OK;
    }
    input->text = input->data;
    input->length = strnlen(input->data, input->bytes);
    return CUDA_OK;
}

/* nvcc's struct around a fatbin has its address. */
static cuda_result copy_data(cuda_jit_input type, const void *data, size_t bytes, char **copy,
                             size_t *copied)
{
    const uint32_t wrapper = FATBIN_WRAPPER_MAGIC;
    if (type == CUDA_JIT_INPUT_FATBINARY && bytes >= 2 * sizeof wrapper + sizeof data &&
        memcmp(data, &wrapper, sizeof wrapper) == 0) {
        data = fatbin_unwrap(data);
        bytes = data ? fatbin_size(data) : 0;
        if (!bytes)
            return CUDA_ERR_INVALID_IMAGE;
    }
    *copied = bytes;
    *copy = malloc(bytes + 1);
    if (!*copy)
        return CUDA_ERR_OUT_OF_MEMORY;
    memcpy(*copy, data, bytes);
    (*copy)[bytes] = '\0';
    return CUDA_OK;
}

/* ---- adding ---- */

static bool is_first(const struct cuda_link_object *link)
{
    return !link->alone && ptx_merge_count(link->merge) == 0;
}

/* Compiles the input by itself. The first one's image is kept, for it may remain the only one. */
static cuda_result compile(struct cuda_link_object *link, struct input *input)
{
    char *image = NULL;
    size_t bytes;
    cuda_result result =
        front_link_make(link->device, input->data, input->bytes, &image, &bytes, &input->error);
    if (result == CUDA_OK && is_first(link)) {
        free(link->image);
        link->image = image;
        link->bytes = bytes;
    } else {
        free(image);
    }
    return result;
}

/* An input that is not understood here may be one that the device's compiler understands. */
static cuda_result add_alone(struct cuda_link_object *link, struct input *input)
{
    char *reason = NULL;
    if (asprintf(&reason, MESSAGE_TEXT(merge_alone), input->name, input->error.text) < 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = compile(link, input);
    if (result != CUDA_OK)
        free(reason);
    else
        link->alone = reason;
    return result;
}

static cuda_result add_text(struct cuda_link_object *link, struct input *input)
{
    cuda_result result = input->whole ? compile(link, input) : CUDA_OK;
    bool first = is_first(link);
    if (result != CUDA_OK) {
        ptx_merge_drop(link->merge);
        return result;
    }
    if (ptx_merge_accept(link->merge) < 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    if (!first) {
        free(link->image);
        link->image = NULL;
    }
    return CUDA_OK;
}

static cuda_result say(const struct input *input)
{
    log_sentence(LOG_LEVEL_ERROR, &input->error);
    return (cuda_result)input->error.number;
}

static cuda_result leave_out(struct cuda_link_object *link, const struct input *input)
{
    return ptx_merge_leave_out(link->merge, input->name) < 0 ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

static cuda_result add(struct cuda_link_object *link, struct input *input)
{
    if (link->alone) {
        error_set(&input->error, CUDA_ERR_NOT_SUPPORTED, "%s", link->alone);
        return say(input);
    }
    DRIVER_TRY(open_input(input, link->device));
    if (input->runtime)
        return leave_out(link, input);
    uint32_t error = input->error.number;
    if (!error)
        error =
            ptx_merge_offer(link->merge,
                            &(struct ptx_merge_input){
                                .text = input->text, .length = input->length, .name = input->name},
                            &input->whole, &input->error);
    if (!error)
        return add_text(link, input);
    return is_first(link) ? add_alone(link, input) : say(input);
}

/* Files with code of the host. */
static cuda_result add_objects(struct cuda_link_object *link, struct input *input, const void *data,
                               size_t bytes)
{
    if (device_runtime_is_library(data, bytes))
        return leave_out(link, input);
    error_set(&input->error, CUDA_ERR_NOT_SUPPORTED, MESSAGE_TEXT(merge_kind), input->name);
    return say(input);
}

static cuda_result add_data(struct cuda_link_object *link, cuda_jit_input type, const void *data,
                            size_t bytes, const char *name)
{
    char numbered[32];
    snprintf(numbered, sizeof numbered, "input %u", ptx_merge_count(link->merge) + 1);
    struct input input = {.name = name && *name ? name : numbered};
    char *copy = NULL;
    cuda_result result;
    if (type == CUDA_JIT_INPUT_OBJECT || type == CUDA_JIT_INPUT_LIBRARY) {
        result = add_objects(link, &input, data, bytes);
    } else if (type == CUDA_JIT_INPUT_NVVM) {
        error_set(&input.error, CUDA_ERR_NOT_SUPPORTED, MESSAGE_TEXT(merge_nvvm), input.name);
        result = say(&input);
    } else {
        result = copy_data(type, data, bytes, &copy, &input.bytes);
        input.data = copy;
        if (result == CUDA_OK)
            result = add(link, &input);
    }
    write_log(link, result == CUDA_OK ? "" : input.error.text);
    free(input.owned);
    free(copy);
    return result;
}

static cuda_result check_add(cuda_link link, cuda_jit_input type, const void *from)
{
    DRIVER_TRY(find_link(link));
    bool known = type == CUDA_JIT_INPUT_PTX || type == CUDA_JIT_INPUT_CUBIN ||
                 type == CUDA_JIT_INPUT_FATBINARY || type == CUDA_JIT_INPUT_OBJECT ||
                 type == CUDA_JIT_INPUT_LIBRARY || type == CUDA_JIT_INPUT_NVVM;
    return from && known && !link->complete ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

/* The options of one input advise the compiler, which takes no advice of one program. */
cuda_result cuLinkAddData_v2(cuda_link link, cuda_jit_input type, void *data, size_t size,
                             const char *name, unsigned count, cuda_jit_option *options,
                             void **values)
{
    DRIVER_TRY(check_add(link, type, data));
    if (!size || (count && (!options || !values)))
        return CUDA_ERR_INVALID_VALUE;
    return add_data(link, type, data, size, name);
}

/* Gives the whole file, a pipe too. */
static cuda_result read_file(const char *path, char **data, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    char part[4096];
    size_t got;
    if (!file)
        return CUDA_ERR_FILE_NOT_FOUND;
    FILE *copy = open_memstream(data, bytes);
    while (copy && (got = fread(part, 1, sizeof part, file)) > 0)
        (void)fwrite(part, 1, got, copy);
    bool whole = !ferror(file);
    (void)fclose(file);
    if (!copy || fclose(copy) != 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    if (!whole)
        return CUDA_ERR_FILE_NOT_FOUND;
    return *bytes ? CUDA_OK : CUDA_ERR_INVALID_IMAGE;
}

cuda_result cuLinkAddFile_v2(cuda_link link, cuda_jit_input type, const char *path, unsigned count,
                             cuda_jit_option *options, void **values)
{
    char *data = NULL;
    size_t bytes = 0;
    DRIVER_TRY(check_add(link, type, path));
    if (count && (!options || !values))
        return CUDA_ERR_INVALID_VALUE;
    cuda_result result = read_file(path, &data, &bytes);
    if (result == CUDA_OK)
        result = add_data(link, type, data, bytes, path);
    free(data);
    return result;
}

/* ---- the image ---- */

/* Programs have the device runtime among their inputs whether they need it or not. */
static cuda_result add_runtime(struct cuda_link_object *link, struct error *why)
{
    const struct ptx_merge_input input = {.text = device_runtime_text,
                                          .length = strlen(device_runtime_text),
                                          .name = "gpushare's device runtime"};
    bool whole;
    if (!ptx_merge_left_out(link->merge) || ptx_merge_whole(link->merge))
        return CUDA_OK;
    uint32_t error = ptx_merge_offer(link->merge, &input, &whole, why);
    if (!error && ptx_merge_accept(link->merge) < 0)
        error = error_set(why, CUDA_ERR_OUT_OF_MEMORY, MESSAGE_TEXT(merge_no_memory));
    return (cuda_result)error;
}

static cuda_result link_inputs(struct cuda_link_object *link)
{
    struct error error = {0};
    char *text = NULL;
    size_t length;
    cuda_result result = add_runtime(link, &error);
    if (result == CUDA_OK)
        result = (cuda_result)ptx_merge_finish(link->merge, &text, &length, &error);
    if (result != CUDA_OK)
        log_sentence(LOG_LEVEL_ERROR, &error);
    else
        result = front_link_make(link->device, text, length, &link->image, &link->bytes, &error);
    write_log(link, result == CUDA_OK ? "" : error.text);
    free(text);
    return result;
}

/* The image is the link's, and goes with it. */
cuda_result cuLinkComplete(cuda_link link, void **image, size_t *size)
{
    DRIVER_TRY(find_link(link));
    if (!image || is_first(link))
        return CUDA_ERR_INVALID_VALUE;
    if (!link->image)
        DRIVER_TRY(link_inputs(link));
    link->complete = true;
    *image = link->image;
    if (size)
        *size = link->bytes;
    return CUDA_OK;
}

cuda_result cuLinkDestroy(cuda_link link)
{
    DRIVER_TRY(front_check());
    if (!link || link->magic != LIVING)
        return CUDA_ERR_INVALID_HANDLE;
    link_drop(link);
    return CUDA_OK;
}
