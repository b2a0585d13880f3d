/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * shm: memory that processes share, as sealed memfds.
 *
 * The server creates every one: it can neither shrink nor grow afterwards
 * (F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL), so no peer can make an access fault.
 * A peer can still punch holes; readers then see zeros and must stand it.
 */
#ifndef GPUSHARE_COMMON_SHM_H
#define GPUSHARE_COMMON_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shm {
    int fd;     /* -1 when not held */
    void *base; /* NULL when not mapped */
    size_t bytes;
};

#define SHM_NONE ((struct shm){.fd = -1, .base = NULL, .bytes = 0})

/* Creates, sizes, seals and maps. name is for /proc/PID/maps. Returns 0 or -errno. */
int shm_create(struct shm *shm, const char *name, size_t bytes);

/*
 * A second descriptor of the same memory that can only be read, for handing to a
 * peer. The file's mode becomes 0400, so that another uid can't reopen it for
 * writing through /proc. Returns the descriptor or -errno.
 */
int shm_readonly_fd(const struct shm *shm);

/*
 * Maps a received descriptor; takes it over on success. Refuses (-EBADF) one
 * that is not a memfd with the three seals, or has fewer bytes. Returns 0 or -errno.
 */
int shm_adopt(struct shm *shm, int fd, size_t bytes, bool writable);

/*
 * Maps bytes of fd, shared and writable, at exactly this address. Returns 0;
 * -EEXIST if something is there (replace == false); -errno. With replace, what is
 * there (a reservation of the caller's) gives way. Unmapping is munmap().
 */
int shm_map_at(int fd, uint64_t address, size_t bytes, bool replace);

/* Reserves an address range with no access and no memory. Returns 0, -EEXIST, -errno. */
int shm_reserve(uint64_t address, uint64_t bytes);

/* Unmaps and closes; idempotent. */
void shm_release(struct shm *shm);

#endif
