/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake: a supervisor in this process with clients and workers that are scripts on
 * socket pairs. One thread: whoever waits for a message turns the loop meanwhile.
 *
 * The fake worker keeps books: what it was asked to map and has not been asked to
 * unmap. fake_close checks that supervisor, worker and this process end with nothing.
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

#include "common/ipc/channel.h"
#include "common/error.h"
#include "common/ipc/timeline.h"
#include "server/supervisor/change.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/supervisor_private.h"
#include "server/supervisor/trace.h"
#include "server/supervisor/view.h"

#define MIB          (UINT64_C(1) << 20)
#define FAKE_GRAIN   (2 * MIB)
#define FAKE_DEVICES 2
#define FAKE_CLIENTS 64

struct fake_worker {
    int fd;
    bool automatic;  /* answers by itself */
    bool hold_frees; /* but not unmap, quiesce, host_unmap and host_drop */
    bool hold_detach;
    bool hold_loads;       /* of modules */
    uint32_t refuse_map;   /* this many maps are answered out_of_memory */
    uint64_t refuse_above; /* maps larger than this are, if not 0 */
    bool refuse_load;
    bool refuse_unmap;                   /* unmap, host_unmap and quiesce are answered unknown */
    const char *refuse_schedule;         /* in these words */
    const char *refuse_requests;         /* of accounts, likewise */
    struct proto_worker_account account; /* the latest that was set */
    uint32_t accounts;                   /* how often one was */
    struct proto_worker_schedule schedule;
    uint32_t schedules;
    bool sums; /* refuses requests that come to more than there is */
    struct proto_worker_limits client_limits[FAKE_CLIENTS]; /* by number of the client, if sums */
    uint32_t limits;                                        /* how often they were set */
    uint64_t mapped, host_mapped;
    uint32_t host_maps, host_keeps, host_lends, host_drops; /* how often */
    uint64_t global_bytes, resident_bytes;                  /* of every module */
    enum proto_unsaved unsaved;                             /* likewise */
    unsigned modules_lost, functions_lost;                  /* that it was told of */
    struct proto_stream_recovered recovered;                /* its answer about any stream */
    struct proto_worker_usage usage;                        /* of every client */
    uint32_t attached, detached, inspected, modules, quiesces, unloads;
    uint32_t restored, remaps, modules_again, resumed; /* of clients that another worker had */
    struct channel_message held[256];                  /* frees and detaches not answered yet */
    unsigned held_count;
    struct channel_message message;
};

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
    assert_int_equal(supervisor_add_devices(fake->supervisor, &discovery, &why), 0);
    for (uint32_t i = 0; i < devices; i++)
        fake_start_worker(fake, i, memory);
    fake_settle(fake);
    assert_true(fake->ready);
    for (uint32_t i = 0; i < devices; i++)
        assert_int_equal(fake->worker[i].schedules, 1);
}

/* ---- the worker's side ---- */

static inline void fake_reply(struct fake_worker *worker, const struct channel_message *request,
                              uint16_t opcode, const void *body, const int *fds, unsigned fd_count)
{
    assert_int_equal(
        channel_send(worker->fd, &(struct channel_packet){.opcode = opcode,
                                                          .serial = request->header.serial,
                                                          .client = request->header.client,
                                                          .body = body,
                                                          .fds = fds,
                                                          .fd_count = fd_count}),
        0);
}

static inline void fake_answer_map(struct fake_worker *worker,
                                   const struct channel_message *message)
{
    struct proto_worker_map body;
    memcpy(&body, message->body, sizeof body);
    if (worker->refuse_map || (worker->refuse_above && body.count > worker->refuse_above)) {
        if (worker->refuse_map)
            worker->refuse_map--;
        channel_send_failed(worker->fd, message->header.serial, message->header.client,
                            PROTO_ERROR_OUT_OF_MEMORY, "the device is full");
        return;
    }
    int fd = memfd_create("fake-device", MFD_CLOEXEC);
    struct proto_worker_mapped answer = {.address = body.address};
    worker->mapped += body.count;
    fake_reply(worker, message, PROTO_WORKER_MAPPED, &answer, &fd, 1);
    close(fd);
}

static inline void fake_answer_free(struct fake_worker *worker,
                                    const struct channel_message *message);

/* A worker answers nothing about a client after the answer to its detach. */
static inline void fake_release_client(struct fake_worker *worker, uint32_t client)
{
    for (unsigned i = 0; i < worker->held_count; i++) {
        struct channel_message *held = &worker->held[i];
        if (held->header.client != client || !held->header.opcode ||
            held->header.opcode == PROTO_WORKER_DETACH)
            continue;
        fake_answer_free(worker, held);
        held->header.opcode = 0;
    }
}

static inline void fake_answer_free(struct fake_worker *worker,
                                    const struct channel_message *message)
{
    struct proto_worker_unmap body = {0};
    if (worker->refuse_unmap && message->header.opcode != PROTO_WORKER_DETACH) {
        channel_send_failed(worker->fd, message->header.serial, message->header.client,
                            PROTO_ERROR_UNKNOWN, "the driver keeps it");
        return;
    }
    memcpy(&body, message->data + sizeof(struct proto_message_header), message->type->bytes);
    if (message->header.opcode == PROTO_WORKER_UNMAP)
        worker->mapped -= body.count;
    else if (message->header.opcode == PROTO_WORKER_HOST_UNMAP)
        worker->host_mapped -= body.count;
    else if (message->header.opcode == PROTO_WORKER_QUIESCE)
        worker->quiesces++;
    else
        worker->detached++;
    if (message->header.opcode != PROTO_WORKER_DETACH) {
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        return;
    }
    struct proto_worker_usage usage = {.launches = 17};
    fake_release_client(worker, message->header.client);
    worker->client_limits[message->header.client % FAKE_CLIENTS] = (struct proto_worker_limits){0};
    fake_reply(worker, message, PROTO_WORKER_USAGE, &usage, NULL, 0);
}

static inline bool fake_holds(const struct fake_worker *worker, uint16_t opcode)
{
    return (worker->hold_detach && opcode == PROTO_WORKER_DETACH) ||
           (worker->hold_loads && opcode == PROTO_WORKER_MODULE_LOAD) ||
           (worker->hold_frees &&
            (opcode == PROTO_WORKER_UNMAP || opcode == PROTO_WORKER_QUIESCE ||
             opcode == PROTO_WORKER_HOST_UNMAP || opcode == PROTO_WORKER_HOST_DROP));
}

static inline void fake_answer_module(struct fake_worker *worker,
                                      const struct channel_message *message)
{
    if (message->header.opcode == PROTO_WORKER_MODULE_INSPECT) {
        struct proto_worker_module_needs needs = {.global_bytes = worker->global_bytes,
                                                  .resident_bytes = worker->resident_bytes,
                                                  .unsaved = worker->unsaved};
        worker->inspected++;
        fake_reply(worker, message, PROTO_WORKER_MODULE_NEEDS, &needs, NULL, 0);
    } else if (message->header.opcode == PROTO_WORKER_MODULE_LOAD) {
        struct proto_worker_module_load body;
        memcpy(&body, message->body, sizeof body);
        struct proto_module_loaded loaded = {.module = body.module, .functions = 1};
        if (worker->refuse_load) {
            channel_send_failed(worker->fd, message->header.serial, message->header.client,
                                PROTO_ERROR_INVALID_PTX, "line 3");
            return;
        }
        worker->modules++;
        worker->modules_again += body.again;
        fake_reply(worker, message, PROTO_MODULE_LOADED, &loaded, NULL, 0);
    } else {
        worker->unloads++;
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
    }
}

/* True: it has refused, in words. */
static inline bool fake_refuses_sums(struct fake_worker *worker,
                                     const struct channel_message *message)
{
    uint64_t threads = 0, time = 0;
    for (int i = 0; worker->sums && i < FAKE_CLIENTS; i++) {
        threads += worker->client_limits[i].allowance.threads.request;
        time += worker->client_limits[i].allowance.time.request;
    }
    bool timed =
        worker->schedule.mode == PROTO_MODE_STRICT || worker->schedule.mode == PROTO_MODE_FAIR;
    if (threads <= PROTO_PERCENT_WHOLE && !(timed && time > PROTO_PERCENT_WHOLE))
        return false;
    channel_send_failed(worker->fd, message->header.serial, message->header.client,
                        PROTO_ERROR_INVALID_VALUE, "threads come to %u, time to %u",
                        (unsigned)threads, (unsigned)time);
    return true;
}

static inline void fake_answer_worker_limits(struct fake_worker *worker,
                                             const struct channel_message *message,
                                             const struct proto_worker_limits *share)
{
    struct proto_worker_attached attached = {
        .multiprocessors = 64, .partitioned = 1, .sm_groups = {5}};
    struct proto_worker_limits *mine =
        &worker->client_limits[message->header.client % FAKE_CLIENTS];
    struct proto_worker_limits before = *mine;
    *mine = *share;
    if (fake_refuses_sums(worker, message))
        *mine = before;
    else
        fake_reply(worker, message, PROTO_WORKER_ATTACHED, &attached, NULL, 0);
}

static inline void fake_answer_attach(struct fake_worker *worker,
                                      const struct channel_message *message)
{
    struct proto_worker_attach body;
    memcpy(&body, message->data + sizeof(struct proto_message_header), sizeof body);
    struct proto_worker_limits share = {.allowance = body.allowance};
    memcpy(share.accounts, body.accounts, sizeof share.accounts);
    worker->attached++;
    worker->restored += body.restored;
    fake_answer_worker_limits(worker, message, &share);
}

static inline void fake_answer_limits(struct fake_worker *worker,
                                      const struct channel_message *message)
{
    struct proto_worker_limits share;
    memcpy(&share, message->data + sizeof(struct proto_message_header), sizeof share);
    /* Without accounts those stay that the client has. */
    if (!share.accounts[0])
        memcpy(share.accounts,
               worker->client_limits[message->header.client % FAKE_CLIENTS].accounts,
               sizeof share.accounts);
    worker->limits++;
    fake_answer_worker_limits(worker, message, &share);
}

static inline void fake_answer_schedule(struct fake_worker *worker,
                                        const struct channel_message *message)
{
    struct proto_worker_schedule before = worker->schedule;
    worker->schedules++;
    if (worker->refuse_schedule) {
        channel_send_failed(worker->fd, message->header.serial, message->header.client,
                            PROTO_ERROR_INVALID_VALUE, "%s", worker->refuse_schedule);
        return;
    }
    memcpy(&worker->schedule, message->body, sizeof worker->schedule);
    if (fake_refuses_sums(worker, message))
        worker->schedule = before;
    else
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
}

static inline void fake_answer_account(struct fake_worker *worker,
                                       const struct channel_message *message)
{
    struct proto_worker_account account;
    memcpy(&account, message->body, sizeof account);
    if (worker->refuse_requests && account.time_request) {
        channel_send_failed(worker->fd, message->header.serial, message->header.client,
                            PROTO_ERROR_INVALID_VALUE, "%s", worker->refuse_requests);
        return;
    }
    worker->account = account;
    worker->accounts++;
    fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
}

/* Buffers that are kept between two uses. */
static inline void fake_answer_kept(struct fake_worker *worker,
                                    const struct channel_message *message)
{
    struct proto_worker_host_drop drop;
    if (message->header.opcode == PROTO_WORKER_HOST_DROP) {
        memcpy(&drop, message->body, sizeof drop);
        worker->host_mapped -= drop.count;
        worker->host_drops++;
    } else if (message->header.opcode == PROTO_WORKER_HOST_KEEP) {
        worker->host_keeps++;
    } else {
        worker->host_lends++;
    }
    fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
}

static inline void fake_answer(struct fake_worker *worker, const struct channel_message *message)
{
    struct proto_worker_usage usage = worker->usage;
    usage.launches = 17;
    struct proto_linked linked = {.link = 1};
    struct proto_worker_host_map map;
    struct proto_worker_remap remap;
    struct proto_stream_create stream;
    struct proto_stream_created created = {0};
    if (fake_holds(worker, message->header.opcode)) {
        assert_true(worker->held_count < 256);
        worker->held[worker->held_count++] = *message;
        return;
    }
    switch (message->header.opcode) {
    case PROTO_WORKER_ATTACH:
        fake_answer_attach(worker, message);
        break;
    case PROTO_WORKER_SCHEDULE:
        fake_answer_schedule(worker, message);
        break;
    case PROTO_WORKER_LIMITS:
        fake_answer_limits(worker, message);
        break;
    case PROTO_WORKER_ACCOUNT:
        fake_answer_account(worker, message);
        break;
    case PROTO_WORKER_MAP:
        fake_answer_map(worker, message);
        break;
    case PROTO_WORKER_REMAP:
        memcpy(&remap, message->body, sizeof remap);
        worker->mapped += remap.count;
        worker->remaps++;
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        break;
    case PROTO_WORKER_RESUME:
        worker->resumed++;
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        break;
    case PROTO_STREAM_CREATE:
        memcpy(&stream, message->body, sizeof stream);
        created.stream = stream.stream;
        fake_reply(worker, message, PROTO_STREAM_CREATED, &created, NULL, 0);
        break;
    case PROTO_WORKER_HOST_MAP:
        memcpy(&map, message->body, sizeof map);
        worker->host_mapped += map.count;
        worker->host_maps++;
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        break;
    case PROTO_WORKER_RINGS:
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        break;
    case PROTO_WORKER_HOST_KEEP:
    case PROTO_WORKER_HOST_LEND:
    case PROTO_WORKER_HOST_DROP:
        fake_answer_kept(worker, message);
        break;
    case PROTO_WORKER_UNMAP:
    case PROTO_WORKER_HOST_UNMAP:
    case PROTO_WORKER_QUIESCE:
    case PROTO_WORKER_DETACH:
        fake_answer_free(worker, message);
        break;
    case PROTO_WORKER_MODULE_INSPECT:
    case PROTO_WORKER_MODULE_LOAD:
    case PROTO_MODULE_UNLOAD:
        fake_answer_module(worker, message);
        break;
    case PROTO_STREAM_RECOVER:
        fake_reply(worker, message, PROTO_STREAM_RECOVERED, &worker->recovered, NULL, 0);
        break;
    case PROTO_WORKER_MODULE_LOST:
        worker->modules_lost++;
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        break;
    case PROTO_WORKER_FUNCTION_LOST:
        worker->functions_lost++;
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
        break;
    case PROTO_WORKER_USAGE_QUERY:
        fake_reply(worker, message, PROTO_WORKER_USAGE, &usage, NULL, 0);
        break;
    case PROTO_WORKER_LINK:
        fake_reply(worker, message, PROTO_LINKED, &linked, NULL, 0);
        break;
    default:
        fake_reply(worker, message, PROTO_DONE, NULL, NULL, 0);
    }
}

/* Takes the next request of a worker that is not automatic; false if there is none. The ledger,
 * which every worker gets first, is answered on the way. */
static inline bool fake_worker_take(struct fake_worker *worker)
{
    int result;
    while ((result = channel_receive(worker->fd, PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR,
                                     &worker->message)) == 0 &&
           worker->message.header.opcode == PROTO_WORKER_LEDGER) {
        channel_close_fds(&worker->message);
        fake_reply(worker, &worker->message, PROTO_DONE, NULL, NULL, 0);
    }
    if (result == CHANNEL_EMPTY || result == CHANNEL_CLOSED)
        return false;
    assert_int_equal(result, 0);
    return true;
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
        uint64_t fake_end = timeline_now() + UINT64_C(10000000000);                                \
        while (!(condition)) {                                                                     \
            assert_true(timeline_now() < fake_end);                                                \
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
    assert_int_equal(fake->supervisor->server.accounts[RESOURCE_HOST_MEMORY].used, 0);
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
