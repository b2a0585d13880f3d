/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/fd_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 256, MESSAGE_MAX = 4096, FDS_MAX = 16 };

struct kept {
    struct kept *next;
    int fd;
    char name[NAME_MAX_BYTES];
};

struct fd_store {
    int heard; /* the socket */
    pthread_t thread;
    struct sockaddr_un address;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* All below is under the lock. */
    struct kept *first;
    unsigned marks, marks_heard;
    bool ready, closing;
};

static void die(const char *what)
{
    fprintf(stderr, "fd_store: %s: %s\n", what, strerror(errno));
    abort();
}

/* The value of a line NAME=VALUE of a notification, cut at size. False: there is none. */
static bool find_value(const char *message, const char *name, char *value, size_t size)
{
    const size_t length = strlen(name);
    for (const char *line = message; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) || line[length] != '=')
            continue;
        snprintf(value, size, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
        return true;
    }
    return false;
}

static bool has_one(const char *message, const char *name)
{
    char value[NAME_MAX_BYTES];
    return find_value(message, name, value, sizeof value) && !strcmp(value, "1");
}

/* Under the lock. */
static void keep(struct fd_store *store, const char *name, int fd)
{
    struct kept *one = calloc(1, sizeof *one);
    if (!one)
        die("out of memory");
    one->fd = fd;
    snprintf(one->name, sizeof one->name, "%s", name);
    one->next = store->first;
    store->first = one;
}

/* Under the lock. */
static void forget(struct fd_store *store, const char *name)
{
    for (struct kept **at = &store->first; *at;) {
        struct kept *one = *at;
        if (strcmp(one->name, name)) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        close(one->fd);
        free(one);
    }
}

/* Takes the descriptors that it keeps out of fds. */
static void take(struct fd_store *store, const char *message, int *fds, size_t count)
{
    char name[NAME_MAX_BYTES] = "";
    (void)find_value(message, "FDNAME", name, sizeof name);
    pthread_mutex_lock(&store->lock);
    if (has_one(message, "FDSTORE"))
        for (size_t i = 0; i < count; i++) {
            keep(store, name, fds[i]);
            fds[i] = -1;
        }
    else if (has_one(message, "FDSTOREREMOVE"))
        forget(store, name);
    store->ready |= has_one(message, "READY");
    store->marks_heard += has_one(message, "X_TEST_MARK");
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

static bool is_closing(struct fd_store *store)
{
    pthread_mutex_lock(&store->lock);
    bool closing = store->closing;
    pthread_mutex_unlock(&store->lock);
    return closing;
}

static void *hear(void *argument)
{
    struct fd_store *store = argument;
    while (!is_closing(store)) {
        char message[MESSAGE_MAX];
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        } control;
        struct iovec piece = {.iov_base = message, .iov_len = sizeof message - 1};
        struct msghdr header = {.msg_iov = &piece,
                                .msg_iovlen = 1,
                                .msg_control = &control,
                                .msg_controllen = sizeof control};
        int fds[FDS_MAX];
        size_t count = 0;
        ssize_t length = recvmsg(store->heard, &header, MSG_CMSG_CLOEXEC);
        if (length < 0)
            continue;
        message[length] = 0;
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        if (part && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fds, CMSG_DATA(part), count * sizeof(int));
        }
        take(store, message, fds, count);
        /* Those of a message without FDSTORE: the barrier's sender waits until its is closed. */
        for (size_t i = 0; i < count; i++)
            if (fds[i] >= 0)
                close(fds[i]);
    }
    return NULL;
}

struct fd_store *fd_store_open(const char *path)
{
    struct fd_store *store = calloc(1, sizeof *store);
    if (!store)
        die("out of memory");
    store->address.sun_family = AF_UNIX;
    snprintf(store->address.sun_path, sizeof store->address.sun_path, "%s", path);
    store->heard = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (store->heard < 0 ||
        bind(store->heard, (struct sockaddr *)&store->address, sizeof store->address) < 0)
        die(path);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    errno = pthread_create(&store->thread, NULL, hear, store);
    if (errno)
        die("thread");
    return store;
}

static void send_mark(struct fd_store *store)
{
    static const char mark[] = "X_TEST_MARK=1";
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, mark, sizeof mark - 1, 0, (struct sockaddr *)&store->address,
                         sizeof store->address) < 0)
        die("mark");
    close(fd);
}

void fd_store_settle(struct fd_store *store)
{
    pthread_mutex_lock(&store->lock);
    const unsigned mine = ++store->marks;
    pthread_mutex_unlock(&store->lock);
    send_mark(store);
    pthread_mutex_lock(&store->lock);
    while (store->marks_heard < mine)
        pthread_cond_wait(&store->changed, &store->lock);
    pthread_mutex_unlock(&store->lock);
}

void fd_store_close(struct fd_store *store)
{
    if (!store)
        return;
    pthread_mutex_lock(&store->lock);
    store->closing = true;
    pthread_mutex_unlock(&store->lock);
    send_mark(store);
    pthread_join(store->thread, NULL);
    while (store->first) {
        char name[NAME_MAX_BYTES];
        /* A copy: forget frees the entry, and compares names after that. */
        memcpy(name, store->first->name, sizeof name);
        forget(store, name);
    }
    close(store->heard);
    unlink(store->address.sun_path);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

void fd_store_begin(struct fd_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->ready = false;
    pthread_mutex_unlock(&store->lock);
}

bool fd_store_await_ready(struct fd_store *store, double seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t ns = end.tv_nsec + (int64_t)(seconds * 1e9);
    end.tv_sec += ns / 1000000000;
    end.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&store->lock);
    while (!store->ready && pthread_cond_timedwait(&store->changed, &store->lock, &end) == 0)
        ;
    bool ready = store->ready;
    pthread_mutex_unlock(&store->lock);
    return ready;
}

size_t fd_store_count(struct fd_store *store)
{
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    for (const struct kept *one = store->first; one; one = one->next)
        count++;
    pthread_mutex_unlock(&store->lock);
    return count;
}

size_t fd_store_copy(struct fd_store *store, int from, int **fds, char **names)
{
    size_t count = 0, room = fd_store_count(store), size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    *fds = calloc(room ? room : 1, sizeof **fds);
    if (!out || !*fds)
        die("out of memory");
    fputs(*names, out);
    pthread_mutex_lock(&store->lock);
    for (const struct kept *one = store->first; one && count < room; one = one->next) {
        (*fds)[count] = fcntl(one->fd, F_DUPFD_CLOEXEC, from);
        if ((*fds)[count++] < 0)
            die(one->name);
        fprintf(out, ":%s", one->name);
    }
    pthread_mutex_unlock(&store->lock);
    fclose(out);
    free(*names);
    *names = text;
    return count;
}
