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

#include "common/util.h"
#include "server/supervisor/loop/job.h"

#define BUFFER_BYTES (UINT64_C(1) << 20)

int image_cache_open(struct image_cache *cache)
{
    *cache = (struct image_cache){0};
    list_init(&cache->list);
    return hash_key_make(&cache->key);
}

void image_cache_close(struct image_cache *cache)
{
    assert(list_is_empty(&cache->list) && cache->images == 0 && cache->bytes == 0);
}

/* Writes all of a buffer. */
static int write_bytes(int to, const uint8_t *buffer, uint64_t bytes, uint64_t at)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t put = pwrite(to, buffer + done, bytes - done, (off_t)(at + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
        done += (uint64_t)put;
    }
    return 0;
}

static int copy_step(struct image *image, const struct hash_key *key, int from)
{
    uint64_t end = image->copied + min(image->bytes - image->copied, JOB_STEP_BYTES);
    uint8_t *buffer = malloc(BUFFER_BYTES);
    int result = buffer ? 0 : -ENOMEM;
    while (image->copied < end && result == 0) {
        uint64_t want = min(end - image->copied, BUFFER_BYTES);
        ssize_t got = pread(from, buffer, want, (off_t)image->copied);
        if (got < 0 && errno == EINTR)
            continue;
        /* The file was large enough a moment ago; a file that shrinks meanwhile is refused. */
        if (got < 0 || (uint64_t)got < want)
            result = got < 0 ? -errno : -ENODATA;
        if (result < 0)
            break;
        image->hash = hash_add_bytes(key, image->hash, buffer, want);
        result = write_bytes(image->fd, buffer, want, image->copied);
        image->copied += want;
    }
    free(buffer);
    return result;
}

/* Whether the file can be of a kind that a worker takes: a text, a cubin or a fatbin. None begins
 * with a zero, and a large file without content costs its maker nothing. The worker looks closer.
 */
static int look_first(int fd)
{
    uint8_t first;
    ssize_t got;
    do
        got = pread(fd, &first, 1, 0);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        return got < 0 ? -errno : -ENODATA;
    return first ? 0 : -ENOEXEC;
}

/* Makes an image without content, if a client's file can have that. */
static int image_make(struct image **out, int fd, uint64_t bytes)
{
    struct stat status;
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
    int result = look_first(fd);
    if (result < 0)
        return result;
    struct image *image = *out = calloc(1, sizeof *image);
    if (!image)
        return -ENOMEM;
    image->bytes = bytes;
    image->hash = HASH_BEGIN;
    image->fd = memfd_create("gpushare-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (image->fd < 0 || ftruncate(image->fd, (off_t)bytes) < 0)
        return -errno;
    return 0;
}

int image_copy(struct image **image, const struct hash_key *key, int fd, uint64_t bytes)
{
    int result = *image ? 0 : image_make(image, fd, bytes);
    if (!*image)
        return result; /* negative: a file that is refused, or no memory */
    if (result == 0)
        result = copy_step(*image, key, fd);
    if (result == 0 && (*image)->copied < bytes)
        return JOB_AGAIN;
    if (result == 0 && fcntl((*image)->fd, F_ADD_SEALS,
                             F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        result = -errno;
    if (result < 0) {
        image_release(*image, NULL);
        *image = NULL;
    }
    return result;
}

struct image *image_find(struct image_cache *cache, struct image *copy)
{
    struct image *each, *found = NULL;
    LIST_FOR_EACH (each, &cache->list, in_cache)
        if (each->number > copy->number && each->bytes == copy->bytes && each->hash == copy->hash &&
            (!found || each->number < found->number))
            found = each;
    if (!found)
        return NULL;
    copy->number = found->number;
    copy->compared = 0;
    found->references++;
    return found;
}

static bool parts_equal(const struct image *a, const struct image *b, uint64_t at, uint64_t bytes)
{
    int flags = MAP_PRIVATE | MAP_POPULATE;
    void *left = mmap(NULL, bytes, PROT_READ, flags, a->fd, (off_t)at);
    void *right = mmap(NULL, bytes, PROT_READ, flags, b->fd, (off_t)at);
    bool equal = left != MAP_FAILED && right != MAP_FAILED && memcmp(left, right, bytes) == 0;
    if (left != MAP_FAILED)
        munmap(left, bytes);
    if (right != MAP_FAILED)
        munmap(right, bytes);
    return equal;
}

int image_compare(struct image *copy, const struct image *known, bool *equal)
{
    uint64_t bytes = min(copy->bytes - copy->compared, JOB_STEP_BYTES);
    *equal = parts_equal(copy, known, copy->compared, bytes);
    copy->compared += bytes;
    if (*equal && copy->compared < copy->bytes)
        return JOB_AGAIN;
    if (*equal) {
        close(copy->fd);
        copy->fd = -1;
    }
    return 0;
}

void image_admit(struct image_cache *cache, struct image *copy)
{
    copy->cache = cache;
    copy->number = ++cache->admitted;
    copy->references = 1;
    list_prepend(&cache->list, &copy->in_cache);
    cache->images++;
    cache->bytes += copy->bytes;
}

void image_release(struct image *image, struct closer *closer)
{
    if (!image || (image->cache && --image->references))
        return;
    if (image->cache) {
        list_remove(&image->in_cache);
        image->cache->images--;
        image->cache->bytes -= image->bytes;
    }
    if (closer)
        closer_take(closer, image->fd, CLOSER_SERVER);
    else if (image->fd >= 0)
        close(image->fd);
    free(image);
}
