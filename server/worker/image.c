/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/fatbin.h"
#include "protocol.h"

static int read_all(int fd, uint8_t *to, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t got = pread(fd, to + done, count - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            return -ENODATA;
        done += (size_t)got;
    }
    return 0;
}

/* PTX is text whose first directive is .version. */
static bool looks_like_ptx(const struct image *image)
{
    size_t look = image->count < 65536 ? image->count : 65536;
    return memmem(image->bytes, look, ".version", 8) != NULL;
}

/* Of a fatbin the best PTX: its variables can be moved. Else the cubin made for this device. */
static int select_entry(const struct image *image, uint32_t compute, struct fatbin_entry *entry)
{
    int found = fatbin_select_ptx(image->bytes, image->count, compute, entry);
    if (found)
        return found;
    struct fatbin fatbin;
    struct fatbin_entry next;
    int best = 0;
    int error = fatbin_open(&fatbin, image->bytes, image->count);
    if (error < 0)
        return error;
    while ((error = fatbin_next(&fatbin, &next)) > 0) {
        /* A cubin runs on its own and on later minor versions of the same major one. */
        bool fits = next.kind == FATBIN_CUBIN && next.arch / 10 == compute / 10 &&
                    next.arch <= compute &&
                    (!(next.flags & FATBIN_FLAG_ARCH_SPECIFIC) || next.arch == compute);
        if (!fits || (best && next.arch <= entry->arch))
            continue;
        *entry = next;
        best = 1;
    }
    return error < 0 ? error : best;
}

static uint32_t unpack(struct image *image, uint32_t compute, char *why, size_t why_size)
{
    struct fatbin_entry entry;
    char *payload = NULL;
    size_t bytes = 0;
    int found = select_entry(image, compute, &entry);
    if (found == 0) {
        snprintf(why, why_size,
                 "the fatbin has neither PTX nor a cubin for compute capability "
                 "%u.%u",
                 compute / 10, compute % 10);
        return PROTO_ERROR_NO_BINARY_FOR_GPU;
    }
    if (found > 0)
        found = fatbin_payload(&entry, &payload, &bytes);
    if (found == -ENOMEM) {
        snprintf(why, why_size, "no memory for the fatbin's contents");
        return PROTO_ERROR_SERVER_RESOURCES;
    }
    if (found < 0) {
        snprintf(why, why_size, "the fatbin %s",
                 found == -E2BIG     ? "claims to hold more than an image may have"
                 : found == -ENOTSUP ? "is compressed in a way that is not known"
                                     : "is damaged");
        return PROTO_ERROR_INVALID_IMAGE;
    }
    free(image->bytes);
    image->bytes = (uint8_t *)payload;
    image->count = bytes;
    image->kind = entry.kind == FATBIN_PTX ? IMAGE_PTX : IMAGE_CUBIN;
    return 0;
}

static uint32_t classify(struct image *image, uint32_t compute, char *why, size_t why_size)
{
    static const uint8_t elf[4] = {0x7f, 'E', 'L', 'F'};
    if (image->count >= sizeof elf && memcmp(image->bytes, elf, sizeof elf) == 0) {
        image->kind = IMAGE_CUBIN;
        return 0;
    }
    if (image->count >= FATBIN_HEADER_BYTES && fatbin_size(image->bytes))
        return unpack(image, compute, why, why_size);
    /* A text may come with the NUL that ends it in C. */
    while (image->count && image->bytes[image->count - 1] == 0)
        image->count--;
    if (looks_like_ptx(image)) {
        if (memchr(image->bytes, 0, image->count)) {
            snprintf(why, why_size, "the PTX text has a zero byte inside");
            return PROTO_ERROR_INVALID_PTX;
        }
        image->kind = IMAGE_PTX;
        return 0;
    }
    snprintf(why, why_size, "the image is neither PTX text, a cubin nor a fatbin");
    return PROTO_ERROR_INVALID_IMAGE;
}

uint32_t image_read(struct image *image, int fd, uint64_t count, uint32_t compute, char *why,
                    size_t why_size)
{
    *image = (struct image){.kind = IMAGE_NONE};
    if (count == 0 || count > PROTO_IMAGE_MAX) {
        snprintf(why, why_size, "an image must have 1 to %d bytes", PROTO_IMAGE_MAX);
        return PROTO_ERROR_INVALID_VALUE;
    }
    image->bytes = malloc(count + 1);
    if (!image->bytes) {
        snprintf(why, why_size, "no memory for an image of %llu bytes", (unsigned long long)count);
        return PROTO_ERROR_SERVER_RESOURCES;
    }
    int error = read_all(fd, image->bytes, count);
    if (error < 0) {
        snprintf(why, why_size, "the image can't be read: %s",
                 error == -ENODATA ? "it is shorter than it should be" : strerror(-error));
        image_release(image);
        return error == -ENODATA ? PROTO_ERROR_INVALID_IMAGE : error_from_errno(error);
    }
    image->bytes[count] = 0;
    image->count = count;
    uint32_t refused = classify(image, compute, why, why_size);
    if (refused)
        image_release(image);
    return refused;
}

void image_release(struct image *image)
{
    free(image->bytes);
    *image = (struct image){.kind = IMAGE_NONE};
}
