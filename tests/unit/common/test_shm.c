/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* shm: what a peer can and cannot do with the memory that it was given. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/ipc/arena.h"
#include "common/ipc/shm.h"

#define BYTES 65536

static void memory_can_neither_shrink_nor_grow(void **state)
{
    (void)state;
    struct shm shm;
    assert_int_equal(shm_create(&shm, "test", BYTES), 0);
    memset(shm.base, 1, BYTES);
    assert_int_equal(ftruncate(shm.fd, BYTES / 2), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(shm.fd, BYTES * 2), -1);
    assert_int_equal(fcntl(shm.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(fcntl(shm.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    shm_release(&shm);
    assert_int_equal(shm.fd, -1);
    assert_null(shm.base);
    shm_release(&shm); /* idempotent */
}

static void a_size_that_is_impossible(void **state)
{
    (void)state;
    struct shm shm;
    assert_true(shm_create(&shm, "test", 0) < 0);
    assert_true(shm_create(&shm, "test", SIZE_MAX) < 0);
    assert_true(shm_create(&shm, "test", (size_t)INT64_MAX) < 0);
    assert_int_equal(shm.fd, -1);
}

static void an_adopted_copy_is_the_same_memory(void **state)
{
    (void)state;
    struct shm ours, theirs;
    assert_int_equal(shm_create(&ours, "test", BYTES), 0);
    assert_int_equal(shm_adopt(&theirs, dup(ours.fd), BYTES, true), 0);
    ((char *)theirs.base)[BYTES - 1] = 42;
    assert_int_equal(((char *)ours.base)[BYTES - 1], 42);
    shm_release(&theirs);
    shm_release(&ours);
}

static int memfd(size_t bytes, unsigned flags, int seals)
{
    int fd = memfd_create("test", flags);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void refuse_adopt(int fd, size_t bytes)
{
    struct shm shm;
    assert_int_equal(shm_adopt(&shm, fd, bytes, true), -EBADF);
    assert_null(shm.base);
    /* Not taken over: still the caller's. */
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
}

static void descriptors_that_are_not_ours_are_refused(void **state)
{
    (void)state;
    const unsigned sealable = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    struct shm shm;
    refuse_adopt(memfd(BYTES, sealable, 0), BYTES);
    refuse_adopt(memfd(BYTES, MFD_CLOEXEC, 0), BYTES);
    refuse_adopt(memfd(BYTES, sealable, F_SEAL_SHRINK | F_SEAL_GROW), BYTES);
    refuse_adopt(memfd(BYTES, sealable, F_SEAL_GROW | F_SEAL_SEAL), BYTES);
    refuse_adopt(memfd(BYTES, sealable, F_SEAL_SHRINK | F_SEAL_SEAL), BYTES);
    refuse_adopt(memfd(BYTES, sealable, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), BYTES + 1);
    refuse_adopt(memfd(BYTES, sealable, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), SIZE_MAX);
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    refuse_adopt(pipes[0], 1);
    close(pipes[1]);
    refuse_adopt(open("/dev/zero", O_RDWR | O_CLOEXEC), BYTES);
    char path[] = "/tmp/gpushare-shm-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);
    unlink(path);
    assert_int_equal(ftruncate(file, BYTES), 0);
    refuse_adopt(file, BYTES);
    assert_int_equal(shm_adopt(&shm, -1, BYTES, false), -EBADF);
    /* Sealed as it should be, but without the right to write it. */
    int fd = memfd(BYTES, sealable, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    char proc[64];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    int readonly = open(proc, O_RDONLY | O_CLOEXEC);
    assert_int_equal(shm_adopt(&shm, readonly, BYTES, true), -EACCES);
    assert_int_equal(shm_adopt(&shm, readonly, BYTES, false), 0);
    shm_release(&shm);
    close(fd);
}

static bool can_map_for_writing(int fd)
{
    void *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return false;
    munmap(base, BYTES);
    return true;
}

static bool can_make_writable(int fd)
{
    void *base = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return true; /* in a child: no assertions; the test fails by this answer */
    bool can = mprotect(base, BYTES, PROT_READ | PROT_WRITE) == 0;
    munmap(base, BYTES);
    return can;
}

static bool can_open(const char *path, int mode)
{
    int fd = open(path, mode | O_CLOEXEC);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* Runs in a child, as another user if that can be: every way to write must fail. 0: none worked. */
static int try_to_write(int readonly)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", readonly);
    if (write(readonly, "x", 1) == 1)
        return 1;
    if (can_map_for_writing(readonly))
        return 2;
    if (can_make_writable(readonly))
        return 3;
    if (fallocate(readonly, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
        return 4;
    if (geteuid() == 0)
        return 0; /* root may do anything, and harms only itself */
    if (can_open(path, O_RDWR))
        return 5;
    if (can_open(path, O_WRONLY))
        return 6;
    if (fchmod(readonly, 0600) == 0)
        return 7;
    return 0;
}

static void a_readonly_descriptor_stays_readonly(void **state)
{
    (void)state;
    struct shm shm;
    assert_int_equal(shm_create(&shm, "test", BYTES), 0);
    ((char *)shm.base)[0] = 'a';
    int readonly = shm_readonly_fd(&shm);
    assert_true(readonly >= 0);
    assert_int_equal(fcntl(readonly, F_GETFL) & O_ACCMODE, O_RDONLY);
    if (getuid() != 0)
        print_message("not root: the way through /proc as another user was not tried\n");
    pid_t child = fork();
    if (child == 0) {
        /* The server's uid owns the file; everybody else is what matters. */
        if (getuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(99);
        _exit(getuid() == 65534 || geteuid() == 0 ? try_to_write(readonly) : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(((char *)shm.base)[0], 'a');
    /* The owner's own mapping still writes, and the reader sees it. */
    ((char *)shm.base)[1] = 'b';
    char seen[2];
    assert_int_equal(pread(readonly, seen, 2, 0), 2);
    assert_memory_equal(seen, "ab", 2);
    close(readonly);
    shm_release(&shm);
}

static void a_second_readonly_descriptor_can_be_had(void **state)
{
    (void)state;
    struct shm shm;
    assert_int_equal(shm_create(&shm, "test", BYTES), 0);
    int first = shm_readonly_fd(&shm), second = shm_readonly_fd(&shm);
    assert_true(first >= 0 && second >= 0);
    close(first);
    close(second);
    shm_release(&shm);
}

static void punched_memory_reads_as_zeros(void **state)
{
    (void)state;
    struct shm ours, theirs;
    assert_int_equal(shm_create(&ours, "test", BYTES), 0);
    assert_int_equal(shm_adopt(&theirs, dup(ours.fd), BYTES, true), 0);
    memset(ours.base, 7, BYTES);
    assert_int_equal(fallocate(theirs.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BYTES), 0);
    for (unsigned i = 0; i < BYTES; i++)
        assert_int_equal(((char *)ours.base)[i], 0);
    shm_release(&theirs);
    shm_release(&ours);
}

static void unmap(uint64_t address, size_t bytes)
{
    assert_int_equal(munmap((void *)(uintptr_t)address, bytes), 0);
}

static void addresses_are_reserved_and_replaced(void **state)
{
    (void)state;
    struct shm shm;
    /* A free range: the kernel names one, and it is given back. */
    void *free_range =
        mmap(NULL, 16 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(free_range != MAP_FAILED);
    unmap((uint64_t)(uintptr_t)free_range, 16 * BYTES);
    uint64_t at = (uint64_t)(uintptr_t)free_range;
    assert_int_equal(shm_reserve(at, 16 * BYTES), 0);
    assert_int_equal(shm_reserve(at, 16 * BYTES), -EEXIST);
    assert_int_equal(shm_reserve(at + 15 * BYTES, 16 * BYTES), -EEXIST);
    assert_int_equal(shm_create(&shm, "test", BYTES), 0);
    assert_int_equal(shm_map_at(shm.fd, at + BYTES, BYTES, false), -EEXIST);
    assert_int_equal(shm_map_at(shm.fd, at + BYTES, BYTES, true), 0);
    ((char *)(uintptr_t)(at + BYTES))[5] = 9;
    assert_int_equal(((char *)shm.base)[5], 9);
    unmap(at, 16 * BYTES);
    assert_int_equal(shm_map_at(shm.fd, at, BYTES, false), 0);
    unmap(at, BYTES);
    assert_true(shm_map_at(-1, at, BYTES, false) < 0);
    assert_true(shm_map_at(shm.fd, at + 1, BYTES, false) < 0);
    assert_true(shm_reserve(at, 0) < 0);
    /* ThreadSanitizer turns an address that no process can have into 0 and maps that. */
#ifndef ARENA_THREAD_SANITIZER
    assert_true(shm_reserve(UINT64_C(0x7fffffffff000), BYTES) < 0);
#endif
    shm_release(&shm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_can_neither_shrink_nor_grow),
        cmocka_unit_test(a_size_that_is_impossible),
        cmocka_unit_test(an_adopted_copy_is_the_same_memory),
        cmocka_unit_test(descriptors_that_are_not_ours_are_refused),
        cmocka_unit_test(a_readonly_descriptor_stays_readonly),
        cmocka_unit_test(a_second_readonly_descriptor_can_be_had),
        cmocka_unit_test(punched_memory_reads_as_zeros),
        cmocka_unit_test(addresses_are_reserved_and_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
