/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake: a supervisor in this process with clients and workers that are scripts on
 * socket pairs. One thread: whoever waits for a message turns the loop meanwhile.
 * fake_close checks that supervisor, workers and this process end with nothing.
 */
#ifndef GPUSHARE_TESTS_UNIT_SUPERVISOR_FAKE_H
#define GPUSHARE_TESTS_UNIT_SUPERVISOR_FAKE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/ipc/channel.h"
#include "common/error.h"
#include "server/supervisor/change.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/supervisor_private.h"
#include "server/supervisor/trace.h"
#include "server/supervisor/view.h"
#include "tests/unit/supervisor/fake_worker.h"

#define MIB          (UINT64_C(1) << 20)
#define FAKE_GRAIN   (2 * MIB)
#define FAKE_DEVICES 2

struct fake {
    uv_loop_t loop;
    struct settings settings;
    struct supervisor *supervisor;
    struct fake_worker worker[FAKE_DEVICES];
    uint32_t devices;
    bool ready, stopped, unusable;
    int fds_before;
    uint64_t next_serial;
    struct channel_message message; /* the latest that a client got */
};

/* The oldest session; NULL: there is none. */
static inline struct session *fake_first(const struct fake *fake)
{
    return LIST_FIRST(&fake->supervisor->server.session_list, struct session, link);
}

/* The session that so many came before. */
static inline struct session *fake_session(const struct fake *fake, unsigned index)
{
    struct session *session;
    LIST_FOR_EACH (session, &fake->supervisor->server.session_list, link)
        if (index-- == 0)
            return session;
    fail_msg("there are fewer sessions");
    return NULL;
}

static inline int fake_count_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static inline void fake_ready(void *context)
{
    ((struct fake *)context)->ready = true;
}

static inline void fake_stopped(void *context)
{
    ((struct fake *)context)->stopped = true;
}

static inline void fake_unusable(void *context, const char *text)
{
    (void)text;
    ((struct fake *)context)->unusable = true;
}

/* A worker that has just started: adopted, and ready once the loop has turned. */
static inline void fake_start_worker(struct fake *fake, uint32_t device, uint64_t memory)
{
    int pair[2];
    struct fake_worker *worker = &fake->worker[device];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    memset(worker, 0, sizeof *worker);
    worker->fd = pair[0];
    worker->automatic = true;
    assert_int_equal(device_adopt(&fake->supervisor->server.devices[device], pair[1]), 0);
    struct proto_device_info info = {.memory = memory,
                                     .granularity = FAKE_GRAIN,
                                     .multiprocessors = 132,
                                     .partition_multiprocessors = 8,
                                     .name = "fake"};
    assert_int_equal(channel_send(worker->fd, &(struct channel_packet){.opcode = PROTO_DEVICE_INFO,
                                                                       .body = &info}),
                     0);
}

static inline void fake_turn(struct fake *fake);

static inline void fake_settle(struct fake *fake)
{
    for (int i = 0; i < 20; i++)
        fake_turn(fake);
}

static inline void fake_open(struct fake *fake, uint32_t devices, uint64_t memory)
{
    uv_loop_t warm; /* libuv keeps descriptors of its own from the first loop on */
    uv_loop_init(&warm);
    uv_loop_close(&warm);
    memset(fake, 0, sizeof *fake);
    fake->fds_before = fake_count_fds();
    settings_default(&fake->settings);
    fake->settings.host_total = 64 * MIB;
    fake->settings.host_client = 16 * MIB;
    fake->settings.streams = 4;
    fake->settings.max_clients = 40;
    fake->settings.max_user_clients = 40;
    fake->devices = devices;
    uv_loop_init(&fake->loop);
    struct supervisor_events events = {
        .ready = fake_ready, .stopped = fake_stopped, .unusable = fake_unusable, .context = fake};
    struct discovery discovery = {.count = devices};
    struct error why = {0};
    for (uint32_t i = 0; i < devices; i++)
        discovery.devices[i] = (struct discovery_device){.ordinal = i, .uuid = {(uint8_t)(i + 1)}};
    assert_int_equal(supervisor_create(&fake->supervisor, &fake->loop, &fake->settings, &events),
                     0);
    assert_int_equal(supervisor_add_devices(fake->supervisor, &discovery, false, &why), 0);
    for (uint32_t i = 0; i < devices; i++)
        fake_start_worker(fake, i, memory);
    fake_settle(fake);
    assert_true(fake->ready);
    for (uint32_t i = 0; i < devices; i++)
        assert_int_equal(fake->worker[i].schedules, 1);
}

static inline void fake_turn(struct fake *fake)
{
    uv_run(&fake->loop, UV_RUN_NOWAIT);
    for (uint32_t i = 0; i < fake->devices; i++) {
        struct fake_worker *worker = &fake->worker[i];
        while (worker->automatic && worker->fd >= 0 && fake_worker_take(worker)) {
            fake_answer(worker, &worker->message);
            channel_close_fds(&worker->message);
        }
    }
}

/* Answers what was held back, and nothing later is. */
static inline void fake_release(struct fake_worker *worker)
{
    worker->hold_frees = worker->hold_detach = worker->hold_loads = false;
    for (unsigned i = 0; i < worker->held_count; i++) {
        /* The copy's body stands in the copy. */
        worker->held[i].body = worker->held[i].data + sizeof(struct proto_message_header);
        if (worker->held[i].header.opcode)
            fake_answer(worker, &worker->held[i]);
        worker->held[i].header.opcode = 0;
    }
    worker->held_count = 0;
}

#define FAKE_WAIT(fake, condition)                                                                 \
    do {                                                                                           \
        uint64_t fake_end = clock_now() + UINT64_C(10000000000);                                   \
        while (!(condition)) {                                                                     \
            assert_true(clock_now() < fake_end);                                                   \
            fake_turn(fake);                                                                       \
        }                                                                                          \
    } while (0)

struct fake_reload {
    bool over;
    uint32_t error;
    char text[700];
};

static inline void fake_reloaded(void *context, uint32_t error, const char *text)
{
    struct fake_reload *reload = context;
    assert_false(reload->over);
    reload->over = true;
    reload->error = error;
    snprintf(reload->text, sizeof reload->text, "%s", text);
}

/* Begins to read this configuration from a file, which the caller removes. */
static inline void fake_reload_ask(struct fake *fake, const char *yaml, struct fake_reload *reload)
{
    char path[] = "/tmp/gpushare-fake-XXXXXX";
    int fd = mkstemp(path);
    *reload = (struct fake_reload){0};
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
    close(fd);
    snprintf(fake->settings.config, sizeof fake->settings.config, "%s", path);
    struct error why = {0};
    uint32_t error = reload_file(fake->supervisor, false, fake_reloaded, reload, &why);
    if (error)
        fake_reloaded(reload, error, why.text);
}

/* Begins to put this configuration in force, and waits until its file was read. 1: it is in force;
 * 0: workers are asked; -1: it is refused. */
static inline int fake_reload_begin(struct fake *fake, const char *yaml, struct fake_reload *reload)
{
    fake_reload_ask(fake, yaml, reload);
    FAKE_WAIT(fake, reload->over || !fake->supervisor->reload_file);
    unlink(fake->settings.config);
    return reload->error ? -1 : reload->over;
}

/* Puts it in force, or says why not. */
static inline uint32_t fake_configure(struct fake *fake, const char *yaml,
                                      struct fake_reload *reload)
{
    fake_reload_begin(fake, yaml, reload);
    FAKE_WAIT(fake, reload->over);
    return reload->error;
}

/* Waits for a request to a worker that is not automatic. Those about accounts, which come before
 * each client, are answered on the way. */
static inline struct channel_message *fake_worker_expect(struct fake *fake, uint32_t device,
                                                         uint16_t opcode)
{
    struct fake_worker *worker = &fake->worker[device];
    FAKE_WAIT(fake, fake_worker_take(worker));
    while (worker->message.header.opcode == PROTO_WORKER_ACCOUNT) {
        fake_answer_account(worker, &worker->message);
        FAKE_WAIT(fake, fake_worker_take(worker));
    }
    assert_int_equal(worker->message.header.opcode, opcode);
    return &worker->message;
}

/* The client's default stream has so many commands in flight from now on. */
static inline void fake_put_in_flight(const struct fake *fake, const struct session *session,
                                      uint64_t commands)
{
    assert_int_equal(pwrite(session->shadow.fd, &commands, sizeof commands,
                            (off_t)(fake->settings.streams * sizeof commands)),
                     sizeof commands);
}

static inline void fake_say_fault(const struct fake *fake, uint32_t device, uint32_t error)
{
    struct proto_worker_fault fault = {.error = error, .text = "kernel f used 0x0"};
    assert_int_equal(
        channel_send(fake->worker[device].fd,
                     &(struct channel_packet){.opcode = PROTO_WORKER_FAULT, .body = &fault}),
        0);
}

/* All clients end with their worker: they have waited for one for too long already. */
static inline void fake_doom_clients(struct fake *fake)
{
    struct session *session;
    LIST_FOR_EACH (session, &fake->supervisor->server.session_list, link)
        session->restore.held_at = 1;
    for (uint32_t i = 0; i < fake->supervisor->server.device_count; i++)
        fake->supervisor->server.devices[i].served = false;
}

/* The worker ends without a word. Its clients go on with the next one. */
static inline void fake_lose_worker(struct fake *fake, uint32_t device)
{
    close(fake->worker[device].fd);
    fake->worker[device].fd = -1;
}

/* And its clients end too. */
static inline void fake_kill_worker(struct fake *fake, uint32_t device)
{
    fake_doom_clients(fake);
    fake_lose_worker(fake, device);
}

/* ---- the clients' side ---- */

static inline int fake_connect(struct fake *fake)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    clients_accept(fake->supervisor, pair[1]);
    return pair[0];
}

static inline uint64_t fake_send_fd(struct fake *fake, int fd, uint16_t opcode, const void *body,
                                    const int *fds, unsigned fd_count)
{
    uint64_t serial = ++fake->next_serial;
    assert_int_equal(channel_send(fd, &(struct channel_packet){.opcode = opcode,
                                                               .serial = serial,
                                                               .body = body,
                                                               .fds = fds,
                                                               .fd_count = fd_count}),
                     0);
    return serial;
}

static inline uint64_t fake_send(struct fake *fake, int fd, uint16_t opcode, const void *body)
{
    return fake_send_fd(fake, fd, opcode, body, NULL, 0);
}

static inline int fake_take(struct fake *fake, int fd)
{
    return channel_receive(fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &fake->message);
}

/* Waits for one message of this opcode; its body. Descriptors are the test's to close. */
static inline const void *fake_expect(struct fake *fake, int fd, uint16_t opcode)
{
    int result = CHANNEL_EMPTY;
    FAKE_WAIT(fake, (result = fake_take(fake, fd)) != CHANNEL_EMPTY);
    assert_int_equal(result, 0);
    if (fake->message.header.opcode == PROTO_FAILED && opcode != PROTO_FAILED)
        print_message("failed: %s\n", ((const struct proto_failed *)fake->message.body)->text);
    assert_int_equal(fake->message.header.opcode, opcode);
    return fake->message.body;
}

static inline void fake_expect_failed(struct fake *fake, int fd, uint32_t error, const char *word)
{
    const struct proto_failed *failed = fake_expect(fake, fd, PROTO_FAILED);
    assert_int_equal(failed->error, error);
    if (!strstr(failed->text, word))
        print_message("no \"%s\" in: %s\n", word, failed->text);
    assert_non_null(strstr(failed->text, word));
}

/* Waits for `ended` with this error, the word in its text, then for the end; closes. */
static inline void fake_expect_ended(struct fake *fake, int fd, uint32_t error, const char *word)
{
    const struct proto_ended *ended = fake_expect(fake, fd, PROTO_ENDED);
    assert_int_equal(ended->error, error);
    if (!strstr(ended->text, word))
        print_message("no \"%s\" in: %s\n", word, ended->text);
    assert_non_null(strstr(ended->text, word));
    FAKE_WAIT(fake, fake_take(fake, fd) == CHANNEL_CLOSED);
    close(fd);
}

static inline int fake_greet(struct fake *fake)
{
    int fd = fake_connect(fake);
    struct proto_hello hello = {.major = PROTO_MAJOR, .minor = PROTO_MINOR};
    fake_send(fake, fd, PROTO_HELLO, &hello);
    fake_expect(fake, fd, PROTO_WELCOME);
    return fd;
}

/* Attaches with a memory limit (0: none asked) and a group (NULL: none). */
static inline void fake_attach_greeted(struct fake *fake, int fd, uint32_t device, uint64_t limit,
                                       const uint8_t *group, struct proto_attached *attached)
{
    struct proto_attach body = {
        .device = device, .allowance = PROTO_ALLOWANCE_UNSET, .name = "test"};
    if (limit)
        body.allowance.memory.limit = limit;
    if (group)
        memcpy(body.group, group, sizeof body.group);
    fake_send(fake, fd, PROTO_ATTACH, &body);
    const struct proto_attached *got = fake_expect(fake, fd, PROTO_ATTACHED);
    if (attached)
        *attached = *got;
    channel_close_fds(&fake->message);
}

static inline int fake_attach(struct fake *fake, uint32_t device, uint64_t limit,
                              const uint8_t *group, struct proto_attached *attached)
{
    int fd = fake_greet(fake);
    fake_attach_greeted(fake, fd, device, limit, group, attached);
    return fd;
}

static inline uint64_t fake_alloc(struct fake *fake, int fd, uint64_t count)
{
    struct proto_memory_alloc body = {.count = count};
    fake_send(fake, fd, PROTO_MEMORY_ALLOC, &body);
    const struct proto_memory_allocated *got = fake_expect(fake, fd, PROTO_MEMORY_ALLOCATED);
    assert_true(got->count >= count);
    return got->address;
}

/* A host buffer. buffer: NULL, or gets its descriptor, which is the caller's to close. */
static inline uint64_t fake_host_alloc(struct fake *fake, int fd, uint64_t count, int *buffer)
{
    struct proto_host_alloc body = {.count = count};
    fake_send(fake, fd, PROTO_HOST_ALLOC, &body);
    const struct proto_host_allocated *got = fake_expect(fake, fd, PROTO_HOST_ALLOCATED);
    assert_int_equal(got->count, (count + 4095) & ~UINT64_C(4095));
    uint64_t address = got->address;
    int taken = channel_take_fd(&fake->message, 0);
    assert_int_equal(fcntl(taken, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    if (buffer)
        *buffer = taken;
    else
        close(taken);
    return address;
}

static inline void fake_host_refused(struct fake *fake, int fd, uint64_t count, uint32_t error,
                                     const char *word)
{
    struct proto_host_alloc body = {.count = count};
    fake_send(fake, fd, PROTO_HOST_ALLOC, &body);
    fake_expect_failed(fake, fd, error, word);
}

static inline void fake_alloc_refused(struct fake *fake, int fd, uint64_t count, uint32_t error,
                                      const char *word)
{
    struct proto_memory_alloc body = {.count = count};
    fake_send(fake, fd, PROTO_MEMORY_ALLOC, &body);
    fake_expect_failed(fake, fd, error, word);
}

static inline void fake_free(struct fake *fake, int fd, uint64_t address)
{
    struct proto_memory_free body = {.address = address};
    fake_send(fake, fd, PROTO_MEMORY_FREE, &body);
    fake_expect(fake, fd, PROTO_DONE);
}

static inline void fake_host_free(struct fake *fake, int fd, uint64_t address)
{
    struct proto_host_free body = {.address = address};
    fake_send(fake, fd, PROTO_HOST_FREE, &body);
    fake_expect(fake, fd, PROTO_DONE);
}

/* Asks for a module of this text, which is said to be `count` bytes long. */
static inline void fake_send_image(struct fake *fake, int fd, const char *text, uint64_t count)
{
    struct proto_module_load body = {.count = count};
    int image = memfd_create("test-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(image, text, strlen(text)), (ssize_t)strlen(text));
    fake_send_fd(fake, fd, PROTO_MODULE_LOAD, &body, &image, 1);
    close(image);
}

/* Returns the module's number. */
static inline uint32_t fake_load(struct fake *fake, int fd, const char *text)
{
    fake_send_image(fake, fd, text, strlen(text));
    return ((const struct proto_module_loaded *)fake_expect(fake, fd, PROTO_MODULE_LOADED))->module;
}

static inline struct proto_memory_info fake_usage(struct fake *fake, int fd)
{
    fake_send(fake, fd, PROTO_MEMORY_QUERY, NULL);
    return *(const struct proto_memory_info *)fake_expect(fake, fd, PROTO_MEMORY_INFO);
}

/* Everybody is gone and everything is back, before the workers are stopped. */
static inline void fake_expect_nothing_left(struct fake *fake)
{
    FAKE_WAIT(fake, fake->supervisor->server.sessions == 0);
    assert_int_equal(fake->supervisor->server.quotas[RESOURCE_HOST_MEMORY].used, 0);
    assert_int_equal(fake->supervisor->server.fds.used, 0);
    assert_int_equal(fake->supervisor->server.images.used, 0);
    assert_int_equal(fake->supervisor->server.cache.images, 0);
    assert_int_equal(fake->supervisor->server.plan.windows, 0);
    for (uint32_t i = 0; i < fake->devices; i++) {
        struct device *device = &fake->supervisor->server.devices[i];
        if (device->link)
            assert_int_equal(worker_link_outstanding(device->link), 0);
    }
}

static inline void fake_close(struct fake *fake)
{
    supervisor_stop(fake->supervisor);
    FAKE_WAIT(fake, fake->stopped && fake->supervisor->server.sessions == 0);
    uv_run(&fake->loop, UV_RUN_DEFAULT);
    supervisor_free(fake->supervisor);
    assert_int_equal(uv_loop_close(&fake->loop), 0);
    for (uint32_t i = 0; i < fake->devices; i++)
        if (fake->worker[i].fd >= 0)
            close(fake->worker[i].fd);
    assert_int_equal(fake_count_fds(), fake->fds_before);
}

#endif
