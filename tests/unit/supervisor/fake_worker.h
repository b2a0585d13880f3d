/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake_worker: a worker that is a script on a socket pair. By itself it answers each request of the
 * supervisor, as its members say. It keeps books: what it was asked to map and has not been asked
 * to unmap.
 */
#ifndef GPUSHARE_TESTS_UNIT_SUPERVISOR_FAKE_WORKER_H
#define GPUSHARE_TESTS_UNIT_SUPERVISOR_FAKE_WORKER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/ipc/channel.h"
#include "tests/support/failed.h"

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
        failed_send(worker->fd, message->header.serial, message->header.client,
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
        failed_send(worker->fd, message->header.serial, message->header.client, PROTO_ERROR_UNKNOWN,
                    "the driver keeps it");
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
            failed_send(worker->fd, message->header.serial, message->header.client,
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
    failed_send(worker->fd, message->header.serial, message->header.client,
                PROTO_ERROR_INVALID_VALUE, "threads come to %u, time to %u", (unsigned)threads,
                (unsigned)time);
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
        failed_send(worker->fd, message->header.serial, message->header.client,
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
        failed_send(worker->fd, message->header.serial, message->header.client,
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

#endif
