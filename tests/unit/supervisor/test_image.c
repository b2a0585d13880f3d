/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/supervisor/client/image.h"
#include "server/supervisor/loop/job.h"

static const struct hash_key key = {.point = 12345, .factor = 67890};

static struct image *image_of(const char *text)
{
    struct image *image = NULL;
    int fd = memfd_create("source", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(image_copy(&image, &key, fd, strlen(text)), 0);
    close(fd);
    return image;
}

/* A session's steps with a copy, on one thread. */
static struct image *admit(struct image_cache *cache, struct image *copy)
{
    struct image *known;
    while ((known = image_find(cache, copy))) {
        bool equal;
        while (image_compare(copy, known, &equal) == JOB_AGAIN)
            ;
        if (equal) {
            image_release(copy, NULL);
            return known;
        }
        image_release(known, NULL);
    }
    image_admit(cache, copy);
    return copy;
}

static void equal_hashes_of_different_images_do_not_mix_them_up(void **state)
{
    (void)state;
    struct image_cache cache;
    assert_int_equal(image_cache_open(&cache), 0);
    struct image *one = image_of("first"), *two = image_of("other"), *three = image_of("first");
    two->hash = one->hash; /* as somebody malicious could arrange */
    one = admit(&cache, one);
    two = admit(&cache, two);
    assert_ptr_not_equal(one, two);
    assert_ptr_equal(admit(&cache, three), one);
    assert_int_equal(cache.images, 2);
    assert_int_equal(cache.bytes, 10);
    image_release(one, NULL);
    assert_int_equal(cache.images, 2);
    image_release(one, NULL);
    image_release(two, NULL);
    assert_int_equal(cache.images, 0);
    image_cache_close(&cache);
}

static void an_image_that_was_admitted_meanwhile_is_found_too(void **state)
{
    (void)state;
    struct image_cache cache;
    bool equal;
    assert_int_equal(image_cache_open(&cache), 0);
    struct image *one = image_of("first"), *two = image_of("other"), *three = image_of("other");
    two->hash = three->hash = one->hash;
    image_admit(&cache, one);
    assert_ptr_equal(image_find(&cache, three), one);
    image_admit(&cache, two);
    assert_int_equal(image_compare(three, one, &equal), 0);
    assert_false(equal);
    image_release(one, NULL);
    assert_ptr_equal(image_find(&cache, three), two);
    assert_int_equal(image_compare(three, two, &equal), 0);
    assert_true(equal);
    assert_int_equal(three->fd, -1);
    image_release(three, NULL);
    image_release(two, NULL);
    image_release(two, NULL);
    image_release(one, NULL);
    image_cache_close(&cache);
}

static void a_copy_is_sealed_against_changes(void **state)
{
    (void)state;
    struct image *image = image_of("text");
    char text[4];
    assert_int_equal(pwrite(image->fd, "XXXX", 4, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(image->fd, 2), -1);
    assert_int_equal(pread(image->fd, text, 4, 0), 4);
    assert_memory_equal(text, "text", 4);
    image_release(image, NULL);
}

static void a_large_image_is_copied_whole(void **state)
{
    (void)state;
    const uint64_t bytes = JOB_STEP_BYTES + (3 << 20) + 12345;
    struct image *image = NULL;
    int fd = memfd_create("large", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    uint8_t *source = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(source, MAP_FAILED);
    for (uint64_t i = 0; i < bytes; i++)
        source[i] = (uint8_t)((i * 7 >> 3) + 1);
    assert_int_equal(image_copy(&image, &key, fd, bytes + 1), -ENODATA);
    assert_int_equal(image_copy(&image, &key, fd, 0), -EINVAL);
    assert_int_equal(image_copy(&image, &key, fd, bytes), JOB_AGAIN);
    assert_int_equal(image_copy(&image, &key, fd, bytes), 0);
    uint8_t *copy = mmap(NULL, bytes, PROT_READ, MAP_SHARED, image->fd, 0);
    assert_ptr_not_equal(copy, MAP_FAILED);
    assert_memory_equal(copy, source, bytes);
    munmap(copy, bytes);
    munmap(source, bytes);
    close(fd);
    image_release(image, NULL);
}

/* A gibibyte that was never written costs its maker nothing, and must not cost a copy. */
static void a_file_without_content_is_refused_before_it_is_copied(void **state)
{
    (void)state;
    const uint64_t bytes = UINT64_C(1) << 30;
    struct image *image = NULL;
    struct stat status;
    int fd = memfd_create("sparse", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(image_copy(&image, &key, fd, bytes), -ENOEXEC);
    assert_null(image);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_blocks, 0);
    /* A file that begins with a letter is left to the worker. */
    assert_int_equal(pwrite(fd, "/", 1, 0), 1);
    assert_int_equal(image_copy(&image, &key, fd, 4096), 0);
    image_release(image, NULL);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_hashes_of_different_images_do_not_mix_them_up),
        cmocka_unit_test(an_image_that_was_admitted_meanwhile_is_found_too),
        cmocka_unit_test(a_copy_is_sealed_against_changes),
        cmocka_unit_test(a_large_image_is_copied_whole),
        cmocka_unit_test(a_file_without_content_is_refused_before_it_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
