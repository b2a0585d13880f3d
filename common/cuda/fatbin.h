/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fatbin: reads the container in which nvcc delivers PTX texts and cubins for several
 * architectures. Each is stored plain or compressed (zstd, LZ4).
 *
 * Input is hostile. Every offset and size is checked against the given bytes, nothing is written to
 * them, and no alignment is assumed. A reader and its entries point into the caller's bytes. These
 * must stay unchanged meanwhile, so they can't be memory that a client can write. No global state;
 * any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_FATBIN_H
#define GPUSHARE_COMMON_CUDA_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FATBIN_MAGIC UINT32_C(0xba55ed50)
/* __fatBinC_Wrapper_t: holds a pointer, so it is never accepted from a peer */
#define FATBIN_WRAPPER_MAGIC UINT32_C(0x466243b1)

enum {
    FATBIN_HEADER_BYTES = 16,
    FATBIN_PAYLOAD_MAX = 256 << 20, /* a larger claim is refused before anything is allocated */
};

enum fatbin_kind { FATBIN_PTX = 1, FATBIN_CUBIN = 2 };

enum {
    FATBIN_FLAG_DEBUG = 0x2,
    FATBIN_FLAG_LZ4 = 0x2000,
    FATBIN_FLAG_ZSTD = 0x8000,
    FATBIN_FLAG_ARCH_SPECIFIC = 0x100000, /* sm_90a and the like: runs on that architecture alone */
};

struct fatbin_entry {
    uint16_t kind; /* enum fatbin_kind; others exist and may be skipped */
    uint32_t arch; /* 90 for compute_90 or sm_90 */
    uint64_t flags;
    const uint8_t *stored;
    size_t stored_bytes;  /* the exact input of the decoder */
    size_t bytes;         /* after decompression */
    const uint8_t *whole; /* with its header */
    size_t whole_bytes;
};

struct fatbin {
    const uint8_t *at, *end;
};

/* The layout as measured on nvcc 13.0's output. It is little-endian. */
struct fatbin_header {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes; /* behind this header */
};
_Static_assert(sizeof(struct fatbin_header) == FATBIN_HEADER_BYTES, "layout of the file");

/* The struct that nvcc's start-up code registers, as measured on nvcc 13.0's programs. */
struct fatbin_wrapper {
    uint32_t magic, version;
    const void *fatbin;
    const void *const *parts; /* version FATBIN_WRAPPER_PARTS: fatbins, then NULL */
};
/* The version of a program with separately compiled parts (nvcc -rdc=true). Its fatbin is what
 * nvlink made of the parts' machine code, and empty where they have PTX alone. */
enum { FATBIN_WRAPPER_PARTS = 2 };

/* Whether the image of a program's own, whose size nobody knows, begins with a word that has no
 * byte 0. Read byte by byte, for a short text ends before a longer word would. */
static inline bool fatbin_begins_with(const void *image, const void *word, size_t bytes)
{
    size_t same = 0;
    while (same < bytes && ((const char *)image)[same] == ((const char *)word)[same])
        same++;
    return same == bytes;
}

/* Returns the fatbin in nvcc's struct around it, whose third word is its address: NULL if that is
 * empty. Any other image is returned as it is. A program's own, never a peer's. */
static inline const void *fatbin_unwrap(const void *image)
{
    const uint32_t magic = FATBIN_WRAPPER_MAGIC;
    if (fatbin_begins_with(image, &magic, sizeof magic))
        memcpy(&image, (const char *)image + 2 * sizeof magic, sizeof image);
    return image;
}

static inline bool fatbin_read_header(const void *data, struct fatbin_header *header)
{
    memcpy(header, data, sizeof(*header));
    return header->magic == FATBIN_MAGIC && header->version == 1 &&
           header->header_bytes >= sizeof(*header);
}

/*
 * Returns the size of the whole container, from its header alone. 16 bytes must be readable at
 * data. 0 if data does not begin with a container.
 */
static inline size_t fatbin_size(const void *data)
{
    struct fatbin_header header;
    size_t size;
    if (!fatbin_read_header(data, &header) ||
        __builtin_add_overflow(header.bytes, header.header_bytes, &size))
        return 0;
    return size;
}

/* Begins to read. Returns 0, or -EINVAL if the size bytes at data do not hold a whole container. */
int fatbin_open(struct fatbin *fatbin, const void *data, size_t size);

/* Returns 1 and the next entry; 0 at the end; -EINVAL if the container is damaged there. */
int fatbin_next(struct fatbin *fatbin, struct fatbin_entry *entry);

/*
 * Finds the best PTX for a device of compute capability cc (90 for 9.0): the highest architecture
 * that is not above cc, and not specific to another architecture. Returns 1; 0 if there is none; or
 * -EINVAL.
 */
int fatbin_select_ptx(const void *data, size_t size, uint32_t cc, struct fatbin_entry *entry);

/* Finds the entry that the server loads: the best PTX, since its variables can be moved; else the
 * cubin for this device. Returns as fatbin_select_ptx. */
int fatbin_select(const void *data, size_t size, uint32_t cc, struct fatbin_entry *entry);

/* Writes the header of a container that holds this entry alone: entry->whole follows it. */
void fatbin_head(uint8_t head[FATBIN_HEADER_BYTES], const struct fatbin_entry *entry);

/* The PTX of an image. */
struct fatbin_text {
    const char *text; /* in the image, or owned; length bytes */
    size_t length;
    char *owned; /* NULL: none */
};

/*
 * Gives the text of an image that a program loads: the image itself, or the best PTX of a fatbin.
 * Returns 1; 0 for a cubin, and for a fatbin without PTX for the device; or an error of
 * fatbin_select_ptx or fatbin_payload. fatbin_text_close ends it, whatever was returned.
 */
int fatbin_text_open(struct fatbin_text *text, const void *image, size_t bytes, uint32_t cc);
void fatbin_text_close(struct fatbin_text *text);

/*
 * Decompresses the payload of an entry. *payload is malloc'ed, the caller frees it, and a NUL byte
 * follows it. For PTX, *bytes counts up to the first NUL.
 *
 * Returns 0; -EINVAL if it is damaged; -E2BIG above FATBIN_PAYLOAD_MAX; -ENOTSUP for an unknown
 * compression; or -ENOMEM.
 */
int fatbin_payload(const struct fatbin_entry *entry, char **payload, size_t *bytes);

#endif
