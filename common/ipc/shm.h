/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * shm: memory that processes share, as sealed memfds.
 *
 * The server creates each of them. Its seals (F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL) keep its
 * size as it is, so no peer can make an access fault. A peer that can write it can still punch
 * holes; a reader then sees zeros, and must be able to handle them.
 *
 * Any thread; one struct shm belongs to one thread at a time.
 */
#ifndef GPUSHARE_COMMON_IPC_SHM_H
#define GPUSHARE_COMMON_IPC_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shm {
    int fd;     /* -1: no descriptor is held */
    void *base; /* NULL: not mapped */
    size_t bytes;
};

#define SHM_NONE ((struct shm){.fd = -1, .base = NULL, .bytes = 0})

/* Creates memory of this size, seals and maps it. name: shown in /proc/PID/maps. Returns 0 or
 * -errno, with *shm as SHM_NONE. shm_release ends it. */
int shm_create(struct shm *shm, const char *name, size_t bytes);

/*
 * Returns a second descriptor of the same memory that allows only reading, to be handed to a peer;
 * or -errno. The caller owns it. The file's mode becomes 0400, so that a process of another user
 * can't reopen the memory for writing through /proc.
 */
int shm_readonly_fd(const struct shm *shm);

/* Whether a received descriptor can be mapped and never cut off. Returns 0; or -EBADF if it is no
 * memfd with the three seals, or holds fewer bytes. */
int shm_check(int fd, size_t bytes);

/*
 * Maps the first `bytes` of a received descriptor. On success *shm owns the descriptor; else it
 * stays the caller's and *shm is SHM_NONE. Returns 0; -EBADF as shm_check does; or another
 * -errno.
 */
int shm_adopt(struct shm *shm, int fd, size_t bytes, bool writable);

/*
 * Maps the first `bytes` of fd at exactly this address, shared and writable. replace: whether the
 * mapping may take the place of what is mapped there, which must be a reservation of the caller's.
 * Returns 0; -EEXIST if something is mapped there and may not be replaced; or another -errno. The
 * caller unmaps with munmap().
 */
int shm_map_at(int fd, uint64_t address, size_t bytes, bool replace);

/* Reserves an address range, without access and without memory. Returns 0; -EEXIST if something
 * is mapped there; or another -errno. The caller gives it back with munmap(). */
int shm_reserve(uint64_t address, uint64_t bytes);

/* Unmaps the memory and closes the descriptor. Idempotent. */
void shm_release(struct shm *shm);

#endif
