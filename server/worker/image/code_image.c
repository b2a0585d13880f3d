/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/code_image.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/cuda/fatbin.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "protocol.h"
#include "server/worker/image/cubin.h"

/* The first directive of a PTX text is .version. Comments may stand before it, so the beginning of
 * the text is searched, and not only its first line. */
static bool looks_like_ptx(const struct code_image *image)
{
    /* Comments may come first, such as a licence; noise is not searched to its end. */
    size_t look = min(image->count, (size_t)65536);
    return memmem(image->bytes, look, ".version", 8) != NULL;
}

static uint32_t refuse_payload(const struct fatbin_entry *entry, size_t max, int error,
                               struct error *why)
{
    char texts[2][UNITS_TEXT];
    if (error == -ENOMEM) {
        return error_set(why, MESSAGE(fatbin_no_memory));
    }
    if (error == -ENOBUFS) {
        return error_set(why, MESSAGE(fatbin_too_large), units_format_bytes(entry->bytes, texts[0]),
                         units_format_bytes(max, texts[1]));
    }
    if (error == -E2BIG)
        return error_set(why, MESSAGE(fatbin_payload_max));
    if (error == -ENOTSUP)
        return error_set(why, MESSAGE(fatbin_compression));
    return error_set(why, MESSAGE(fatbin_damaged));
}

/* A driver looks at the bytes alone: what is called a cubin could be a text, whose variables nobody
 * has counted, or an address. */
static uint32_t take_cubin(struct code_image *image, struct error *why)
{
    if (!cubin_is_whole(image->bytes, image->count))
        return error_set(why, MESSAGE(cubin_damaged));
    image->kind = CODE_IMAGE_CUBIN;
    return 0;
}

static uint32_t unpack_entry(struct code_image *image, uint32_t compute, size_t max,
                             struct error *why)
{
    struct fatbin_entry entry = {0};
    char *payload = NULL;
    size_t bytes = 0;
    int found = fatbin_select(image->bytes, image->count, compute, &entry);
    if (found == 0) {
        return error_set(why, MESSAGE(fatbin_no_binary), compute / 10, compute % 10);
    }
    if (found > 0)
        found = entry.bytes <= FATBIN_PAYLOAD_MAX && entry.bytes >= max
                    ? -ENOBUFS
                    : fatbin_payload(&entry, &payload, &bytes);
    if (found < 0)
        return refuse_payload(&entry, max, found, why);
    image->bytes = image->unpacked = (uint8_t *)payload;
    image->count = bytes;
    if (entry.kind == FATBIN_PTX) {
        image->kind = CODE_IMAGE_PTX;
        return 0;
    }
    return take_cubin(image, why);
}

static uint32_t classify_bytes(struct code_image *image, uint32_t compute, size_t max,
                               struct error *why)
{
    static const uint8_t elf[4] = {0x7f, 'E', 'L', 'F'};
    if (image->count >= sizeof elf && memcmp(image->bytes, elf, sizeof elf) == 0)
        return take_cubin(image, why);
    if (image->count >= FATBIN_HEADER_BYTES && fatbin_size(image->bytes))
        return unpack_entry(image, compute, max, why);
    /* A text may come with the NUL that ends a string in C. */
    while (image->count && image->bytes[image->count - 1] == 0)
        image->count--;
    if (looks_like_ptx(image)) {
        if (memchr(image->bytes, 0, image->count)) {
            return error_set(why, MESSAGE(ptx_zero_byte));
        }
        image->kind = CODE_IMAGE_PTX;
        return 0;
    }
    return error_set(why, MESSAGE(image_kind));
}

uint32_t code_image_open(struct code_image *image, int fd, uint64_t count, struct error *why)
{
    struct stat status;
    *image = (struct code_image){.kind = CODE_IMAGE_NONE};
    if (count == 0 || count > PROTO_IMAGE_MAX) {
        return error_set(why, MESSAGE(image_size), PROTO_IMAGE_MAX);
    }
    if (fstat(fd, &status) < 0 || status.st_size < 0 || (uint64_t)status.st_size < count) {
        return error_set(why, MESSAGE(image_short));
    }
    void *file = mmap(NULL, count, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED) {
        int error = -errno;
        return error_set(why, error_from_errno(error), MESSAGE_TEXT(image_unreadable),
                         strerror(-error));
    }
    image->file = file;
    image->file_bytes = count;
    return 0;
}

uint32_t code_image_unpack(struct code_image *image, uint32_t compute, size_t max,
                           struct error *why)
{
    image->bytes = image->file;
    image->count = image->file_bytes;
    uint32_t refused = classify_bytes(image, compute, max, why);
    if (refused)
        code_image_release(image);
    return refused;
}

size_t code_image_memory(const struct code_image *image)
{
    return image->unpacked ? image->count : 0;
}

void code_image_pack(struct code_image *image)
{
    free(image->unpacked);
    image->unpacked = NULL;
    image->bytes = NULL;
}

void code_image_release(struct code_image *image)
{
    code_image_pack(image);
    if (image->file)
        munmap(image->file, image->file_bytes);
    *image = (struct code_image){.kind = CODE_IMAGE_NONE};
}
