/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int shm_create(struct shm *shm, const char *name, size_t bytes)
{
    *shm = SHM_NONE;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    /* Sealed after it has its size, because the seals forbid any change of size. */
    if (ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, SHM_SEALS) < 0)
        goto close_fd;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        goto close_fd;
    *shm = (struct shm){.fd = fd, .base = base, .bytes = bytes};
    return 0;

close_fd:;
    int saved = errno;
    close(fd);
    return -saved;
}

int shm_readonly_fd(const struct shm *shm)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", shm->fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* The mode counts for processes that open the file through /proc later. Descriptors that are
     * open keep their rights, ours included. */
    if (fchmod(shm->fd, 0400) < 0) {
        int saved = errno;
        close(fd);
        return -saved;
    }
    return fd;
}

int shm_check(int fd, size_t bytes)
{
    struct stat status;
    /* Without the seals a peer could cut the file off under the mapping. Only a memfd can have
     * them. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SHM_SEALS) != SHM_SEALS)
        return -EBADF;
    if (fstat(fd, &status) < 0 || status.st_size < 0 || (uint64_t)status.st_size < bytes)
        return -EBADF;
    return 0;
}

int shm_adopt(struct shm *shm, int fd, size_t bytes, bool writable)
{
    *shm = SHM_NONE;
    int result = shm_check(fd, bytes);
    if (result < 0)
        return result;
    void *base = mmap(NULL, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    *shm = (struct shm){.fd = fd, .base = base, .bytes = bytes};
    return 0;
}

/* Maps at exactly this address; fd -1: no file. Returns 0, -EEXIST or another -errno. */
static int map_exactly(uint64_t address, size_t bytes, int access, int flags, int fd)
{
    void *want = (void *)(uintptr_t)address;
    void *base = mmap(want, bytes, access, flags, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    if (base != want) { /* a kernel before 4.17 takes MAP_FIXED_NOREPLACE as a hint */
        munmap(base, bytes);
        return -EEXIST;
    }
    return 0;
}

int shm_map_at(int fd, uint64_t address, size_t bytes, bool replace)
{
    return map_exactly(address, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | (replace ? MAP_FIXED : MAP_FIXED_NOREPLACE), fd);
}

int shm_reserve(uint64_t address, uint64_t bytes)
{
    return map_exactly(address, bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1);
}

void shm_release(struct shm *shm)
{
    if (shm->base)
        munmap(shm->base, shm->bytes);
    if (shm->fd >= 0)
        close(shm->fd);
    *shm = SHM_NONE;
}
