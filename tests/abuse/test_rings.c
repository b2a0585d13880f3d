/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Peers that misuse shared memory: descriptors, indices, arenas, dependencies and the
 * memory itself. The culprit's connection ends with a reason, or its garbage stays its
 * own; the neighbour beside it computes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/ipc/doorbell.h"
#include "tests/support/admin_answer.h"
#include "tests/support/neighbour.h"
#include "tests/support/patience.h"
#include "tests/support/raw.h"
#include "tests/support/seed.h"

static const char kernel_ptx[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                 ".visible .entry store(.param .u64 p, .param .u32 v)\n{\n"
                                 ".reg .b64 %a;\n.reg .b32 %v;\n"
                                 "ld.param.u64 %a, [p];\nld.param.u32 %v, [v];\n"
                                 "st.global.u32 [%a], %v;\nret;\n}\n"
                                 ".visible .entry idle(.param .u64 p, .param .u32 v)\n{\nret;\n}\n";

static struct server *server;
static struct neighbour *neighbour;

static int start(void **state)
{
    (void)state;
    server = server_start(NULL, NULL);
    neighbour = neighbour_start(server);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
    return 0;
}

static struct proto_command_launch store(uint32_t function, uint64_t address, uint32_t value)
{
    struct proto_command_launch launch = {.opcode = PROTO_COMMAND_LAUNCH,
                                          .function = function,
                                          .grid = {1, 1, 1},
                                          .block = {1, 1, 1},
                                          .parameter_bytes = 12};
    memcpy(launch.inline_parameters, &address, 8);
    memcpy(launch.inline_parameters + 8, &value, 4);
    return launch;
}

/* Pushes one bad descriptor as a fresh client; the connection must end with this error, and the log
 * must tell. */
static void expect_end(const void *descriptor, uint32_t error)
{
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    raw_push(&raw, 0, descriptor);
    uint32_t fault = raw_wait_fault(&raw);
    if (fault != error)
        fail_msg("fault %u, not %u", fault, error);
    assert_true(raw_wait_end(&raw));
    raw_close(&raw);
}

static void a_well_formed_launch_by_hand_works(void **state)
{
    (void)state;
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    uint32_t function = raw_function(&raw, kernel_ptx, "store");
    uint64_t address = raw_alloc(&raw, 4096);
    struct proto_command_launch launch = store(function, address, 7);
    raw_push(&raw, 0, &launch);
    assert_true(raw_wait_value(&raw, 0, 1));
    raw_close(&raw);
}

static void unknown_commands_and_reserved_fields_end_the_culprit(void **state)
{
    (void)state;
    struct ring_descriptor garbage;
    memset(&garbage, 0xee, sizeof garbage);
    expect_end(&garbage, PROTO_ERROR_PROTOCOL_VIOLATION);
    struct proto_command_nop nop = {.opcode = PROTO_COMMAND_NOP, .flags = 1};
    expect_end(&nop, PROTO_ERROR_PROTOCOL_VIOLATION);
    struct proto_command_fill fill = {.opcode = PROTO_COMMAND_FILL, .width = 3, .count = 1};
    expect_end(&fill, PROTO_ERROR_INVALID_VALUE);
}

static void launches_with_wrong_handles_and_sizes_end_the_culprit(void **state)
{
    (void)state;
    const uint32_t handles[] = {0, 1, 5000, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        struct proto_command_launch launch = store(handles[i], 0, 0);
        expect_end(&launch, PROTO_ERROR_INVALID_HANDLE);
    }
    const uint16_t sizes[] = {0, 8, 11, 13, 24, 32764};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct raw raw;
        raw_attach(&raw, server, PROTO_UNSET);
        struct proto_command_launch launch =
            store(raw_function(&raw, kernel_ptx, "store"), raw_alloc(&raw, 64), 1);
        launch.parameter_bytes = sizes[i];
        raw_push(&raw, 0, &launch);
        uint32_t fault = raw_wait_fault(&raw);
        /* The last one breaks the schema's own bound, the others the kernel's. */
        if (fault != PROTO_ERROR_INVALID_VALUE && fault != PROTO_ERROR_PROTOCOL_VIOLATION)
            fail_msg("%u bytes: fault %u", sizes[i], fault);
        raw_close(&raw);
    }
}

static void addresses_of_others_and_overflowing_ranges_are_refused_in_every_command(void **state)
{
    (void)state;
    struct raw victim;
    raw_attach(&victim, server, PROTO_UNSET);
    uint64_t theirs = raw_alloc(&victim, 1 << 20);
    for (int which = 0; which < 9; which++) {
        struct raw raw;
        raw_attach(&raw, server, PROTO_UNSET);
        uint64_t mine = raw_alloc(&raw, 4 << 20);
        struct proto_command_copy copy = {.opcode = PROTO_COMMAND_COPY,
                                          .destination = mine,
                                          .source = mine + (2 << 20),
                                          .count = 4096};
        struct proto_command_fill fill = {
            .opcode = PROTO_COMMAND_FILL, .width = 4, .destination = mine, .count = 16};
        const void *bad = &copy;
        switch (which) {
        case 0:
            copy.source = theirs;
            break;
        case 1:
            copy.destination = theirs;
            break;
        case 2:
            copy.source = raw.attached.host_base;
            break;
        case 3:
            copy.count = UINT64_MAX;
            break;
        case 4:
            copy.count = UINT64_MAX - copy.source + 2;
            break;
        case 5:
            copy.destination = (uint64_t)(uintptr_t)&copy;
            break;
        case 6:
            fill.destination = theirs;
            bad = &fill;
            break;
        case 7:
            fill.count = UINT64_MAX / 4 + 2;
            bad = &fill;
            break;
        default:
            fill.destination = mine + 1;
            bad = &fill;
            break;
        }
        raw_push(&raw, 0, bad);
        uint32_t fault = raw_wait_fault(&raw);
        /* The misaligned fill is the client's own memory: a wrong value, not a wrong handle. */
        if (fault != (which == 8 ? PROTO_ERROR_INVALID_VALUE : PROTO_ERROR_INVALID_HANDLE))
            fail_msg("case %d: fault %u", which, fault);
        raw_close(&raw);
    }
    raw_close(&victim);
}

static void a_tail_that_lies_ends_the_culprit(void **state)
{
    (void)state;
    const uint32_t tails[] = {PROTO_RING_ENTRIES + 1, UINT32_MAX, 0x80000000u};
    for (size_t i = 0; i < 3; i++) {
        struct raw raw;
        raw_attach(&raw, server, PROTO_UNSET);
        assert_int_equal(raw_ring(&raw, 0), 0);
        __atomic_store_n(&ring_at(raw.rings, raw.status, 0).header->tail, tails[i],
                         __ATOMIC_SEQ_CST);
        doorbell_ring(ring_client_header(raw.rings), 0, raw.eventfd);
        assert_int_equal(raw_wait_fault(&raw), PROTO_ERROR_PROTOCOL_VIOLATION);
        raw_close(&raw);
    }
}

static void streams_that_wait_in_a_circle_are_told_so(void **state)
{
    (void)state;
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    struct proto_stream_create create = {.priority = 0};
    assert_int_equal(raw_ask(&raw, PROTO_STREAM_CREATE, &create, NULL, 0, -1), 0);
    uint32_t other = ((const struct proto_stream_created *)raw.reply.body)->stream;
    struct proto_command_wait first = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].stream = other, .on[0].value = 2};
    struct proto_command_wait second = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].stream = 0, .on[0].value = 2};
    raw_push(&raw, 0, &first);
    raw_push(&raw, other, &second);
    assert_int_equal(raw_wait_fault(&raw), PROTO_ERROR_DEPENDENCY_CIRCLE);
    raw_close(&raw);
    raw_attach(&raw, server, PROTO_UNSET);
    struct proto_command_wait self = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].stream = 0, .on[0].value = 5};
    raw_push(&raw, 0, &self);
    assert_int_equal(raw_wait_fault(&raw), PROTO_ERROR_DEPENDENCY_CIRCLE);
    raw_close(&raw);
}

static void waits_for_streams_and_links_that_are_not_there_end_the_culprit(void **state)
{
    (void)state;
    struct proto_command_wait wait = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].stream = 4095, .on[0].value = 1};
    expect_end(&wait, PROTO_ERROR_INVALID_HANDLE);
    wait = (struct proto_command_wait){
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].link = 3, .on[0].value = 1};
    expect_end(&wait, PROTO_ERROR_INVALID_HANDLE);
    wait = (struct proto_command_wait){.opcode = PROTO_COMMAND_WAIT, .count = 4};
    expect_end(&wait, PROTO_ERROR_PROTOCOL_VIOLATION);
}

/* Scribbles over everything that it may write, while a sibling thread's worth of valid work goes
 * on, until it is ended. */
static void scribble(unsigned seed)
{
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    /* A kernel that touches nothing: what a faulting kernel does to others is another matter. */
    uint32_t function = raw_function(&raw, kernel_ptx, "idle");
    struct proto_command_launch launch = store(function, 0, seed);
    for (int i = 0; i < 64; i++)
        raw_push(&raw, 0, &launch);
    struct ring ring = ring_at(raw.rings, raw.status, 0);
    for (int i = 0;
         i < 20000 && !__atomic_load_n(&ring_status_header(raw.status)->fault, __ATOMIC_RELAXED);
         i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t *words = (uint32_t *)ring.descriptors, at;
        switch (seed >> 29) {
        case 0:
            ring.header->tail += (seed >> 8) % 8;
            break;
        case 1:
            ((uint32_t *)ring_client_header(raw.rings))[(seed >> 8) % 256] = seed;
            break;
        default: /* fields of a valid descriptor, so that some pass one check and fail the next */
            at = (seed >> 8) % (PROTO_RING_ENTRIES * 16);
            /* Grids stay small: a kernel of two thousand million blocks is legitimate, and would be
             * waited for. */
            words[at] = seed % 3 || (at % 16 >= 2 && at % 16 <= 4) ? seed % 64 : seed;
        }
        if (i % 16 == 0) {
            memcpy(&ring.descriptors[ring.header->tail % PROTO_RING_ENTRIES], &launch,
                   sizeof launch);
            doorbell_ring(ring_client_header(raw.rings), 0, raw.eventfd);
        }
    }
    raw_close(&raw);
}

static void memory_rewritten_at_random_harms_only_its_owner(void **state)
{
    (void)state;
    unsigned long before = neighbour_rounds(neighbour);
    for (unsigned seed = 1; seed <= 25; seed++)
        scribble(seed * 7919);
    assert_true(neighbour_rounds(neighbour) > before);
}

static void punched_memory_reads_as_zeros_and_harms_only_its_owner(void **state)
{
    (void)state;
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    struct proto_host_alloc host = {.count = 1 << 20};
    assert_int_equal(raw_ask(&raw, PROTO_HOST_ALLOC, &host, NULL, 0, -1), 0);
    struct proto_host_allocated allocated;
    memcpy(&allocated, raw.reply.body, sizeof allocated);
    int fd = channel_take_fd(&raw.reply, 0);
    assert_int_equal(
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)allocated.count), 0);
    assert_int_not_equal(ftruncate(fd, 0), 0); /* sealed */
    uint64_t device = raw_alloc(&raw, 1 << 20);
    struct proto_command_copy copy = {.opcode = PROTO_COMMAND_COPY,
                                      .destination = device,
                                      .source = allocated.address,
                                      .count = 1 << 20};
    raw_push(&raw, 0, &copy);
    assert_true(raw_wait_value(&raw, 0, 1));
    close(fd);
    assert_int_equal(
        fallocate(raw.ring_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PROTO_RING_FIRST), 0);
    assert_int_equal(
        fallocate(raw.segment_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PROTO_RING_STRIDE),
        0);
    assert_int_not_equal(ftruncate(raw.ring_fd, 0), 0);
    assert_int_not_equal(ftruncate(raw.segment_fd, 4096), 0);
    assert_int_not_equal(ftruncate(raw.segment_fd, 2 * PROTO_RING_STRIDE), 0);
    doorbell_ring(ring_client_header(raw.rings), 0, raw.eventfd);
    raw_close(&raw);
    /* Remapped over: what stands in the client's address space is its own affair. */
    raw_attach(&raw, server, PROTO_UNSET);
    assert_true(mmap(raw.rings, 65536, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    memset(raw.rings, 0xff, 65536);
    raw_close(&raw);
}

/* Asks for the ring of every stream that it may have, and writes all that it gets. Returns how many
 * rings that are. */
static uint32_t write_all_rings(struct raw *raw)
{
    struct proto_stream_create create = {0};
    uint32_t rings = 0, streams = raw->attached.streams;
    for (uint32_t i = 1; i < streams; i++)
        assert_int_equal(raw_ask(raw, PROTO_STREAM_CREATE, &create, NULL, 0, -1), 0);
    for (uint32_t i = 0; i < streams; i++) {
        uint32_t error = raw_ring(raw, i);
        rings += !error;
        if (!error)
            memset(ring_at(raw->rings, raw->status, i).descriptors, 0xff,
                   PROTO_RING_STRIDE - PROTO_RING_DESCRIPTORS);
        else
            assert_int_equal(error, PROTO_ERROR_OUT_OF_MEMORY);
    }
    assert_non_null(
        strstr(((const struct proto_failed *)raw->reply.body)->text, "GPUSHARE_HOST_MEMORY_LIMIT"));
    return rings;
}

/* Rows in which a worker notes for the next one what each client used are the server's own, and
 * serve one client after another: as many clients leave their pages here before it is measured. */
static uint64_t shared_bytes_after(struct server *own, struct raw *raw, int clients)
{
    uint64_t bytes = UINT64_MAX, before;
    for (int i = 0; i < clients; i++) {
        raw_attach(&raw[i], own, PROTO_UNSET);
        write_all_rings(&raw[i]);
    }
    for (int i = 0; i < clients; i++)
        raw_close(&raw[i]);
    /* Rings are freed a while after their clients have left. */
    int still = 0;
    for (int i = 0; i < 1000 && still < 50; i++) {
        before = bytes;
        bytes = server_shared_bytes(server_pid(own));
        still = bytes == before && bytes < PROTO_RING_STRIDE ? still + 1 : 0;
        usleep(10000);
    }
    return bytes;
}

static void rings_take_no_more_than_their_client_is_charged(void **state)
{
    (void)state;
    /* OWN: memory that the server touches for itself in between; a page of each client is more. */
    enum { CLIENTS = 40, LIMIT = 2 << 20, PAGES = 64 << 10, OWN = 8 * 4096 };
    /* Windows of 1 GiB: a server under ThreadSanitizer has addresses for 128 of them. */
    static const char *const env[] = {"GPUSHARE_HOST_MEMORY_LIMIT=2M", "GPUSHARE_MEMORY_LIMIT=1G",
                                      NULL};
    struct server *own = server_start(NULL, env);
    struct raw *raw = calloc(CLIENTS, sizeof *raw);
    uint64_t rings = 0, before = shared_bytes_after(own, raw, CLIENTS);
    print_message("%llu bytes of the server's own\n", (unsigned long long)before);
    assert_in_range(before, 0, (uint64_t)CLIENTS * 4096);
    for (int i = 0; i < CLIENTS; i++) {
        raw_attach(&raw[i], own, PROTO_UNSET);
        assert_int_equal(raw[i].attached.streams, 512);
        rings += write_all_rings(&raw[i]);
    }
    assert_int_equal(rings, CLIENTS * 8); /* whole segments that fit into 2 MiB */
    uint64_t taken = server_shared_bytes(server_pid(own)) - before;
    print_message("%llu bytes of shared memory\n", (unsigned long long)taken);
    assert_true(taken >= rings * (PROTO_RING_STRIDE - PROTO_RING_DESCRIPTORS));
    assert_true(taken <= (uint64_t)CLIENTS * (LIMIT + PAGES));
    /* Memory of rings is not there for buffers. */
    struct proto_memory_query query;
    memset(&query, 0, sizeof query);
    assert_int_equal(raw_ask(&raw[0], PROTO_MEMORY_QUERY, &query, NULL, 0, -1), 0);
    assert_int_equal(((const struct proto_memory_info *)raw[0].reply.body)->host_used,
                     8 * PROTO_RING_STRIDE);
    struct proto_host_alloc alloc = {.count = 1 << 20};
    assert_int_equal(raw_ask(&raw[0], PROTO_HOST_ALLOC, &alloc, NULL, 0, -1),
                     PROTO_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < CLIENTS; i++)
        raw_close(&raw[i]);
    for (int i = 0; i < 1000 && server_shared_bytes(server_pid(own)) > before + OWN; i++)
        usleep(10000);
    assert_in_range(server_shared_bytes(server_pid(own)), 0, before + OWN);
    free(raw);
    assert_int_equal(server_stop(own), 0);
}

/* As another uid, every way to write the status memory must be shut. */
static int try_to_write_status(struct raw *raw)
{
    char path[64];
    if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
        return 10;
    if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw->status_fd, 0) != MAP_FAILED)
        return 11;
    if (mprotect(raw->status, 4096, PROT_READ | PROT_WRITE) == 0)
        return 12;
    snprintf(path, sizeof path, "/proc/self/fd/%d", raw->status_fd);
    if (open(path, O_RDWR) >= 0)
        return 13;
    if (pwrite(raw->status_fd, "x", 1, 0) >= 0 || ftruncate(raw->status_fd, 0) == 0 ||
        fallocate(raw->status_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
        return 14;
    return 0;
}

static void completion_words_cannot_be_written_by_another_uid(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("not root: the server has this uid, which may harm itself\n");
        skip();
    }
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    pid_t child = fork();
    if (child == 0)
        _exit(try_to_write_status(&raw));
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    raw_close(&raw);
}

/* Works until it is killed. */
static _Noreturn void work_for_ever(const struct server *own, int working)
{
    struct raw raw;
    raw_attach(&raw, own, PROTO_UNSET);
    struct proto_command_launch launch =
        store(raw_function(&raw, kernel_ptx, "store"), raw_alloc(&raw, 4096), 1);
    for (uint64_t value = 0;; value += 300) {
        for (int n = 0; n < 300; n++)
            raw_push(&raw, 0, &launch);
        if (write(working, "", 1) != 1 || !raw_wait_value(&raw, 0, value))
            _exit(1);
    }
}

static json_int_t number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

/* The server's counts of clients, and of the bytes and descriptors that they are charged. */
struct had {
    json_int_t clients, memory, host_memory, descriptors;
};

static struct had look(const struct server *own)
{
    json_t *status = admin_answer(own, "status");
    struct had had = {
        .clients = number(status, "clients"),
        .memory =
            number(json_array_get(json_object_get(status, "devices"), 0), "memory_used_bytes"),
        .host_memory = number(status, "host_memory_used_bytes"),
        .descriptors = number(status, "descriptors"),
    };
    json_decref(status);
    return had;
}

static bool is_left(const struct had *had)
{
    return had->clients || had->memory || had->host_memory || had->descriptors;
}

/* Waits until all clients have gone and nothing of them is left, or patience ends. */
static struct had look_when_gone(const struct server *own)
{
    struct had had = look(own);
    for (int left = (int)(patience_seconds(10) * 100); left > 0 && is_left(&had); left--) {
        usleep(10000);
        had = look(own);
    }
    return had;
}

static void a_client_killed_with_work_in_flight_leaves_nothing(void **state)
{
    (void)state;
    static const char *const args[] = {"--pinned-pool", "0", NULL};
    struct server *own = server_start(args, NULL);
    for (int i = 0; i < 10; i++) {
        int working[2], status;
        char byte;
        assert_int_equal(pipe(working), 0);
        pid_t child = fork();
        if (child == 0)
            work_for_ever(own, working[1]);
        close(working[1]);
        assert_int_equal(read(working[0], &byte, 1), 1);
        if (i == 0) {
            struct had had = look(own);
            assert_true(had.clients == 1 && had.memory && had.host_memory && had.descriptors);
        }
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        close(working[0]);
    }
    struct had had = look_when_gone(own);
    if (is_left(&had))
        fail_msg("%lld clients, %lld bytes, %lld of host memory and %lld descriptors are left",
                 had.clients, had.memory, had.host_memory, had.descriptors);
    assert_int_equal(server_stop(own), 0);
}

/* ---- streams that are destroyed while their rings wait ---- */

static const struct proto_command_nop nop = {.opcode = PROTO_COMMAND_NOP};

static struct server *begin_alone(pid_t *worker)
{
    static const char *const args[] = {"--pinned-pool", "0", NULL};
    struct server *own = server_start(args, NULL);
    assert_int_equal(server_workers(own, worker, 1), 1);
    return own;
}

/* The worker that served these clients has outlived them. */
static void end_alone(struct server *own, pid_t worker)
{
    struct had had = look_when_gone(own);
    pid_t now = 0;
    assert_false(is_left(&had));
    assert_int_equal(server_workers(own, &now, 1), 1);
    assert_int_equal(now, worker);
    assert_int_equal(server_stop(own), 0);
}

/* Opens a stream with a ring full of commands that do nothing, so that any tail stands for valid
 * ones. Returns its number, or 0 if the connection has ended. */
static uint32_t open_stream(struct raw *raw)
{
    struct proto_stream_create create = {.priority = 0};
    if (raw_ask(raw, PROTO_STREAM_CREATE, &create, NULL, 0, -1))
        return 0;
    uint32_t stream = ((const struct proto_stream_created *)raw->reply.body)->stream;
    if (!ring_memory_has(&raw->memory, stream) && raw_ring(raw, stream))
        return 0;
    struct ring ring = ring_at(raw->rings, raw->status, stream);
    for (uint32_t i = 0; i < PROTO_RING_ENTRIES; i++)
        memcpy(ring.descriptors[i].bytes, &nop, sizeof nop);
    return stream;
}

static uint32_t close_stream(struct raw *raw, uint32_t stream)
{
    struct proto_stream_destroy destroy = {.stream = stream};
    return raw_ask(raw, PROTO_STREAM_DESTROY, &destroy, NULL, 0, -1);
}

static struct proto_command_wait wait_for(uint32_t stream, uint64_t value)
{
    return (struct proto_command_wait){
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0] = {.stream = stream, .value = value}};
}

static void set_tail(struct raw *raw, uint32_t stream, uint32_t tail)
{
    __atomic_store_n(&ring_at(raw->rings, raw->status, stream).header->tail, tail,
                     __ATOMIC_SEQ_CST);
}

static uint64_t completed(const struct raw *raw, uint32_t stream)
{
    return __atomic_load_n(&ring_at(raw->rings, raw->status, stream).status->completed,
                           __ATOMIC_SEQ_CST);
}

/* The visit that served what was pushed before is over: the server has looked at those tails for
 * the last time. Stream 0 has nothing in flight. */
static void end_visit(struct raw *raw)
{
    uint64_t value = completed(raw, 0) + 1;
    raw_push(raw, 0, &nop);
    assert_true(raw_wait_value(raw, 0, value));
}

/* Destroys a stream whose ring waits for the first command of `source`, with a tail that says that
 * the ring is empty, and puts the tail forth again. */
static uint32_t destroy_waiting(struct raw *raw, uint32_t source)
{
    uint32_t stream = open_stream(raw);
    struct proto_command_wait wait = wait_for(source, 1);
    assert_int_not_equal(stream, 0);
    memcpy(ring_at(raw->rings, raw->status, stream).descriptors[1].bytes, &wait, sizeof wait);
    /* One batch: when its first command is done the second was looked at, and its ring waits. */
    set_tail(raw, stream, 2);
    doorbell_ring(ring_client_header(raw->rings), stream, raw->eventfd);
    assert_true(raw_wait_value(raw, stream, 1));
    /* The device may be done before the visit is, and its last look would end this client. */
    end_visit(raw);
    set_tail(raw, stream, 1);
    assert_int_equal(close_stream(raw, stream), 0);
    set_tail(raw, stream, 3);
    return stream;
}

static void a_stream_destroyed_while_it_waits_runs_nothing_more(void **state)
{
    (void)state;
    struct raw raw;
    pid_t worker;
    struct server *own = begin_alone(&worker);
    raw_attach(&raw, own, PROTO_UNSET);
    uint32_t source = open_stream(&raw), destroyed = destroy_waiting(&raw, source);
    raw_push(&raw, source, &nop);
    assert_true(raw_wait_value(&raw, source, 1));
    /* Rings that are ready are served in turn. */
    for (int i = 0; i < 20; i++)
        end_visit(&raw);
    assert_int_equal(completed(&raw, destroyed), 1);
    raw_close(&raw);
    end_alone(own, worker);
}

static void a_stream_does_not_wait_for_what_its_numbers_last_user_asked_for(void **state)
{
    (void)state;
    struct raw raw;
    pid_t worker;
    struct server *own = begin_alone(&worker);
    raw_attach(&raw, own, PROTO_UNSET);
    uint32_t source = open_stream(&raw), destroyed = destroy_waiting(&raw, source);
    assert_int_equal(open_stream(&raw), destroyed);
    raw_push(&raw, destroyed, &nop);
    assert_true(raw_wait_value(&raw, destroyed, 2));
    raw_close(&raw);
    end_alone(own, worker);
}

struct hostile {
    struct raw raw;
    unsigned seed;
    uint32_t streams[8]; /* 0: not open */
};

static uint32_t draw(struct hostile *hostile, uint32_t below)
{
    hostile->seed = hostile->seed * 1664525u + 1013904223u;
    return (hostile->seed >> 8) % below;
}

/* Does one thing to one stream. Returns false when the connection has ended. */
static bool do_anything(struct hostile *hostile)
{
    struct raw *raw = &hostile->raw;
    uint32_t at = draw(hostile, 8), stream = hostile->streams[at];
    if (!stream)
        return (hostile->streams[at] = open_stream(raw)) != 0;
    uint32_t tail =
        __atomic_load_n(&ring_at(raw->rings, raw->status, stream).header->tail, __ATOMIC_SEQ_CST);
    /* Waits lead from one stream to later ones, so there is no circle, which would end it all. */
    uint32_t source = at < 7 ? hostile->streams[at + 1 + draw(hostile, 7 - at)] : 0;
    struct proto_command_wait wait =
        wait_for(source, source ? completed(raw, source) + 1 + draw(hostile, 2) : 0);
    switch (draw(hostile, 6)) {
    case 0:
        raw_push(raw, stream, &nop);
        break;
    case 1:
    case 2:
        raw_push(raw, stream, &wait);
        break;
    case 3: /* back and forth around the destruction */
        set_tail(raw, stream, (uint32_t)completed(raw, stream));
        if (close_stream(raw, stream))
            return false;
        hostile->streams[at] = 0;
        set_tail(raw, stream, tail + draw(hostile, 3));
        break;
    case 4: /* a destruction that waits for the end of the ring's commands */
        if (close_stream(raw, stream))
            return false;
        hostile->streams[at] = 0;
        break;
    default:
        set_tail(raw, stream, tail + draw(hostile, 3));
        doorbell_ring(ring_client_header(raw->rings), stream, raw->eventfd);
    }
    return !__atomic_load_n(&ring_status_header(raw->status)->fault, __ATOMIC_RELAXED);
}

static void streams_destroyed_at_random_while_they_wait_end_no_worker(void **state)
{
    (void)state;
    enum { CLIENTS = 40, STEPS = 200 };
    pid_t worker;
    struct server *own = begin_alone(&worker);
    unsigned seed = seed_draw(), steps = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct hostile hostile = {.seed = seed + i};
        raw_attach(&hostile.raw, own, PROTO_UNSET);
        for (int step = 0; step < STEPS && do_anything(&hostile); step++)
            steps++;
        raw_close(&hostile.raw);
    }
    print_message("%u steps\n", steps);
    end_alone(own, worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_well_formed_launch_by_hand_works),
        cmocka_unit_test(unknown_commands_and_reserved_fields_end_the_culprit),
        cmocka_unit_test(launches_with_wrong_handles_and_sizes_end_the_culprit),
        cmocka_unit_test(addresses_of_others_and_overflowing_ranges_are_refused_in_every_command),
        cmocka_unit_test(a_tail_that_lies_ends_the_culprit),
        cmocka_unit_test(streams_that_wait_in_a_circle_are_told_so),
        cmocka_unit_test(waits_for_streams_and_links_that_are_not_there_end_the_culprit),
        cmocka_unit_test(memory_rewritten_at_random_harms_only_its_owner),
        cmocka_unit_test(punched_memory_reads_as_zeros_and_harms_only_its_owner),
        cmocka_unit_test(rings_take_no_more_than_their_client_is_charged),
        cmocka_unit_test(completion_words_cannot_be_written_by_another_uid),
        cmocka_unit_test(a_client_killed_with_work_in_flight_leaves_nothing),
        cmocka_unit_test(a_stream_destroyed_while_it_waits_runs_nothing_more),
        cmocka_unit_test(a_stream_does_not_wait_for_what_its_numbers_last_user_asked_for),
        cmocka_unit_test(streams_destroyed_at_random_while_they_wait_end_no_worker),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
