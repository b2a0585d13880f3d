/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * harness: a whole worker in this process, on the fake driver, with the test as its
 * supervisor and as its clients.
 */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_HARNESS_H
#define GPUSHARE_TESTS_UNIT_WORKER_HARNESS_H

#include "common/error.h"
#include "tests/support/granted.h"
#include "tests/support/served_rings.h"
#include "tests/unit/worker/fake.h"

#include <errno.h>
#include <poll.h>

#include "common/clock.h"
#include "common/ipc/arena.h"
#include "server/worker/control/control.h"
#include "server/worker/control/control_client.h"
#include "server/worker/worker.h"
#include "tests/unit/worker/whole_gpu.h"

#define DEVICE_BASE  ARENA_DEVICE_BASE
#define HOST_BASE    ARENA_HOST_BASE
#define ARENA_USED   (UINT64_C(1) << 32)
#define WINDOW_BYTES (UINT64_C(1) << 28)
#define STREAMS      8u

#define HARNESS_CLIENTS 64

static struct harness {
    struct cuda_driver driver;
    struct worker worker;
    pthread_t thread;
    int channel;
    int result; /* of control_serve */
    uint64_t serial;
    struct channel_message message; /* the last one received */
    /* The supervisor's part: which numbers are given. */
    bool taken[HARNESS_CLIENTS][STREAMS];
    uint32_t events, functions;
    uint32_t streams_ended, events_ended, released; /* as the worker said */
} harness;

/* The client's side of what it shares. */
struct peer {
    uint32_t number;
    struct served_rings rings;
    struct shm status, shadows;
    int doorbell;
    struct ring_producer producers[STREAMS];
    uint32_t marks[STREAMS][PROTO_RING_ENTRIES];
    uint64_t device_base, host_base;
};

static inline void *harness_main(void *unused)
{
    (void)unused;
    /* The device was opened by another thread. */
    gpu_enter(&harness.worker.gpu);
    harness.result = control_serve(&harness.worker);
    return NULL;
}

/* Takes note of a number that is free again, and of memory; false for any other message. */
static inline bool harness_note(const struct channel_message *message)
{
    struct proto_worker_stream_ended ended;
    if (message->header.opcode == PROTO_WORKER_EVENT_ENDED) {
        harness.events_ended++;
        return true;
    }
    if (message->header.opcode == PROTO_WORKER_RELEASED) {
        harness.released++;
        return true;
    }
    if (message->header.opcode != PROTO_WORKER_STREAM_ENDED)
        return false;
    memcpy(&ended, message->body, sizeof ended);
    harness.taken[message->header.client % HARNESS_CLIENTS][ended.stream] = false;
    harness.streams_ended++;
    return true;
}

/* Waits for a message of the worker that harness_note does not take, at most ten seconds. Returns
 * its opcode. */
static inline uint16_t harness_receive(void)
{
    struct pollfd polled = {.fd = harness.channel, .events = POLLIN};
    channel_close_fds(&harness.message);
    do {
        assert_int_equal(poll(&polled, 1, 10000), 1);
        assert_int_equal(channel_receive(harness.channel, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER,
                                         &harness.message),
                         0);
    } while (harness_note(&harness.message));
    return harness.message.header.opcode;
}

/* Is there such a message within so many milliseconds? */
static inline bool harness_has_message(int milliseconds)
{
    static struct channel_message note;
    struct pollfd polled = {.fd = harness.channel, .events = POLLIN};
    struct proto_message_header next;
    while (poll(&polled, 1, milliseconds) == 1) {
        if (recv(harness.channel, &next, sizeof next, MSG_PEEK) != sizeof next ||
            (next.opcode != PROTO_WORKER_STREAM_ENDED && next.opcode != PROTO_WORKER_EVENT_ENDED &&
             next.opcode != PROTO_WORKER_RELEASED))
            return true;
        assert_int_equal(
            channel_receive(harness.channel, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER, &note), 0);
        harness_note(&note);
    }
    return false;
}

static inline uint64_t harness_send(uint16_t opcode, uint32_t client, const void *body,
                                    const void *tail, size_t tail_bytes, const int *fds,
                                    unsigned fd_count)
{
    uint64_t serial = ++harness.serial;
    assert_int_equal(
        channel_send(harness.channel, &(struct channel_packet){.opcode = opcode,
                                                               .serial = serial,
                                                               .client = client,
                                                               .body = body,
                                                               .tail = tail,
                                                               .tail_bytes = tail_bytes,
                                                               .fds = fds,
                                                               .fd_count = fd_count}),
        0);
    return serial;
}

/* A schedule of this mode with leases and quanta of so many nanoseconds, and defaults otherwise. */
static inline struct proto_worker_schedule harness_schedule(enum proto_mode mode, uint64_t lease)
{
    return (struct proto_worker_schedule){.mode = mode,
                                          .precision = PROTO_PRECISION_DEFAULT,
                                          .lease = lease,
                                          .quantum = lease,
                                          .window_limit = PROTO_WINDOW_LIMIT_DEFAULT,
                                          .local_memory = PROTO_LOCAL_MEMORY_DEFAULT};
}

/* Sends and expects this answer; its body is in harness.message. */
static inline const void *harness_ask(uint16_t opcode, uint32_t client, const void *body,
                                      uint16_t expected)
{
    uint64_t serial = harness_send(opcode, client, body, NULL, 0, NULL, 0);
    uint16_t got = harness_receive();
    if (got == PROTO_FAILED && expected != PROTO_FAILED)
        print_message("refused: %s\n", ((const struct proto_failed *)harness.message.body)->text);
    assert_int_equal(got, expected);
    assert_int_equal(harness.message.header.serial, serial);
    return harness.message.body;
}

static inline void harness_set_mode(enum proto_mode mode, uint64_t lease)
{
    struct proto_worker_schedule wanted = harness_schedule(mode, lease);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
}

static inline uint32_t harness_error(void)
{
    assert_int_equal(harness.message.header.opcode, PROTO_FAILED);
    return ((const struct proto_failed *)harness.message.body)->error;
}

/* driver: the fake, or any other; it must outlive the worker. */
static inline int harness_start_with(void **state, const struct cuda_driver *driver)
{
    (void)state;
    struct gpu gpu;
    struct error why = {0};
    int pair[2];
    for (int i = 0; i < PROTO_FDS_MAX; i++)
        harness.message.fds[i] = -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    harness.channel = pair[0];
    harness.events = harness.functions = harness.streams_ended = harness.events_ended =
        harness.released = 0;
    const struct gpu_options options = {driver, 0, NULL, {DEVICE_BASE, HOST_BASE, ARENA_USED}, 0};
    uint32_t error = whole_gpu_open(&gpu, &options, &why);
    if (error)
        print_message("%s\n", why.text);
    assert_int_equal(error, 0);
    assert_int_equal(worker_start(&harness.worker, &gpu, pair[1], 0, &why), 0);
    assert_int_equal(pthread_create(&harness.thread, NULL, harness_main, NULL), 0);
    assert_int_equal(harness_receive(), PROTO_KERNEL_HEAP);
    assert_int_equal(harness_receive(), PROTO_DEVICE_INFO);
    return 0;
}

static inline int harness_setup(void **state)
{
    fake_reset();
    harness.driver = fake_driver();
    return harness_start_with(state, &harness.driver);
}

/* Ends the worker as the supervisor's death would, and checks that nothing is left. */
static inline int harness_stop(void **state)
{
    (void)state;
    channel_close_fds(&harness.message);
    close(harness.channel);
    pthread_join(harness.thread, NULL);
    int result = harness.result;
    fake_release();
    assert_true(control_client_drain(&harness.worker));
    control_client_drop_all(&harness.worker);
    int channel = harness.worker.channel;
    worker_stop(&harness.worker);
    close(channel);
    assert_int_equal(fake.drained_busy, 0);
    assert_int_equal(fake.live_streams, 0);
    assert_int_equal(fake.live_events, 0);
    assert_int_equal(fake.live_maps, 0);
    assert_int_equal(fake.live_registers, 0);
    assert_int_equal(fake.live_modules, 0);
    assert_int_equal(fake.live_green, 0);
    return result == CONTROL_SUPERVISOR_GONE || result == CONTROL_CONTEXT_LOST ? 0 : -1;
}

/* Makes the partition of `count` SM groups from `first` on, as a quiet window would, for tests
 * whose device never drains. */
static inline void harness_make_partition(uint32_t first, uint32_t count)
{
    struct worker *worker = &harness.worker;
    struct sm_group_set set = {{0}};
    struct partition *made;
    for (uint32_t i = 0; i < count; i++)
        sm_group_set_add(&set, first + i);
    assert_int_equal(partition_make(&worker->partitions, &set, &made), CUDA_OK);
    assert_int_equal(stream_pool_add_partition(&worker->pool, made), CUDA_OK);
    assert_int_equal(stream_pool_prepare(&worker->pool, made, 0, 4), CUDA_OK);
    partition_publish(&worker->partitions, made);
    partition_put(&worker->partitions, made);
}

/* Asks for a client with this limit of the multiprocessors; the answer is not awaited. */
static inline struct peer *peer_offer(uint32_t number, uint32_t percentage, uint32_t priority)
{
    struct peer *peer = calloc(1, sizeof *peer);
    peer->number = number;
    assert_int_equal(served_rings_make(&peer->rings, STREAMS), 0);
    assert_int_equal(shm_create(&peer->status, "status", ring_status_bytes(STREAMS)), 0);
    assert_int_equal(shm_create(&peer->shadows, "shadows", journal_shadow_bytes(STREAMS)), 0);
    peer->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    peer->device_base = DEVICE_BASE + number * WINDOW_BYTES;
    peer->host_base = HOST_BASE + number * WINDOW_BYTES;
    struct proto_worker_attach attach = {.device_base = peer->device_base,
                                         .host_base = peer->host_base,
                                         .window_bytes = WINDOW_BYTES,
                                         .streams = STREAMS,
                                         .allowance = granted_threads(percentage),
                                         .accounts = {1}, /* all are of one user */
                                         .name = "peer"};
    attach.allowance.priority = priority;
    int fds[4] = {peer->rings.fd, peer->status.fd, peer->shadows.fd, peer->doorbell};
    memset(harness.taken[number % HARNESS_CLIENTS], 0, sizeof harness.taken[0]);
    harness_send(PROTO_WORKER_ATTACH, number, &attach, NULL, 0, fds, 4);
    return peer;
}

static inline struct peer *peer_attach_with(uint32_t number, uint32_t percentage, uint32_t priority)
{
    struct peer *peer = peer_offer(number, percentage, priority);
    if (harness_receive() == PROTO_FAILED)
        print_message("%s\n", ((const struct proto_failed *)harness.message.body)->text);
    assert_int_equal(harness.message.header.opcode, PROTO_WORKER_ATTACHED);
    struct proto_worker_rings rings = {.count = STREAMS};
    harness_send(PROTO_WORKER_RINGS, number, &rings, NULL, 0, &peer->rings.segment_fd, 1);
    assert_int_equal(harness_receive(), PROTO_DONE);
    ring_producer_open(&peer->producers[0], ring_at(peer->rings.base, peer->status.base, 0),
                       peer->marks[0], 0);
    return peer;
}

static inline struct peer *peer_attach(uint32_t number)
{
    return peer_attach_with(number, PROTO_PERCENT_WHOLE, 0);
}

/* The process is gone; the supervisor has not said so yet. */
static inline void peer_free(struct peer *peer)
{
    served_rings_release(&peer->rings);
    shm_release(&peer->status);
    shm_release(&peer->shadows);
    close(peer->doorbell);
    free(peer);
}

static inline void peer_detach(struct peer *peer)
{
    harness_ask(PROTO_WORKER_DETACH, peer->number, NULL, PROTO_WORKER_USAGE);
    peer_free(peer);
}

/* Takes the lowest number of a stream that is free. */
static inline uint32_t peer_stream_number(const struct peer *peer)
{
    bool *taken = harness.taken[peer->number % HARNESS_CLIENTS];
    uint32_t number = 1;
    while (number < STREAMS && taken[number])
        number++;
    assert_true(number < STREAMS);
    taken[number] = true;
    return number;
}

static inline uint32_t peer_event(const struct peer *peer)
{
    struct proto_event_create create = {.event = ++harness.events};
    const struct proto_event_created *created =
        harness_ask(PROTO_EVENT_CREATE, peer->number, &create, PROTO_EVENT_CREATED);
    assert_int_equal(created->event, create.event);
    return create.event;
}

static inline uint32_t peer_stream(struct peer *peer, int32_t priority)
{
    struct proto_stream_create create = {.stream = peer_stream_number(peer), .priority = priority};
    const struct proto_stream_created *created =
        harness_ask(PROTO_STREAM_CREATE, peer->number, &create, PROTO_STREAM_CREATED);
    uint32_t stream = created->stream;
    assert_int_equal(stream, create.stream);
    ring_producer_open(&peer->producers[stream],
                       ring_at(peer->rings.base, peer->status.base, stream), peer->marks[stream],
                       created->value);
    return stream;
}

/* Pushes any 64 bytes; returns their timeline value. Waits for room. */
static inline uint64_t peer_push(struct peer *peer, uint32_t stream, const void *command)
{
    struct ring_producer *producer = &peer->producers[stream];
    struct ring_descriptor descriptor;
    memcpy(descriptor.bytes, command, 64);
    /* The test's earlier writes are ordered by the ring, which the worker maps at an address of
     * its own, where ThreadSanitizer sees no order: the lock that each fake call takes tells it. */
    pthread_mutex_lock(&fake.lock);
    pthread_mutex_unlock(&fake.lock);
    while (ring_room(producer) == RING_FULL)
        assert_int_equal(ring_wait_room(producer, ring_status_header(peer->status.base)), 0);
    if (ring_publish(producer, &descriptor))
        doorbell_ring(ring_client_header(peer->rings.base), stream, peer->doorbell);
    return producer->value;
}

static inline uint64_t peer_push_nop(struct peer *peer, uint32_t stream)
{
    struct proto_command_nop nop = {.opcode = PROTO_COMMAND_NOP};
    return peer_push(peer, stream, &nop);
}

static inline uint64_t peer_push_wait(struct peer *peer, uint32_t stream, uint32_t on,
                                      uint64_t value)
{
    struct proto_command_wait wait = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].stream = on, .on[0].value = value};
    return peer_push(peer, stream, &wait);
}

static inline uint32_t peer_wait(struct peer *peer, uint32_t stream, uint64_t value)
{
    struct ring *ring = &peer->producers[stream].ring;
    struct timeline timeline = {.stream = ring->status,
                                .status = ring_status_header(peer->status.base),
                                .ring = ring->header,
                                .header = ring_client_header(peer->rings.base),
                                .index = stream,
                                .eventfd = peer->doorbell};
    struct timeline_spin spin = {.spin_ns = 1000};
    return timeline_wait(&timeline, value, &spin, NULL, NULL);
}

static inline uint64_t peer_completed(struct peer *peer, uint32_t stream)
{
    return __atomic_load_n(&peer->producers[stream].ring.status->completed, __ATOMIC_SEQ_CST);
}

/* Waits until the submitter has read so far; for states that no message reports. */
static inline void peer_wait_head(struct peer *peer, uint32_t stream, uint64_t value)
{
    uint32_t *head = &peer->producers[stream].ring.status->head;
    uint64_t end = clock_now() + 10000000000u;
    uint32_t seen;
    while ((seen = __atomic_load_n(head, __ATOMIC_SEQ_CST)) != (uint32_t)value) {
        assert_true(clock_now() < end);
        sched_yield();
    }
}

static inline uint64_t peer_map(struct peer *peer, uint64_t offset, uint64_t count)
{
    struct proto_worker_map map = {.address = peer->device_base + offset, .count = count};
    harness_ask(PROTO_WORKER_MAP, peer->number, &map, PROTO_WORKER_MAPPED);
    return map.address;
}

static inline uint64_t peer_host_map(struct peer *peer, uint64_t offset, uint64_t count)
{
    struct proto_worker_host_map map = {.address = peer->host_base + offset, .count = count};
    struct shm shm;
    assert_int_equal(shm_create(&shm, "host", count), 0);
    harness_send(PROTO_WORKER_HOST_MAP, peer->number, &map, NULL, 0, &shm.fd, 1);
    assert_int_equal(harness_receive(), PROTO_DONE);
    shm_release(&shm);
    return map.address;
}

/* Sends an image; the answer is the caller's to receive. */
static inline void peer_send_text(struct peer *peer, uint32_t module, const char *text)
{
    struct shm shm;
    size_t length = strlen(text);
    assert_int_equal(shm_create(&shm, "image", length), 0);
    memcpy(shm.base, text, length);
    struct proto_worker_module_inspect inspect = {.module = module, .count = length};
    harness_send(PROTO_WORKER_MODULE_INSPECT, peer->number, &inspect, NULL, 0, &shm.fd, 1);
    shm_release(&shm);
}

static inline void peer_load_text(struct peer *peer, uint32_t module, const char *text,
                                  uint64_t global_base)
{
    peer_send_text(peer, module, text);
    assert_int_equal(harness_receive(), PROTO_WORKER_MODULE_NEEDS);
    struct proto_worker_module_load load = {.module = module, .global_base = global_base};
    harness_ask(PROTO_WORKER_MODULE_LOAD, peer->number, &load, PROTO_MODULE_LOADED);
}

static const char harness_ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                                  ".visible .entry kernel(.param .u64 a, .param .u64 b)\n"
                                  "{\n\tret;\n}\n";

static inline uint32_t peer_function(struct peer *peer, uint32_t module, const char *name)
{
    struct proto_function_get get = {.module = module, .function = ++harness.functions};
    harness_send(PROTO_FUNCTION_GET, peer->number, &get, name, strlen(name), NULL, 0);
    assert_int_equal(harness_receive(), PROTO_FUNCTION_INFO);
    assert_int_equal(((const struct proto_function_info *)harness.message.body)->function,
                     harness.functions);
    return harness.functions;
}

/* Loads the harness's module as the client's number 1 and returns a function of it. */
static inline uint32_t peer_kernel(struct peer *peer, const char *name)
{
    peer_load_text(peer, 1, harness_ptx, 0);
    return peer_function(peer, 1, name);
}

static inline struct proto_command_launch peer_launch(uint32_t function)
{
    return (struct proto_command_launch){.opcode = PROTO_COMMAND_LAUNCH,
                                         .function = function,
                                         .grid = {3, 2, 1},
                                         .block = {32, 2, 1},
                                         .parameter_bytes = 16,
                                         .inline_parameters = {1, 2, 3, 4, 5, 6, 7, 8}};
}

#endif
