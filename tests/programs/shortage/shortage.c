/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/shortage/shortage.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own: dlsym allocates. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static struct shortage *shortage;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SHORTAGE_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = (void *)syscall(SYS_mmap, NULL, sizeof *shortage, PROT_READ | PROT_WRITE,
                                 MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        shortage = page;
}

static bool fails(const char *name, int error)
{
    if (!shortage || !atomic_load(&shortage->armed) ||
        atomic_fetch_add(&shortage->count, 1) + 1 != atomic_load(&shortage->fail_at))
        return false;
    strncpy(shortage->name, name, sizeof shortage->name - 1);
    atomic_fetch_add(&shortage->failed, 1);
    errno = error;
    return true;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *malloc(size_t bytes)
{
    return fails("malloc", ENOMEM) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails("calloc", ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails("realloc", ENOMEM) ? NULL : __libc_realloc(memory, bytes);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fails("mmap", ENOMEM))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails("memfd_create", EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t bytes)
{
    return fails("ftruncate", ENOMEM) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    return fails("fallocate", ENOSPC) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails("sendmsg", ENOBUFS) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return fails("recvmsg", ENOMEM) ? -1 : syscall(SYS_recvmsg, fd, message, flags);
}

int dup(int fd)
{
    return fails("dup", EMFILE) ? -1 : (int)syscall(SYS_dup, fd);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    return fails("socketpair", EMFILE) ? -1
                                       : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

int pipe2(int fds[2], int flags)
{
    return fails("pipe2", EMFILE) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int eventfd(unsigned value, int flags)
{
    return fails("eventfd", EMFILE) ? -1 : (int)syscall(SYS_eventfd2, value, flags);
}

pid_t fork(void)
{
    return fails("fork", EAGAIN) ? -1 : NEXT(fork)();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin_at)(void *),
                   void *argument)
{
    return fails("pthread_create", EAGAIN)
               ? EAGAIN
               : NEXT(pthread_create)(thread, attributes, begin_at, argument);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    return fails("posix_spawn", EAGAIN)
               ? EAGAIN
               : NEXT(posix_spawn)(pid, path, actions, attributes, words, environment);
}
