/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The supervisor's half of the fake server: sockets and messages. */
#include "tests/support/fake_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/ipc/arena.h"
#include "common/ipc/channel.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/shm.h"
#include "common/ipc/timeline.h"
#include "common/util.h"
#include "tests/support/failed.h"
#include "tests/support/granted.h"

void fake_die(const char *what)
{
    perror(what);
    abort();
}

/* ---- replies ---- */

static void reply(struct fake_server *server, struct fake_client *client, uint16_t opcode,
                  const void *body, const int *fds, unsigned count)
{
    (void)channel_send(client->fd, &(struct channel_packet){.opcode = opcode,
                                                            .serial = server->message.header.serial,
                                                            .body = body,
                                                            .fds = fds,
                                                            .fd_count = count});
}

static void reply_done(struct fake_server *server, struct fake_client *client)
{
    reply(server, client, PROTO_DONE, NULL, NULL, 0);
}

static void refuse(struct fake_server *server, struct fake_client *client, uint32_t error,
                   const char *text)
{
    (void)failed_send(client->fd, server->message.header.serial, 0, error, "%s", text);
}

static void hang_up(struct fake_client *client)
{
    close(client->fd);
    client->fd = -1;
}

static void set_fault(struct fake_client *client, uint32_t error)
{
    timeline_fail(
        client->status.base,
        (struct proto_stream_status *)((uint8_t *)client->status.base + PROTO_STATUS_FIRST),
        client->granted.streams, error);
}

static void end_client(struct fake_client *client, uint32_t error, const char *words)
{
    struct proto_ended ended = {.error = error};
    snprintf(ended.text, sizeof ended.text, "%s", words);
    if (client->attached)
        set_fault(client, error);
    (void)channel_send(client->fd, &(struct channel_packet){.opcode = PROTO_ENDED, .body = &ended});
}

/* ---- requests ---- */

static void on_hello(struct fake_server *server, struct fake_client *client)
{
    struct proto_welcome welcome = {.major = PROTO_MAJOR,
                                    .minor = PROTO_MINOR - server->options.older,
                                    .devices = server->options.devices};
    strcpy(welcome.version, "fake");
    reply(server, client, PROTO_WELCOME, &welcome, NULL, 0);
}

static void on_device_query(struct fake_server *server, struct fake_client *client)
{
    const struct proto_device_query *query = server->message.body;
    struct proto_device_info info = {
        .device = query->device,
        .driver_version = 13000,
        .memory = UINT64_C(8) << 30,
        .granularity = 2 << 20,
        .multiprocessors = 132,
        .partition_multiprocessors = server->options.no_partitions ? 0 : 8,
        .compute_major = 9,
        .warp_threads = 32,
        .block_threads = 1024,
        .block_dimension = {1024, 1024, 64},
        .grid_dimension = {0x7fffffff, 65535, 65535},
        .block_shared_bytes = 48 << 10,
        .block_shared_optin_bytes = 227 << 10,
        .multiprocessor_shared_bytes = 228 << 10,
        .multiprocessor_threads = 2048,
        .block_registers = 65536,
        .priority_least = 0,
        .priority_greatest = -5,
    };
    memset(info.uuid, 0x10 + (int)query->device, sizeof info.uuid);
    snprintf(info.name, sizeof info.name, "fake device %u", query->device);
    reply(server, client, PROTO_DEVICE_INFO, &info, NULL, 0);
}

static void on_kernel_heap_query(struct fake_server *server, struct fake_client *client)
{
    struct proto_kernel_heap heap = {.bytes = UINT64_C(8) << 20};
    reply(server, client, PROTO_KERNEL_HEAP, &heap, NULL, 0);
}

static void next_window(struct fake_server *server, uint64_t *device, uint64_t *host)
{
    uint64_t offset = (uint64_t)server->windows_offered++ * WINDOW;
    *device = ARENA_DEVICE_BASE + offset;
    *host = ARENA_HOST_BASE + offset;
}

static void on_attach(struct fake_server *server, struct fake_client *client)
{
    uint32_t streams = server->options.streams;
    client->attach = *(const struct proto_attach *)server->message.body;
    client->number = 100 + server->attached_count;
    struct proto_attached *granted = &client->granted;
    *granted = (struct proto_attached){
        .client = client->number,
        .streams = streams,
        .window_bytes = WINDOW,
        .grant = {.allowance = granted_asked(&client->attach.allowance),
                  .multiprocessors = 132,
                  .mode = server->options.mode},
    };
    struct proto_allowance *allowance = &granted->grant.allowance;
    allowance->memory.limit = min(allowance->memory.limit, UINT64_C(1) << 30);
    allowance->host_memory.limit = server->options.host_limit;
    memset(granted->group, 7, sizeof granted->group);
    next_window(server, &granted->device_base, &granted->host_base);
    client->device_next = granted->device_base;
    client->host_next = granted->host_base;
    client->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    client->consumers = calloc(streams, sizeof *client->consumers);
    if (served_rings_make(&client->rings, streams) < 0 ||
        shm_create(&client->status, "fake-status", ring_status_bytes(streams)) < 0 ||
        !client->consumers)
        fake_die("fake: shared memory");
    for (uint32_t i = 0; i < streams; i++)
        ring_consumer_open(&client->consumers[i],
                           ring_at(client->rings.base, client->status.base, i), 0);
    client->streams_open = 1;
    int fds[3] = {client->rings.fd, shm_readonly_fd(&client->status), client->eventfd};
    client->attached = true;
    server->attached[server->attached_count++] = (unsigned)(client - server->clients);
    reply(server, client, PROTO_ATTACHED, granted, fds, 3);
    close(fds[1]);
}

static void on_window_move(struct fake_server *server, struct fake_client *client)
{
    struct proto_window window = {.window_bytes = WINDOW};
    next_window(server, &window.device_base, &window.host_base);
    client->granted.device_base = client->device_next = window.device_base;
    client->granted.host_base = client->host_next = window.host_base;
    reply(server, client, PROTO_WINDOW, &window, NULL, 0);
}

static uint64_t pages(uint64_t bytes)
{
    return (bytes + 4095) & ~UINT64_C(4095);
}

static int make_buffer(uint64_t bytes)
{
    int fd = memfd_create("fake-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        fake_die("fake: buffer");
    return fd;
}

static void on_memory_alloc(struct fake_server *server, struct fake_client *client)
{
    const struct proto_memory_alloc *body = server->message.body;
    uint64_t bytes = pages(body->count);
    struct proto_memory_allocated answer = {.address = client->device_next, .count = bytes};
    if (bytes > client->granted.grant.allowance.memory.limit) {
        refuse(server, client, PROTO_ERROR_OUT_OF_MEMORY, "device memory limit of the fake");
        return;
    }
    /* The client has reserved these addresses in this same process. */
    int fd = make_buffer(bytes);
    if (shm_map_at(fd, answer.address, bytes, true) < 0)
        fake_die("fake: device memory");
    close(fd);
    client->device_next += bytes;
    reply(server, client, PROTO_MEMORY_ALLOCATED, &answer, NULL, 0);
}

static void on_host_alloc(struct fake_server *server, struct fake_client *client)
{
    const struct proto_host_alloc *body = server->message.body;
    uint64_t bytes = pages(body->count);
    if (bytes > client->granted.grant.allowance.host_memory.limit - client->host_used) {
        refuse(server, client, PROTO_ERROR_OUT_OF_MEMORY, "pinned-host limit of the fake");
        return;
    }
    struct proto_host_allocated answer = {.address = client->host_next, .count = bytes};
    for (int i = 0; i < 64; i++)
        if (!client->buffers[i][0]) {
            client->buffers[i][0] = answer.address;
            client->buffers[i][1] = bytes;
            break;
        }
    client->host_used += bytes;
    client->host_next += bytes;
    int fd = make_buffer(bytes);
    reply(server, client, PROTO_HOST_ALLOCATED, &answer, &fd, 1);
    close(fd);
}

static void on_host_free(struct fake_server *server, struct fake_client *client)
{
    const struct proto_host_free *body = server->message.body;
    for (int i = 0; i < 64; i++)
        if (client->buffers[i][0] == body->address) {
            client->host_used -= client->buffers[i][1];
            client->buffers[i][0] = 0;
            reply_done(server, client);
            return;
        }
    refuse(server, client, PROTO_ERROR_INVALID_HANDLE, "no such buffer of the fake");
}

static void on_memory_query(struct fake_server *server, struct fake_client *client)
{
    struct proto_memory_info info = {.limit = client->granted.grant.allowance.memory.limit,
                                     .used = client->device_next - client->granted.device_base,
                                     .host_limit =
                                         client->granted.grant.allowance.host_memory.limit,
                                     .host_used = client->host_used};
    reply(server, client, PROTO_MEMORY_INFO, &info, NULL, 0);
}

static void on_limits_query(struct fake_server *server, struct fake_client *client)
{
    struct proto_limits limits = {.grant = client->granted.grant};
    reply(server, client, PROTO_LIMITS, &limits, NULL, 0);
}

static void on_link(struct fake_server *server, struct fake_client *client)
{
    const struct proto_link *body = server->message.body;
    client->links[client->link_count++] = body->client;
    struct proto_linked linked = {.link = client->link_count};
    reply(server, client, PROTO_LINKED, &linked, NULL, 0);
}

static void on_module_load(struct fake_server *server, struct fake_client *client)
{
    const struct proto_module_load *body = server->message.body;
    char first[4] = {0};
    if (pread(server->message.fds[0], first, 3, 0) != 3 || strcmp(first, "bad") == 0 ||
        lseek(server->message.fds[0], 0, SEEK_END) != (off_t)body->count) {
        refuse(server, client, PROTO_ERROR_INVALID_IMAGE, "an image that the fake calls bad");
        return;
    }
    server->image_bytes = body->count;
    struct proto_module_loaded loaded = {.module = 1, .functions = 1};
    reply(server, client, PROTO_MODULE_LOADED, &loaded, NULL, 0);
}

/* The kernel's name is its layout: "k_4_8" takes parameters of 4 and 8 bytes, each aligned to
 * its size (at most 8). One that begins with w has four times as many registers. */
static void on_function_get(struct fake_server *server, struct fake_client *client)
{
    char name[256] = {0};
    uint32_t pairs[2 * 64], n = 0, end = 0;
    size_t length = server->message.tail_bytes < 255 ? server->message.tail_bytes : 255;
    memcpy(name, server->message.tail, length);
    if (name[0] != 'k' && name[0] != 'w') {
        refuse(server, client, PROTO_ERROR_NOT_FOUND, "no such kernel in the fake's module");
        return;
    }
    for (char *save = NULL, *word = strtok_r(name + 1, "_", &save); word;
         word = strtok_r(NULL, "_", &save)) {
        uint32_t size = (uint32_t)strtoul(word, NULL, 10);
        uint32_t align = size >= 8 ? 8 : size;
        end = (end + align - 1) / align * align;
        pairs[2 * n] = end;
        pairs[2 * n++ + 1] = size;
        end += size;
    }
    struct proto_function_info info = {.function = 10 + n,
                                       .parameters = n,
                                       .parameter_bytes = end,
                                       .block_threads = 512,
                                       .shared_bytes = 1024,
                                       .registers = name[0] == 'w' ? 128 : 32,
                                       .ptx_version = 80,
                                       .binary_version = 90};
    (void)channel_send(client->fd, &(struct channel_packet){.opcode = PROTO_FUNCTION_INFO,
                                                            .serial = server->message.header.serial,
                                                            .body = &info,
                                                            .tail = pairs,
                                                            .tail_bytes = n * 8});
}

static void on_global_get(struct fake_server *server, struct fake_client *client)
{
    struct proto_global_info info = {.address = client->granted.device_base + WINDOW / 2,
                                     .count = 12};
    reply(server, client, PROTO_GLOBAL_INFO, &info, NULL, 0);
}

static void on_occupancy(struct fake_server *server, struct fake_client *client)
{
    const struct proto_occupancy_get *body = server->message.body;
    struct proto_occupancy_info info = {.blocks = 2048 / body->block_threads};
    reply(server, client, PROTO_OCCUPANCY_INFO, &info, NULL, 0);
}

static void on_stream_create(struct fake_server *server, struct fake_client *client)
{
    const struct proto_stream_create *body = server->message.body;
    for (uint32_t i = 1; i < client->granted.streams; i++) {
        if (client->streams_open & (1u << i))
            continue;
        client->streams_open |= 1u << i;
        struct proto_stream_created created = {.stream = i,
                                               .priority =
                                                   body->priority < -5 ? -5 : body->priority,
                                               .value = client->values[i]};
        ring_consumer_open(&client->consumers[i],
                           ring_at(client->rings.base, client->status.base, i), client->values[i]);
        reply(server, client, PROTO_STREAM_CREATED, &created, NULL, 0);
        return;
    }
    refuse(server, client, PROTO_ERROR_TOO_MANY_OBJECTS, "no stream is left in the fake");
}

static void on_ring_make(struct fake_server *server, struct fake_client *client)
{
    struct proto_rings_made made = {.count = client->granted.streams};
    reply(server, client, PROTO_RINGS_MADE, &made, &client->rings.segment_fd, 1);
}

static void on_stream_destroy(struct fake_server *server, struct fake_client *client)
{
    const struct proto_stream_destroy *body = server->message.body;
    client->streams_open &= ~(1u << body->stream);
    client->values[body->stream] = client->consumers[body->stream].value;
    reply_done(server, client);
}

static void on_stream_recover(struct fake_server *server, struct fake_client *client)
{
    const struct proto_stream_recover *body = server->message.body;
    struct proto_stream_status *status = client->consumers[body->stream].ring.status;
    uint64_t finished = status->lost_from, value = client->consumers[body->stream].value;
    struct proto_stream_recovered recovered = {.finished = finished, .dropped = value - finished};
    __atomic_store_n(&status->lost_to, value, __ATOMIC_SEQ_CST);
    reply(server, client, PROTO_STREAM_RECOVERED, &recovered, NULL, 0);
}

static void on_event_create(struct fake_server *server, struct fake_client *client)
{
    struct proto_event_created created = {.event = ++client->event_next};
    reply(server, client, PROTO_EVENT_CREATED, &created, NULL, 0);
}

static void on_event_elapsed(struct fake_server *server, struct fake_client *client)
{
    const struct proto_event_elapsed *body = server->message.body;
    struct proto_elapsed elapsed = {.nanoseconds = client->event_times[body->end] -
                                                   client->event_times[body->start]};
    reply(server, client, PROTO_ELAPSED, &elapsed, NULL, 0);
}

static void answer(struct fake_server *server, struct fake_client *client);

static bool play(struct fake_server *server, struct fake_client *client, uint16_t opcode)
{
    enum fake_trick trick = server->tricks[opcode];
    server->tricks[opcode] = FAKE_NONE;
    switch (trick) {
    case FAKE_NONE:
        return false;
    case FAKE_HANG_UP:
        hang_up(client);
        return true;
    case FAKE_END:
        end_client(client, PROTO_ERROR_KILLED, "by the test");
        hang_up(client);
        return true;
    case FAKE_WRONG_MESSAGE: {
        struct proto_elapsed other = {0};
        reply(server, client, PROTO_ELAPSED, &other, NULL, 0);
        return true;
    }
    case FAKE_GARBAGE:
        (void)!write(client->fd, "garbage", 7);
        return true;
    case FAKE_SILENCE:
        return true;
    case FAKE_TWICE:
        answer(server, client);
        answer(server, client);
        return true;
    case FAKE_UNASKED:
        (void)channel_send(
            client->fd, &(struct channel_packet){.opcode = PROTO_DONE,
                                                 .serial = server->message.header.serial + 1000});
        return true;
    }
    return false;
}

static void answer(struct fake_server *server, struct fake_client *client)
{
    uint16_t opcode = server->message.header.opcode;
    if (play(server, client, opcode))
        return;
    if (server->refusals[opcode]) {
        refuse(server, client, server->refusals[opcode], server->texts[opcode]);
        return;
    }
    switch (opcode) {
    case PROTO_HELLO:
        on_hello(server, client);
        break;
    case PROTO_DEVICE_QUERY:
        on_device_query(server, client);
        break;
    case PROTO_KERNEL_HEAP_QUERY:
        on_kernel_heap_query(server, client);
        break;
    case PROTO_ATTACH:
        on_attach(server, client);
        break;
    case PROTO_WINDOW_MOVE:
        on_window_move(server, client);
        break;
    case PROTO_MEMORY_ALLOC:
        on_memory_alloc(server, client);
        break;
    case PROTO_LIMITS_QUERY:
        on_limits_query(server, client);
        break;
    case PROTO_MEMORY_QUERY:
        on_memory_query(server, client);
        break;
    case PROTO_HOST_ALLOC:
        on_host_alloc(server, client);
        break;
    case PROTO_HOST_FREE:
        on_host_free(server, client);
        break;
    case PROTO_LINK:
        on_link(server, client);
        break;
    case PROTO_MODULE_LOAD:
        on_module_load(server, client);
        break;
    case PROTO_FUNCTION_GET:
        on_function_get(server, client);
        break;
    case PROTO_GLOBAL_GET:
        on_global_get(server, client);
        break;
    case PROTO_OCCUPANCY_GET:
        on_occupancy(server, client);
        break;
    case PROTO_STREAM_CREATE:
        on_stream_create(server, client);
        break;
    case PROTO_RING_MAKE:
        on_ring_make(server, client);
        break;
    case PROTO_STREAM_DESTROY:
        on_stream_destroy(server, client);
        break;
    case PROTO_STREAM_RECOVER:
        on_stream_recover(server, client);
        break;
    case PROTO_EVENT_CREATE:
        on_event_create(server, client);
        break;
    case PROTO_EVENT_ELAPSED:
        on_event_elapsed(server, client);
        break;
    default:
        reply_done(server, client);
    }
}

/* ---- requests that are kept ---- */

/* A copy of a message, whose pointers lead into itself. */
static void copy_message(struct channel_message *to, const struct channel_message *from)
{
    *to = *from;
    to->body = to->data + ((const uint8_t *)from->body - from->data);
    to->tail = to->data + (from->tail - from->data);
}

static void keep(struct fake_server *server, struct fake_client *client)
{
    struct fake_held held = {client, malloc(sizeof *held.message)};
    if (!held.message || server->held_count == FAKE_HELD_MAX)
        fake_die("fake: kept requests");
    copy_message(held.message, &server->message);
    server->message.fd_count = 0;
    server->held[server->held_count++] = held;
}

static void answer_kept(struct fake_server *server, struct fake_held held)
{
    copy_message(&server->message, held.message);
    free(held.message);
    if (held.client->fd >= 0)
        answer(server, held.client);
    channel_close_fds(&server->message);
}

static void drop_kept(struct fake_server *server)
{
    while (server->held_count) {
        struct channel_message *message = server->held[--server->held_count].message;
        channel_close_fds(message);
        free(message);
    }
}

void fake_hold(struct fake_server *server, uint16_t opcode, bool hold)
{
    pthread_mutex_lock(&server->lock);
    server->holds[opcode] = hold;
    pthread_mutex_unlock(&server->lock);
}

unsigned fake_held(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    unsigned count = server->held_count;
    pthread_mutex_unlock(&server->lock);
    return count;
}

void fake_release(struct fake_server *server, unsigned most, unsigned seed)
{
    pthread_mutex_lock(&server->lock);
    unsigned first = server->held_count > most ? server->held_count - most : 0;
    while (server->held_count > first) {
        unsigned last = --server->held_count;
        unsigned drawn = first + (unsigned)rand_r(&seed) % (last - first + 1);
        struct fake_held held = server->held[drawn];
        server->held[drawn] = server->held[last];
        answer_kept(server, held);
    }
    pthread_mutex_unlock(&server->lock);
}

void fake_notice(struct fake_server *server, unsigned n, const char *text)
{
    struct proto_load_wait wait = {.client = 1};
    snprintf(wait.text, sizeof wait.text, "%s", text);
    pthread_mutex_lock(&server->lock);
    (void)channel_send(fake_nth(server, n)->fd,
                       &(struct channel_packet){.opcode = PROTO_LOAD_WAIT, .body = &wait});
    pthread_mutex_unlock(&server->lock);
}

/* ---- the thread ---- */

static void serve(struct fake_server *server, struct fake_client *client)
{
    int result =
        channel_receive(client->fd, PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT, &server->message);
    if (result) {
        if (result == -EPROTO)
            fprintf(stderr, "fake: the library sent nonsense: %s\n", server->message.why);
        hang_up(client);
        return;
    }
    uint16_t opcode = server->message.header.opcode;
    server->counts[opcode]++;
    if (server->holds[opcode])
        keep(server, client);
    else
        answer(server, client);
    channel_close_fds(&server->message);
}

static void look(struct fake_server *server, int timeout_ms)
{
    struct pollfd fds[CLIENTS_MAX + 2] = {{.fd = server->listener, .events = POLLIN},
                                          {.fd = server->wake, .events = POLLIN}};
    unsigned n = server->connections;
    for (unsigned i = 0; i < n; i++)
        fds[i + 2] = (struct pollfd){.fd = server->clients[i].fd, .events = POLLIN};
    pthread_mutex_unlock(&server->lock);
    int ready = poll(fds, n + 2, timeout_ms);
    pthread_mutex_lock(&server->lock);
    if (ready <= 0)
        return;
    for (unsigned i = 0; i < n; i++)
        if (fds[i + 2].revents && server->clients[i].fd == fds[i + 2].fd &&
            server->clients[i].fd >= 0)
            serve(server, &server->clients[i]);
    if (fds[0].revents && server->connections < CLIENTS_MAX) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        server->clients[server->connections++] = (struct fake_client){
            .fd = fd, .rings = SERVED_RINGS_NONE, .status = SHM_NONE, .eventfd = -1};
    }
}

static void *work(void *context)
{
    struct fake_server *server = context;
    pthread_mutex_lock(&server->lock);
    while (!server->stop) {
        unsigned done = server->automatic ? fake_run_all(server) : 0;
        look(server, done ? 0 : 1);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

struct fake_server *fake_start(const struct fake_options *options)
{
    struct fake_server *server = calloc(1, sizeof *server);
    if (!server)
        fake_die("fake");
    if (options)
        server->options = *options;
    if (!server->options.devices)
        server->options.devices = 1;
    if (!server->options.streams)
        server->options.streams = 8;
    if (!server->options.host_limit)
        server->options.host_limit = 256 << 20;
    server->automatic = !server->options.manual;
    strcpy(server->folder, "/tmp/gpushare-fake-XXXXXX");
    if (!mkdtemp(server->folder))
        fake_die("fake: mkdtemp");
    snprintf(server->path, sizeof server->path, "%s/socket", server->folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, server->path);
    server->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    server->wake = eventfd(0, EFD_CLOEXEC);
    if (bind(server->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(server->listener, 16) < 0)
        fake_die("fake: listen");
    for (unsigned i = 0; i < server->options.windows_taken; i++)
        if (shm_reserve(ARENA_HOST_BASE + (uint64_t)i * WINDOW, 4096) < 0)
            fake_die("fake: reserve");
    pthread_mutex_init(&server->lock, NULL);
    if (pthread_create(&server->thread, NULL, work, server))
        fake_die("fake: thread");
    return server;
}

void fake_stop(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->stop = true;
    uint64_t one = 1;
    (void)!write(server->wake, &one, sizeof one);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->thread, NULL);
    for (unsigned i = 0; i < server->connections; i++) {
        struct fake_client *client = &server->clients[i];
        if (client->fd >= 0)
            close(client->fd);
        if (client->eventfd >= 0)
            close(client->eventfd);
        served_rings_release(&client->rings);
        shm_release(&client->status);
        free(client->consumers);
    }
    drop_kept(server);
    for (unsigned i = 0; i < server->options.windows_taken; i++)
        munmap((void *)(uintptr_t)(ARENA_HOST_BASE + (uint64_t)i * WINDOW), 4096);
    close(server->listener);
    close(server->wake);
    unlink(server->path);
    rmdir(server->folder);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* ---- from the test ---- */

const char *fake_socket(const struct fake_server *server)
{
    return server->path;
}

void fake_refuse(struct fake_server *server, uint16_t opcode, uint32_t error, const char *text)
{
    pthread_mutex_lock(&server->lock);
    server->refusals[opcode] = error;
    snprintf(server->texts[opcode], sizeof server->texts[opcode], "%s", text ? text : "");
    pthread_mutex_unlock(&server->lock);
}

void fake_trick(struct fake_server *server, uint16_t opcode, enum fake_trick trick)
{
    pthread_mutex_lock(&server->lock);
    server->tricks[opcode] = trick;
    pthread_mutex_unlock(&server->lock);
}

struct proto_attach fake_attach(struct fake_server *server, unsigned n)
{
    pthread_mutex_lock(&server->lock);
    struct proto_attach attach = fake_nth(server, n)->attach;
    pthread_mutex_unlock(&server->lock);
    return attach;
}

struct proto_attached fake_attached(struct fake_server *server, unsigned n)
{
    pthread_mutex_lock(&server->lock);
    struct proto_attached granted = fake_nth(server, n)->granted;
    pthread_mutex_unlock(&server->lock);
    return granted;
}

void fake_regrant(struct fake_server *server, unsigned n, uint32_t multiprocessors)
{
    pthread_mutex_lock(&server->lock);
    fake_nth(server, n)->granted.grant.multiprocessors = multiprocessors;
    pthread_mutex_unlock(&server->lock);
}

unsigned fake_count(struct fake_server *server, uint16_t opcode)
{
    pthread_mutex_lock(&server->lock);
    unsigned count = server->counts[opcode];
    pthread_mutex_unlock(&server->lock);
    return count;
}

uint64_t fake_image_bytes(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    uint64_t bytes = server->image_bytes;
    pthread_mutex_unlock(&server->lock);
    return bytes;
}

unsigned fake_open(struct fake_server *server)
{
    unsigned open = 0;
    pthread_mutex_lock(&server->lock);
    for (unsigned i = 0; i < server->connections; i++)
        open += server->clients[i].fd >= 0;
    pthread_mutex_unlock(&server->lock);
    return open;
}

void fake_fault(struct fake_server *server, unsigned n, uint32_t error, const char *words)
{
    pthread_mutex_lock(&server->lock);
    if (words)
        end_client(fake_nth(server, n), error, words);
    else
        set_fault(fake_nth(server, n), error);
    pthread_mutex_unlock(&server->lock);
}

void fake_drop(struct fake_server *server, unsigned n)
{
    pthread_mutex_lock(&server->lock);
    struct fake_client *client = fake_nth(server, n);
    /* Only shut down: the serving thread may be polling the descriptor. It sees the end and
     * closes it. */
    shutdown(client->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
}
