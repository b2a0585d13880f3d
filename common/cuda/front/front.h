/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * front: the operations of a device, over which the rules of CUDA's driver API are written once.
 * Two libraries called libcuda.so.1 are linked with them: gpushare's drop-in answers through the
 * client library's engine (client/cuda/driver/), and the software GPU by itself
 * (server/softgpu/api/).
 *
 * Beside these operations the front calls functions of CUDA which either library has of its own:
 * those of modules, kernels, streams, events, copies and fills. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_FRONT_FRONT_H
#define GPUSHARE_COMMON_CUDA_FRONT_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/cuda/memory_pool.h"
#include "common/cuda/stream_value.h"
#include "common/devices_max.h"
#include "common/error.h"

/* ---- the library ---- */

/* A row of cuGetProcAddress. */
typedef void (*front_fn)(void);
struct front_row {
    const char *name;
    int version;
    front_fn fn;
};

/* Functions that this library carries beside those of driver_exports.h. NULL if it has none. */
extern const struct front_row *const front_own_rows;
extern const size_t front_own_row_count;

/* Whether the driver that this library stands for has the function of this name and version. */
bool front_offers(const char *name, int version);

/* Returns CUDA_ERR_NOT_INITIALIZED; CUDA_ERR_NOT_PERMITTED in a function of the program that runs
 * in a stream's order; or 0. */
cuda_result front_check(void);

/* ---- devices and contexts ---- */

/* Number of devices; -1 before cuInit. */
int front_device_count(void);

/* The first context begins to stand on the device, and the last one ends, with memory and all other
 * objects: driver_context_enter counts them. No device is entered or left by two threads at once.
 */
cuda_result front_enter(cuda_device device);
void front_leave(cuda_device device);

/* ---- memory ---- */

enum front_memory_kind { FRONT_DEVICE, FRONT_HOST, FRONT_MANAGED };

/* An allocation, or host memory that is registered. */
struct front_memory {
    uint64_t address, bytes;
    uint64_t id; /* unique in the process; 0: it has none */
    enum front_memory_kind kind;
    bool registered;
    bool mapped; /* the device reaches it, at the same address */
    cuda_device device;
};

/* Finds what holds the address. Returns false if nothing does. */
bool front_memory_find(uint64_t address, struct front_memory *memory);

/* Whether a fill in the current context may write all these bytes; and whether the host has them,
 * so that a fill which is not asynchronous waits. */
bool front_memory_fillable(uint64_t address, size_t bytes, bool *host);

/* Allocates memory of both sides in the current context. cuMemFree frees it. */
cuda_result front_managed_alloc(cuda_device_ptr *ptr, size_t bytes);

/* The operations below the memory pools. A pool's place is driver_pool_place of its device. */
extern const struct memory_pool_calls front_pool_calls;

/* ---- copies and fills ---- */

/* Of which kind memory must be, because the caller said so. */
enum front_side { FRONT_SIDE_DEVICE, FRONT_SIDE_HOST, FRONT_SIDE_EITHER };

struct front_copy {
    uint64_t dst, src;
    enum front_side dst_side, src_side;
    size_t size;
};

struct front_fill {
    uint64_t dst;
    uint32_t value, width; /* of so many bytes, and repeated `count` times */
    size_t count;
};

/* Put a copy or a fill into a stream of the current context. wait: returns when a copy is done, and
 * when a fill is of which CUDA says so: of memory that the host has, or that sync_memory knows. */
cuda_result front_copy(const struct front_copy *copy, cuda_stream stream, bool wait);
cuda_result front_fill(const struct front_fill *fill, cuda_stream stream, bool wait);

/* ---- streams ---- */

struct front_stream {
    cuda_device device;
    unsigned flags;
    int priority;
    unsigned long long id; /* unique in the process */
    cuda_green_ctx green;  /* NULL: it is of none */
    _Atomic uint32_t *note;
};

/* Gives the stream of a handle, which may be one of CUDA's special values. The note begins as 0 and
 * is the front's own. */
cuda_result front_stream_find(cuda_stream handle, struct front_stream *stream);

/* A handle as the calls of per-thread default streams mean it. */
static inline cuda_stream front_stream_own(cuda_stream handle)
{
    return handle ? handle : CUDA_STREAM_PER_THREAD;
}

/* ---- words in memory ---- */

/* A stream memory operation: a write of a word, whose condition means nothing, or a wait for one.
 */
struct front_word {
    bool wait;
    struct stream_value value;
};

/* Puts them into a stream in their order. Nothing is done, and CUDA_ERR_INVALID_VALUE returned, if
 * one names memory that the stream's context does not have. */
cuda_result front_words(cuda_stream stream, const struct front_word *words, unsigned count);

/* ---- modules ---- */

/* Either one of both: an image, which comes without a size, or the path of a file. The arrays may
 * be NULL if their count is 0. */
struct front_image {
    const void *image;
    const char *path;
    unsigned count;
    cuda_jit_option *options;
    void **values;
};

/* Loads a module onto a device on which a context stands. The calls on such a module and on its
 * kernels need no current context. Returns CUDA_ERR_FILE_NOT_FOUND too. */
cuda_result front_module_load(cuda_device device, const struct front_image *image,
                              cuda_module *module);

/* Give the device of a module, even if no call may use it any more; and of a kernel that may be
 * used. */
cuda_result front_module_device(cuda_module module, cuda_device *device);
cuda_result front_function_device(cuda_function function, cuda_device *device);

/* Gives the place of the front's own note on a kernel that may be used. It begins as NULL, and is
 * freed with the kernel by free(). */
cuda_result front_function_note(cuda_function function, void ***note);

/* Gives a variable of a module that may be used, as cuModuleGetGlobal does. *managed: whether it is
 * managed memory, which the process reaches at the same address. */
cuda_result front_module_variable(cuda_module module, const char *name, cuda_device_ptr *ptr,
                                  size_t *size, bool *managed);

/* ---- links ---- */

/*
 * Compiles an image for a device on which a context stands, and makes what cuLinkComplete gives of
 * it, malloc'ed. A zero byte stands behind the bytes given. After a failure *why says the reason.
 */
cuda_result front_link_make(cuda_device device, const void *image, size_t bytes, char **made,
                            size_t *made_bytes, struct error *why);

/* Finds the PTX in an ELF image that this library's links make. Returns false for any other. */
bool front_link_text(const void *image, size_t bytes, const char **text, size_t *length);

#define DRIVER_TRY(call)                                                                           \
    do {                                                                                           \
        cuda_result tried_ = (call);                                                               \
        if (tried_ != CUDA_OK)                                                                     \
            return tried_;                                                                         \
    } while (0)

/* Of a kernel, for both libraries: no launch has clusters. Returns CUDA_ERR_INVALID_VALUE for an
 * attribute that is none of theirs; *value is untouched then. */
static inline cuda_result front_cluster_attribute(cuda_function_attribute attribute, int *value)
{
    switch (attribute) {
    case CUDA_FUNC_CLUSTER_SIZE_MUST_BE_SET:
    case CUDA_FUNC_REQUIRED_CLUSTER_WIDTH:
    case CUDA_FUNC_REQUIRED_CLUSTER_HEIGHT:
    case CUDA_FUNC_REQUIRED_CLUSTER_DEPTH:
    case CUDA_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CUDA_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = 0;
        return CUDA_OK;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

#endif
