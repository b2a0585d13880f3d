/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/raw.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/ipc/doorbell.h"
#include "tests/support/patience.h"

static void fail(const char *what)
{
    fprintf(stderr, "raw: %s\n", what);
    abort();
}

void raw_connect(struct raw *raw, const struct server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(raw, 0, sizeof *raw);
    raw->ring_fd = raw->segment_fd = raw->status_fd = raw->eventfd = -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server_socket(server));
    raw->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (raw->fd < 0 || connect(raw->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        perror("raw: connect");
        abort();
    }
}

uint32_t raw_ask(struct raw *raw, uint16_t opcode, const void *body, const void *tail,
                 size_t tail_bytes, int fd)
{
    uint64_t serial = ++raw->serial;
    if (channel_send(raw->fd, &(struct channel_packet){.opcode = opcode,
                                                       .serial = serial,
                                                       .body = body,
                                                       .tail = tail,
                                                       .tail_bytes = tail_bytes,
                                                       .fds = fd >= 0 ? &fd : NULL,
                                                       .fd_count = fd >= 0}) < 0)
        return PROTO_ERROR_CONNECTION_LOST;
    for (;;) {
        struct pollfd wait_for = {.fd = raw->fd, .events = POLLIN};
        if (poll(&wait_for, 1, (int)(1000 * patience_seconds(30))) != 1)
            fail("no answer within the time of patience_seconds(30)");
        int result =
            channel_receive(raw->fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &raw->reply);
        if (result == CHANNEL_CLOSED || result < 0)
            return PROTO_ERROR_CONNECTION_LOST;
        if (raw->reply.header.serial != serial)
            continue;
        if (raw->reply.header.opcode == PROTO_FAILED)
            return ((const struct proto_failed *)raw->reply.body)->error;
        return 0;
    }
}

void raw_attach(struct raw *raw, const struct server *server, uint64_t memory_limit)
{
    struct proto_hello hello = {.major = PROTO_MAJOR, .minor = PROTO_MINOR};
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "raw"};
    attach.allowance.memory.limit = memory_limit;
    raw_connect(raw, server);
    if (raw_ask(raw, PROTO_HELLO, &hello, NULL, 0, -1) ||
        raw_ask(raw, PROTO_ATTACH, &attach, NULL, 0, -1)) {
        const struct proto_failed *failed = raw->reply.body;
        fprintf(stderr, "raw: attach: %s\n", failed ? failed->text : "connection lost");
        abort();
    }
    memcpy(&raw->attached, raw->reply.body, sizeof raw->attached);
    raw->ring_fd = channel_take_fd(&raw->reply, 0);
    raw->status_fd = channel_take_fd(&raw->reply, 1);
    raw->eventfd = channel_take_fd(&raw->reply, 2);
    int opened = ring_memory_open(&raw->memory, raw->attached.streams, raw->ring_fd);
    raw->rings = raw->memory.base;
    raw->status = mmap(NULL, ring_status_bytes(raw->attached.streams), PROT_READ, MAP_SHARED,
                       raw->status_fd, 0);
    if (opened < 0 || raw->status == MAP_FAILED)
        fail("the granted memory can't be mapped");
}

uint32_t raw_ring(struct raw *raw, uint32_t stream)
{
    struct proto_ring_make make = {.stream = stream};
    uint32_t error = raw_ask(raw, PROTO_RING_MAKE, &make, NULL, 0, -1);
    if (error)
        return error;
    const struct proto_rings_made *made = raw->reply.body;
    if (raw->segment_fd >= 0)
        close(raw->segment_fd);
    raw->segment_fd = channel_take_fd(&raw->reply, 0);
    if (ring_memory_add(&raw->memory, made->first, made->count, raw->segment_fd) < 0)
        fail("the rings can't be mapped");
    return 0;
}

void raw_send(struct raw *raw, const void *bytes, size_t count, const int *fds, unsigned fd_count)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
        struct cmsghdr align;
    } control;
    struct iovec part = {(void *)(uintptr_t)bytes, count};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (fd_count) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    ssize_t sent = sendmsg(raw->fd, &header, MSG_NOSIGNAL);
    (void)sent; /* the server may have closed the connection already; the caller finds out */
}

bool raw_wait_end(struct raw *raw)
{
    for (;;) {
        struct pollfd wait_for = {.fd = raw->fd, .events = POLLIN};
        if (poll(&wait_for, 1, 10000) != 1)
            return false;
        int result =
            channel_receive(raw->fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &raw->reply);
        if (result == CHANNEL_CLOSED || (result < 0 && result != -EPROTO))
            return true;
        channel_close_fds(&raw->reply);
    }
}

static uint32_t fault_of(const struct raw *raw)
{
    return __atomic_load_n(&ring_status_header(raw->status)->fault, __ATOMIC_SEQ_CST);
}

uint32_t raw_wait_fault(struct raw *raw)
{
    for (int i = 0; i < 10000 && !fault_of(raw); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return fault_of(raw);
}

uint64_t raw_alloc(struct raw *raw, uint64_t bytes)
{
    struct proto_memory_alloc alloc = {.count = bytes};
    if (raw_ask(raw, PROTO_MEMORY_ALLOC, &alloc, NULL, 0, -1))
        return 0;
    return ((const struct proto_memory_allocated *)raw->reply.body)->address;
}

int raw_memfd(const void *bytes, size_t count)
{
    int fd = memfd_create("raw", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, bytes, count, 0) != (ssize_t)count)
        fail("no memfd");
    return fd;
}

uint32_t raw_function(struct raw *raw, const char *ptx, const char *name)
{
    struct proto_module_load load = {.count = strlen(ptx)};
    int fd = raw_memfd(ptx, strlen(ptx));
    uint32_t error = raw_ask(raw, PROTO_MODULE_LOAD, &load, NULL, 0, fd);
    close(fd);
    if (error)
        fail("the module was refused");
    struct proto_function_get get = {
        .module = ((const struct proto_module_loaded *)raw->reply.body)->module};
    if (raw_ask(raw, PROTO_FUNCTION_GET, &get, name, strlen(name), -1))
        fail("the kernel was not found");
    return ((const struct proto_function_info *)raw->reply.body)->function;
}

void raw_push(struct raw *raw, uint32_t stream, const void *descriptor)
{
    if (!ring_memory_has(&raw->memory, stream) && raw_ring(raw, stream))
        fail("the stream has no ring");
    struct ring ring = ring_at(raw->rings, raw->status, stream);
    uint32_t tail = __atomic_load_n(&ring.header->tail, __ATOMIC_SEQ_CST);
    memcpy(ring.descriptors[tail % PROTO_RING_ENTRIES].bytes, descriptor, 64);
    __atomic_store_n(&ring.header->tail, tail + 1, __ATOMIC_SEQ_CST);
    doorbell_ring(ring_client_header(raw->rings), stream, raw->eventfd);
}

bool raw_wait_value(struct raw *raw, uint32_t stream, uint64_t value)
{
    struct ring ring = ring_at(raw->rings, raw->status, stream);
    struct proto_ring_header *header = ring.header;
    __atomic_fetch_add(&header->waiter, 1, __ATOMIC_SEQ_CST);
    doorbell_ring(ring_client_header(raw->rings), stream, raw->eventfd);
    bool reached = false;
    for (int i = 0; i < 10000 && !reached && !fault_of(raw); i++) {
        reached = __atomic_load_n(&ring.status->completed, __ATOMIC_SEQ_CST) >= value;
        if (!reached)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    __atomic_fetch_sub(&header->waiter, 1, __ATOMIC_SEQ_CST);
    return reached;
}

void raw_close(struct raw *raw)
{
    int *fds[] = {&raw->fd, &raw->ring_fd, &raw->segment_fd, &raw->status_fd, &raw->eventfd};
    ring_memory_close(&raw->memory);
    if (raw->status)
        munmap(raw->status, ring_status_bytes(raw->attached.streams));
    raw->rings = raw->status = NULL;
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}
