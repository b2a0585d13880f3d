/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/client/image.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP (UINT64_C(1) << 20)

int image_cache_open(struct image_cache *cache)
{
    *cache = (struct image_cache){0};
    return hash_key_make(&cache->key);
}

void image_cache_close(struct image_cache *cache)
{
    assert(!cache->first && cache->images == 0 && cache->bytes == 0);
}

static int copy_bytes(int from, int to, uint64_t bytes, const struct hash_key *key, uint64_t *hash)
{
    uint8_t *buffer = malloc(STEP);
    if (!buffer)
        return -ENOMEM;
    int result = 0;
    *hash = HASH_BEGIN;
    for (uint64_t at = 0; at < bytes && result == 0;) {
        uint64_t want = bytes - at < STEP ? bytes - at : STEP;
        ssize_t got = pread(from, buffer, want, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || (uint64_t)got < want) {
            /* The file was large enough a moment ago; a file that shrinks meanwhile is refused. */
            result = got < 0 ? -errno : -ENODATA;
            break;
        }
        *hash = hash_add_bytes(key, *hash, buffer, want);
        for (uint64_t done = 0; done < want;) {
            ssize_t put = pwrite(to, buffer + done, want - done, (off_t)(at + done));
            if (put < 0 && errno == EINTR)
                continue;
            if (put <= 0) {
                result = put < 0 ? -errno : -EIO;
                break;
            }
            done += (uint64_t)put;
        }
        at += want;
    }
    free(buffer);
    return result;
}

int image_copy(struct image **out, const struct hash_key *key, int fd, uint64_t bytes)
{
    struct stat status;
    *out = NULL;
    if (!bytes)
        return -EINVAL;
    if (fcntl(fd, F_GET_SEALS) < 0)
        return -EBADF;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EBADF;
    if (status.st_size < 0 || (uint64_t)status.st_size < bytes)
        return -ENODATA;
    struct image *image = calloc(1, sizeof *image);
    if (!image)
        return -ENOMEM;
    image->bytes = bytes;
    image->fd = memfd_create("gpushare-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int result = image->fd < 0 ? -errno : 0;
    if (result == 0 && ftruncate(image->fd, (off_t)bytes) < 0)
        result = -errno;
    if (result == 0)
        result = copy_bytes(fd, image->fd, bytes, key, &image->hash);
    if (result == 0 &&
        fcntl(image->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        result = -errno;
    if (result < 0) {
        image_release(image);
        return result;
    }
    *out = image;
    return 0;
}

static bool image_equals(const struct image *a, const struct image *b)
{
    if (a->bytes != b->bytes || a->hash != b->hash)
        return false;
    void *left = mmap(NULL, a->bytes, PROT_READ, MAP_PRIVATE, a->fd, 0);
    void *right = mmap(NULL, b->bytes, PROT_READ, MAP_PRIVATE, b->fd, 0);
    bool equal = left != MAP_FAILED && right != MAP_FAILED && memcmp(left, right, a->bytes) == 0;
    if (left != MAP_FAILED)
        munmap(left, a->bytes);
    if (right != MAP_FAILED)
        munmap(right, b->bytes);
    return equal;
}

struct image *image_admit(struct image_cache *cache, struct image *image)
{
    for (struct image *known = cache->first; known; known = known->next) {
        if (image_equals(known, image)) {
            image_release(image);
            known->references++;
            return known;
        }
    }
    image->cache = cache;
    image->references = 1;
    image->next = cache->first;
    cache->first = image;
    cache->images++;
    cache->bytes += image->bytes;
    return image;
}

void image_release(struct image *image)
{
    if (!image || (image->cache && --image->references))
        return;
    if (image->cache) {
        struct image **link = &image->cache->first;
        while (*link != image)
            link = &(*link)->next;
        *link = image->next;
        image->cache->images--;
        image->cache->bytes -= image->bytes;
    }
    if (image->fd >= 0)
        close(image->fd);
    free(image);
}
