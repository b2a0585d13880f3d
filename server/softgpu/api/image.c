/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/api/image.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cuda/fatbin.h"
#include "common/error.h"
#include "server/softgpu/decode/module_load.h"
#include "server/softgpu/device/device.h"

static uint32_t device_arch(void)
{
    return device_profile()->cc_major * 10 + device_profile()->cc_minor;
}

/* ---- containers --------------------------------------------------------------------- */

static cuda_result open_fatbin(struct image *image, const void *bytes, struct error *error)
{
    struct fatbin_entry entry;
    int found = fatbin_select_ptx(bytes, fatbin_size(bytes), device_arch(), &entry);

    if (found < 0)
        return error_set(error, CUDA_ERR_INVALID_IMAGE, "the fatbin is damaged");
    if (found == 0) {
        const unsigned major = device_profile()->cc_major, minor = device_profile()->cc_minor;

        return error_set(
            error, CUDA_ERR_NO_BINARY_FOR_GPU,
            "the fatbin holds no PTX for compute capability %u.%u or lower: the software GPU "
            "runs PTX only, compile with -gencode arch=compute_%u%u,code=compute_%u%u",
            major, minor, major, minor, major, minor);
    }
    if (fatbin_payload(&entry, &image->owned, &image->length) < 0)
        return error_set(error, CUDA_ERR_INVALID_IMAGE, "the fatbin's PTX cannot be decompressed");
    image->text = image->owned;
    return CUDA_OK;
}

static cuda_result open_elf(struct image *image, const void *bytes, struct error *error)
{
    if (!container_read(bytes, &image->container))
        return error_set(error, CUDA_ERR_NO_BINARY_FOR_GPU,
                         "the image is a cubin: the software GPU runs PTX only");
    /* Machine code runs on later minor versions of its own major one. */
    const uint32_t arch = image->container.arch;
    if (arch / 10 != device_profile()->cc_major || arch > device_arch())
        return error_set(error, CUDA_ERR_NO_BINARY_FOR_GPU,
                         "the image was linked for another compute capability");
    image->text = image->container.text;
    image->length = image->container.length;
    image->compiled = true;
    return CUDA_OK;
}

cuda_result image_open(struct image *image, const void *bytes, struct error *error)
{
    uint32_t magic;

    *image = (struct image){0};
    bytes = fatbin_unwrap(bytes);
    if (!bytes)
        return error_set(error, CUDA_ERR_INVALID_IMAGE, "the fatbin wrapper holds no data");
    /* A text may be shorter than a word. */
    if (memchr(bytes, '\0', sizeof(magic)))
        magic = 0;
    else
        memcpy(&magic, bytes, sizeof(magic));
    if (magic == FATBIN_MAGIC)
        return open_fatbin(image, bytes, error);
    if (container_is_elf(&magic))
        return open_elf(image, bytes, error);
    image->text = bytes;
    image->length = strlen(bytes);
    return image->length > 0 ? CUDA_OK
                             : error_set(error, CUDA_ERR_INVALID_IMAGE, "the image is empty");
}

void image_close(struct image *image)
{
    free(image->owned);
    *image = (struct image){0};
}

/* ---- what the driver and the device can do ------------------------------------------ */

/* The newest PTX of each driver; the release notes of PTX ISA have the table. */
static uint32_t newest_ptx(int driver)
{
    static const struct {
        int driver;
        uint32_t ptx;
    } rows[] = {
        {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
        {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88},
    };
    uint32_t newest = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].driver <= driver)
            newest = rows[i].ptx;
    return newest;
}

/* A module without a kernel has nothing that could not run. */
static cuda_result check_module(const struct module *module, struct error *error)
{
    const int driver = device_driver_version();
    struct function_info info;

    if (module_function_count(module) == 0)
        return CUDA_OK;
    function_info(module_function_at((struct module *)module, 0), &info);
    if (driver < CUDA_API_VERSION && info.ptx_version > newest_ptx(driver))
        return error_set(error, CUDA_ERR_UNSUPPORTED_PTX_VERSION,
                         "the PTX version is newer than this driver");
    if (info.target > device_arch())
        return error_set(error, CUDA_ERR_INVALID_PTX,
                         "the PTX's .target is higher than the device's compute capability");
    return CUDA_OK;
}

/* ---- texts that harm their compiler, for tests: they say themselves what it does ---- */

static bool text_says(const struct image *image, const char *what)
{
    return device_settings()->link_obeys &&
           memmem(image->text, image->length, what, strlen(what)) != NULL;
}

/* As a compiler does that needs more and more; of the system, for an allocator may end the process
 * where there is none. */
static void take_memory(void)
{
    enum { PIECE = 1 << 20 };
    struct piece {
        struct piece *next;
    } *taken = NULL, *piece;

    while ((piece = mmap(NULL, PIECE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) != MAP_FAILED) {
        piece->next = taken;
        taken = piece;
    }
    for (; taken; taken = piece) {
        piece = taken->next;
        munmap(taken, PIECE);
    }
}

static void crash_compiler(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static cuda_result obey_text(const struct image *image, struct error *error)
{
    enum { SLOW_US = 500000 };

    while (text_says(image, "softgpu: hang"))
        pause();
    if (text_says(image, "softgpu: crash"))
        crash_compiler();
    if (text_says(image, "softgpu: slow"))
        usleep(SLOW_US);
    if (!text_says(image, "softgpu: grow"))
        return CUDA_OK;
    take_memory();
    return error_set(error, CUDA_ERR_OUT_OF_MEMORY, "out of host memory");
}

cuda_result image_module(const struct image *image, struct module **module, struct error *error)
{
    cuda_result result;

    if (device_settings()->no_jit)
        return error_set(error, CUDA_ERR_JIT_COMPILER_NOT_FOUND,
                         "libnvidia-ptxjitcompiler.so.1 is not installed");
    result = obey_text(image, error);
    if (result != CUDA_OK)
        return result;
    result = module_load(image->text, image->length, module, error);
    if (result != CUDA_OK)
        return result;
    result = check_module(*module, error);
    if (result != CUDA_OK)
        module_destroy(*module);
    return result;
}

/* A file, a pipe too. */
static char *read_all(FILE *file, size_t *bytes)
{
    char *text = NULL, part[4096];
    FILE *copy = open_memstream(&text, bytes);
    size_t got;

    while (copy && (got = fread(part, 1, sizeof part, file)) > 0)
        (void)fwrite(part, 1, got, copy);
    if (!copy || fclose(copy) != 0) {
        free(text);
        return NULL;
    }
    return text; /* open_memstream ends it with a zero byte */
}

cuda_result image_read(const char *path, char **text, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    bool whole;

    if (!file)
        return CUDA_ERR_FILE_NOT_FOUND;
    *text = read_all(file, bytes);
    whole = !ferror(file);
    (void)fclose(file);
    if (*text && whole && *bytes)
        return CUDA_OK;
    cuda_result result = !*text  ? CUDA_ERR_OUT_OF_MEMORY
                         : whole ? CUDA_ERR_INVALID_IMAGE
                                 : CUDA_ERR_FILE_NOT_FOUND;
    free(*text);
    return result;
}
