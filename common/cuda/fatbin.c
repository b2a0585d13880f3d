/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: NVIDIA has no library that reads its container. libzstd and liblz4 decompress. */
#include "common/cuda/fatbin.h"

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* The layout as measured on nvcc 13.0's output. It is little-endian. */
struct entry_header {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t payload_bytes; /* stored, with padding */
    uint32_t compressed_bytes;
    uint32_t options_offset;
    uint16_t minor, major;
    uint32_t arch;
    uint32_t name_offset, name_bytes;
    uint64_t flags;
    uint64_t reserved;
    uint64_t uncompressed_bytes;
};

_Static_assert(sizeof(struct entry_header) == 64, "layout of the file");

int fatbin_open(struct fatbin *fatbin, const void *data, size_t size)
{
    struct fatbin_header header;

    if (size < sizeof(header) || !fatbin_read_header(data, &header) || header.header_bytes > size ||
        header.bytes > size - header.header_bytes)
        return -EINVAL;
    fatbin->at = (const uint8_t *)data + header.header_bytes;
    fatbin->end = fatbin->at + header.bytes;
    return 0;
}

int fatbin_next(struct fatbin *fatbin, struct fatbin_entry *entry)
{
    size_t left = (size_t)(fatbin->end - fatbin->at);
    struct entry_header header;

    if (left == 0)
        return 0;
    if (left < sizeof(header))
        return -EINVAL;
    memcpy(&header, fatbin->at, sizeof(header));
    if (header.header_bytes < sizeof(header) || header.header_bytes > left ||
        header.payload_bytes > left - header.header_bytes)
        return -EINVAL;
    *entry = (struct fatbin_entry){
        .kind = header.kind,
        .arch = header.arch,
        .flags = header.flags,
        .stored = fatbin->at + header.header_bytes,
        .stored_bytes = header.payload_bytes,
        .bytes = header.payload_bytes,
        .whole = fatbin->at,
        .whole_bytes = header.header_bytes + header.payload_bytes,
    };
    if (header.flags & (FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD)) {
        if (header.compressed_bytes > header.payload_bytes ||
            header.uncompressed_bytes > SIZE_MAX / 2)
            return -EINVAL;
        entry->stored_bytes = header.compressed_bytes;
        entry->bytes = header.uncompressed_bytes;
    } else if (header.compressed_bytes != 0) {
        /* Compressed by a method whose flag we don't know. It must not be taken for plain bytes. */
        entry->stored_bytes = 0;
    }
    fatbin->at += header.header_bytes + header.payload_bytes;
    return 1;
}

int fatbin_select_ptx(const void *data, size_t size, uint32_t cc, struct fatbin_entry *entry)
{
    struct fatbin fatbin;
    struct fatbin_entry next;
    int result = fatbin_open(&fatbin, data, size);
    int found = 0;

    if (result < 0)
        return result;
    while ((result = fatbin_next(&fatbin, &next)) == 1)
        if (next.kind == FATBIN_PTX && next.arch <= cc &&
            !(next.flags & FATBIN_FLAG_ARCH_SPECIFIC) && (!found || next.arch > entry->arch)) {
            *entry = next;
            found = 1;
        }
    return result < 0 ? result : found;
}

/* A cubin runs on its own compute capability and on later minor versions of it. */
static bool cubin_fits(const struct fatbin_entry *entry, uint32_t cc)
{
    return entry->kind == FATBIN_CUBIN && entry->arch / 10 == cc / 10 && entry->arch <= cc &&
           (!(entry->flags & FATBIN_FLAG_ARCH_SPECIFIC) || entry->arch == cc);
}

int fatbin_select(const void *data, size_t size, uint32_t cc, struct fatbin_entry *entry)
{
    struct fatbin fatbin;
    struct fatbin_entry next;
    int found = fatbin_select_ptx(data, size, cc, entry);
    int result;

    if (found)
        return found;
    result = fatbin_open(&fatbin, data, size);
    if (result < 0)
        return result;
    while ((result = fatbin_next(&fatbin, &next)) == 1)
        if (cubin_fits(&next, cc) && (!found || next.arch > entry->arch)) {
            *entry = next;
            found = 1;
        }
    return result < 0 ? result : found;
}

void fatbin_head(uint8_t head[FATBIN_HEADER_BYTES], const struct fatbin_entry *entry)
{
    const struct fatbin_header header = {.magic = FATBIN_MAGIC,
                                         .version = 1,
                                         .header_bytes = sizeof(header),
                                         .bytes = entry->whole_bytes};

    memcpy(head, &header, sizeof(header));
}

static int decompress_entry(const struct fatbin_entry *entry, char *payload)
{
    size_t written;

    if (entry->flags & FATBIN_FLAG_ZSTD) {
        written = ZSTD_decompress(payload, entry->bytes, entry->stored, entry->stored_bytes);
        return !ZSTD_isError(written) && written == entry->bytes ? 0 : -EINVAL;
    }
    if (entry->flags & FATBIN_FLAG_LZ4) {
        /* Sizes fit an int: both are below FATBIN_PAYLOAD_MAX. */
        int count = LZ4_decompress_safe((const char *)entry->stored, payload,
                                        (int)entry->stored_bytes, (int)entry->bytes);

        return count >= 0 && (size_t)count == entry->bytes ? 0 : -EINVAL;
    }
    if (entry->stored_bytes != entry->bytes)
        return -ENOTSUP;
    memcpy(payload, entry->stored, entry->bytes);
    return 0;
}

int fatbin_payload(const struct fatbin_entry *entry, char **payload, size_t *bytes)
{
    char *text;
    int result;

    if (entry->bytes > FATBIN_PAYLOAD_MAX || entry->stored_bytes > FATBIN_PAYLOAD_MAX)
        return -E2BIG;
    text = malloc(entry->bytes + 1);
    if (!text)
        return -ENOMEM;
    result = decompress_entry(entry, text);
    if (result < 0) {
        free(text);
        return result;
    }
    text[entry->bytes] = '\0';
    *payload = text;
    *bytes = entry->kind == FATBIN_PTX ? strlen(text) : entry->bytes;
    return 0;
}

int fatbin_text_open(struct fatbin_text *text, const void *image, size_t bytes, uint32_t cc)
{
    static const char elf[4] = {0x7f, 'E', 'L', 'F'};
    struct fatbin_entry entry;
    int result;

    *text = (struct fatbin_text){.text = image, .length = strnlen(image, bytes)};
    if (bytes >= sizeof(elf) && memcmp(image, elf, sizeof(elf)) == 0)
        return 0;
    if (bytes < FATBIN_HEADER_BYTES || !fatbin_size(image))
        return 1;
    result = fatbin_select_ptx(image, bytes, cc, &entry);
    if (result <= 0)
        return result;
    result = fatbin_payload(&entry, &text->owned, &text->length);
    if (result < 0)
        return result;
    text->text = text->owned;
    return 1;
}

void fatbin_text_close(struct fatbin_text *text)
{
    free(text->owned);
    *text = (struct fatbin_text){.text = NULL};
}
