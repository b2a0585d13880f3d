/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies and fills: which go straight, which through staging, and what that costs. */
#include "tests/unit/client/fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "client/engine/connection.h"
#include "client/engine/stream.h"

enum { MIB = 1 << 20 };

static uint8_t *make_pattern(size_t bytes, unsigned seed)
{
    uint8_t *pattern = malloc(bytes);
    assert_non_null(pattern);
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        pattern[i] = (uint8_t)(seed >> 24);
    }
    return pattern;
}

/* Through staging in both directions: the sizes around the chunks' own. */
static void ordinary_memory_round_trips(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,       3,           65535,       65536,           65537,
                                   4 * MIB, 4 * MIB + 1, 9 * MIB + 7, 33 * MIB + 12345};
    struct fixture f;
    fixture_start(&f, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *in = make_pattern(sizes[i], (unsigned)i + 1);
        uint8_t *out = calloc(1, sizes[i]);
        gpushare_address device;
        OK(gpushare_memory_alloc(f.gpu, sizes[i], &device));
        OK(gpushare_copy_to_device(f.gpu, device, in, sizes[i]));
        assert_memory_equal((void *)(uintptr_t)device, in, sizes[i]);
        OK(gpushare_copy_from_device(f.gpu, out, device, sizes[i]));
        assert_memory_equal(out, in, sizes[i]);
        free(in);
        free(out);
    }
    /* One buffer of small chunks and four large ones, however much was copied. */
    struct gpushare_memory_info info = {.size = sizeof info};
    OK(gpushare_memory_info(f.gpu, &info));
    assert_true(info.host_used <= 18 * MIB);
    assert_in_range(fake_count(f.server, PROTO_HOST_ALLOC), 2, 5);
    fixture_stop(&f);
}

static void source_can_be_reused_when_an_async_copy_returns(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &(struct fake_options){.manual = true});
    gpushare_address device;
    uint8_t source[100];
    OK(gpushare_memory_alloc(f.gpu, 300, &device));
    for (int i = 0; i < 3; i++) {
        memset(source, 'a' + i, sizeof source);
        OK(gpushare_copy_to_device_async(f.gpu, device + 100u * (unsigned)i, source, 100, NULL));
    }
    memset(source, 'z', sizeof source);
    assert_int_equal(fake_run(f.server, 0, 0, 9), 3);
    const uint8_t *there = (const uint8_t *)(uintptr_t)device;
    assert_int_equal(there[0], 'a');
    assert_int_equal(there[199], 'b');
    assert_int_equal(there[299], 'c');
    fixture_stop(&f);
}

static void shared_buffers_are_copied_by_one_descriptor(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &(struct fake_options){.manual = true});
    gpushare_address device;
    void *buffer;
    OK(gpushare_memory_alloc(f.gpu, 4 * MIB, &device));
    OK(gpushare_host_alloc(f.gpu, 4 * MIB, &buffer));
    memset(buffer, 1, 4 * MIB);
    OK(gpushare_copy_to_device_async(f.gpu, device, buffer, 4 * MIB, NULL));
    struct ring_descriptor descriptor;
    assert_string_equal(fixture_next(&f, 0, &descriptor), "copy");
    struct proto_command_copy copy;
    memcpy(&copy, &descriptor, sizeof copy);
    assert_true(copy.destination == device);
    assert_true(copy.source == (uint64_t)(uintptr_t)buffer);
    assert_int_equal(copy.count, 4 * MIB);
    assert_int_equal(fake_run(f.server, 0, 0, 9), 1);
    OK(gpushare_copy_async(f.gpu, device + 100, device, 100, NULL));
    OK(gpushare_copy_async(f.gpu, (uint64_t)(uintptr_t)buffer + 50, device, 50, NULL));
    assert_int_equal(fake_run(f.server, 0, 0, 9), 2);
    assert_int_equal(fake_count(f.server, PROTO_HOST_ALLOC), 1);
    OK(gpushare_host_free(f.gpu, buffer));
    assert_int_equal(gpushare_host_free(f.gpu, buffer), GPUSHARE_ERROR_INVALID_HANDLE);
    OK(gpushare_host_free(f.gpu, NULL));
    fixture_stop(&f);
}

/* Takes the commands of the stream one after another, and carries each out. They are of one kind,
 * follow one another from both starts (source: 0 for a fill; else in host memory), cover `bytes`,
 * and cross no edge. */
static unsigned expect_slices(const struct fixture *f, const char *kind, uint64_t destination,
                              uint64_t source, uint64_t bytes)
{
    unsigned commands = 0;
    for (uint64_t at = 0; at < bytes; commands++) {
        struct ring_descriptor descriptor;
        struct proto_command_copy copy;
        struct proto_command_fill fill;
        assert_string_equal(fixture_next(f, 0, &descriptor), kind);
        memcpy(&copy, &descriptor, sizeof copy);
        memcpy(&fill, &descriptor, sizeof fill);
        uint64_t count = source ? copy.count : fill.count * fill.width;
        assert_true(count > 0 && count <= bytes - at);
        assert_true((source ? copy.destination : fill.destination) == destination + at);
        assert_int_equal((destination + at) / (64 * MIB),
                         (destination + at + count - 1) / (64 * MIB));
        if (source) {
            assert_true(copy.source == source + at);
            assert_int_equal((source + at) / (4 * MIB), (source + at + count - 1) / (4 * MIB));
        }
        assert_int_equal(fake_run(f->server, 0, 0, 1), 1);
        at += count;
    }
    return commands;
}

static void no_command_crosses_the_edge_of_a_registration(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &(struct fake_options){.manual = true});
    gpushare_address device;
    void *buffer;
    const uint64_t bytes = 160 * MIB;
    OK(gpushare_memory_alloc(f.gpu, bytes, &device));
    OK(gpushare_host_alloc(f.gpu, bytes, &buffer));
    uint64_t host = (uint64_t)(uintptr_t)buffer, count = 100 * MIB + 5;
    uint8_t *there = (uint8_t *)(uintptr_t)device;
    for (uint64_t at = 0; at < bytes; at += 4096)
        ((uint8_t *)buffer)[at + 7] = (uint8_t)(at >> 12);
    OK(gpushare_copy_async(f.gpu, device + 10 * MIB + 4, host + 3 * MIB, count, NULL));
    assert_true(expect_slices(&f, "copy", device + 10 * MIB + 4, host + 3 * MIB, count) <= 28);
    assert_memory_equal(there + 10 * MIB + 4, (uint8_t *)buffer + 3 * MIB, count);
    OK(gpushare_fill_async(f.gpu, device + 2, 0x1234, 2, 70 * MIB, NULL));
    assert_true(expect_slices(&f, "fill", device + 2, 0, 140 * MIB) <= 4);
    for (uint64_t at = 2; at < 140 * MIB; at += MIB)
        assert_memory_equal(there + at, "\x34\x12", 2);
    assert_memory_equal(there + 2 + 140 * MIB - 2, "\x34\x12", 2);
    fixture_stop(&f);
}

static void direction_is_found_from_addresses(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_address device;
    void *buffer;
    char plain[16] = "plain", back[16] = "";
    OK(gpushare_memory_alloc(f.gpu, 64, &device));
    OK(gpushare_host_alloc(f.gpu, 64, &buffer));
    uint64_t plain_at = (uint64_t)(uintptr_t)plain, back_at = (uint64_t)(uintptr_t)back,
             buffer_at = (uint64_t)(uintptr_t)buffer;
    OK(gpushare_copy(f.gpu, device, plain_at, 16));
    OK(gpushare_copy(f.gpu, device + 16, device, 16));
    OK(gpushare_copy(f.gpu, buffer_at, device + 16, 16));
    assert_string_equal(buffer, "plain");
    OK(gpushare_copy(f.gpu, buffer_at + 16, buffer_at, 16));
    OK(gpushare_copy(f.gpu, back_at, buffer_at + 16, 16));
    assert_string_equal(back, "plain");
    memset(back, 0, sizeof back);
    OK(gpushare_copy(f.gpu, back_at, plain_at, 16));
    assert_string_equal(back, "plain");
    fixture_stop(&f);
}

struct host_copy {
    const struct fixture *f;
    void *to;
    uint32_t done;
    gpushare_error error;
};

static void *copy_between_host_memories(void *context)
{
    struct host_copy *copy = context;
    static const char text[16] = "new";
    copy->error = gpushare_copy(copy->f->gpu, (uint64_t)(uintptr_t)copy->to,
                                (uint64_t)(uintptr_t)text, sizeof text);
    __atomic_store_n(&copy->done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* The processor does it, but in the stream's order: after the work that was given before. */
static void copies_between_host_memories_wait_for_their_stream(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t thread;
    struct host_copy copy = {.f = &f};
    fixture_start(&f, &(struct fake_options){.manual = true});
    OK(gpushare_host_alloc(f.gpu, 64, &copy.to));
    strcpy(copy.to, "old");
    fixture_launch(&f, NULL);
    const uint32_t *waiters = &f.gpu->default_stream->producer.ring.header->waiter;
    assert_int_equal(pthread_create(&thread, NULL, copy_between_host_memories, &copy), 0);
    while (!__atomic_load_n(waiters, __ATOMIC_SEQ_CST))
        assert_false(__atomic_load_n(&copy.done, __ATOMIC_SEQ_CST));
    /* It sleeps before it touches the buffer, and the buffer is not looked at here: what orders the
     * two threads is shared memory at another address, which ThreadSanitizer can't know. */
    assert_int_equal(fake_run(f.server, 0, 0, 1), 1);
    pthread_join(thread, NULL);
    OK(copy.error);
    assert_string_equal(copy.to, "new");
    fixture_stop(&f);
}

static void bad_ranges_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_address device;
    char plain[64] = "";
    OK(gpushare_memory_alloc(f.gpu, 4096, &device));
    struct proto_attached granted = fake_attached(f.server, 0);
    uint64_t end = granted.device_base + granted.window_bytes;
    const gpushare_error invalid = GPUSHARE_ERROR_INVALID_VALUE;
    assert_int_equal(gpushare_copy_to_device(f.gpu, end - 8, plain, 16), invalid);
    assert_int_equal(gpushare_copy_to_device(f.gpu, granted.device_base - 8, plain, 16), invalid);
    assert_int_equal(gpushare_copy_to_device(f.gpu, device, plain, UINT64_MAX), invalid);
    assert_int_equal(gpushare_copy_to_device(f.gpu, device, NULL, 16), invalid);
    assert_int_equal(gpushare_copy_to_device(f.gpu, (uint64_t)(uintptr_t)plain, plain, 16),
                     invalid);
    assert_int_equal(gpushare_copy_to_device(f.gpu, device, (void *)(uintptr_t)(device + 64), 16),
                     invalid);
    assert_int_equal(gpushare_copy_from_device(f.gpu, plain, end - 8, 16), invalid);
    assert_int_equal(gpushare_copy(f.gpu, device, device + 8, 16), invalid);
    assert_int_equal(gpushare_copy(f.gpu, device, 0, 16), invalid);
    assert_int_equal(gpushare_fill(f.gpu, device, 0, 3, 4), invalid);
    assert_int_equal(gpushare_fill(f.gpu, device + 2, 0, 4, 4), invalid);
    assert_int_equal(gpushare_fill(f.gpu, device, 0, 4, UINT64_MAX / 2), invalid);
    assert_int_equal(gpushare_fill(f.gpu, (uint64_t)(uintptr_t)plain, 0, 1, 4), invalid);
    assert_int_equal(gpushare_memory_alloc(f.gpu, 0, &device), invalid);
    assert_int_equal(gpushare_host_alloc(f.gpu, 0, (void **)&device), invalid);
    OK(gpushare_copy_to_device(f.gpu, device, plain, 0));
    OK(gpushare_memory_free(f.gpu, 0));
    fixture_stop(&f);
}

static void memory_of_another_connection_is_not_ordinary(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_connection *other = fixture_connect(&f, 0);
    gpushare_address mine, foreign;
    char plain[64];
    OK(gpushare_memory_alloc(f.gpu, 4096, &mine));
    OK(gpushare_memory_alloc(other, 4096, &foreign));
    const gpushare_error invalid = GPUSHARE_ERROR_INVALID_VALUE;
    assert_int_equal(gpushare_copy(f.gpu, mine, foreign, 64), invalid);
    assert_int_equal(gpushare_copy(f.gpu, foreign, mine, 64), invalid);
    assert_int_equal(gpushare_copy_from_device(f.gpu, plain, foreign, 64), invalid);
    assert_int_equal(gpushare_copy_to_device(f.gpu, mine, (const void *)(uintptr_t)foreign, 64),
                     invalid);
    assert_int_equal(gpushare_fill(f.gpu, foreign, 0, 1, 64), invalid);
    /* A host buffer of another connection is memory of this process like any other. */
    void *buffer;
    OK(gpushare_host_alloc(other, 4096, &buffer));
    memset(buffer, 5, 4096);
    OK(gpushare_copy_to_device(f.gpu, mine, buffer, 4096));
    OK(gpushare_copy_from_device(f.gpu, plain, mine, 64));
    assert_int_equal(plain[63], 5);
    gpushare_close(&other);
    fixture_stop(&f);
}

static void fills_of_each_width(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    gpushare_address device;
    OK(gpushare_memory_alloc(f.gpu, 64, &device));
    const uint8_t *there = (const uint8_t *)(uintptr_t)device;
    OK(gpushare_fill(f.gpu, device, 0x11223344, 1, 8));
    OK(gpushare_fill(f.gpu, device + 8, 0x11223344, 2, 4));
    OK(gpushare_fill(f.gpu, device + 16, 0x11223344, 4, 2));
    static const uint8_t expected[32] = {0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44,
                                         0x44, 0x33, 0x44, 0x33, 0x44, 0x33, 0x44, 0x33,
                                         0x44, 0x33, 0x22, 0x11, 0x44, 0x33, 0x22, 0x11};
    assert_memory_equal(there, expected, 32);
    fixture_stop(&f);
}

static void staging_shrinks_to_the_memory_that_the_limit_leaves(void **state)
{
    (void)state;
    struct fixture f;
    /* A quarter MiB: no large buffer fits, a smaller one does. */
    fixture_start(&f, &(struct fake_options){.host_limit = 256 << 10});
    uint8_t *in = make_pattern(3 * MIB, 5), *out = calloc(1, 3 * MIB);
    gpushare_address device;
    OK(gpushare_memory_alloc(f.gpu, 3 * MIB, &device));
    OK(gpushare_copy_to_device(f.gpu, device, in, 3 * MIB));
    OK(gpushare_copy_from_device(f.gpu, out, device, 3 * MIB));
    assert_memory_equal(out, in, 3 * MIB);
    OK(gpushare_copy_to_device(f.gpu, device, out + 1, 100));
    free(in);
    free(out);
    fixture_stop(&f);
}

static void no_room_for_staging_says_what_the_server_says(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &(struct fake_options){.host_limit = 8192});
    gpushare_address device;
    void *buffer;
    char plain[100];
    memset(plain, 'x', sizeof plain);
    OK(gpushare_memory_alloc(f.gpu, 4096, &device));
    OK(gpushare_host_alloc(f.gpu, 8192, &buffer));
    assert_int_equal(gpushare_copy_to_device(f.gpu, device, plain, 100),
                     GPUSHARE_ERROR_OUT_OF_MEMORY);
    /* The server knows what set the limit. */
    assert_non_null(strstr(gpushare_error_text(), "staging buffer"));
    assert_non_null(strstr(gpushare_error_text(), "pinned-host limit of the fake"));
    assert_int_equal(gpushare_copy_from_device(f.gpu, plain, device, 100),
                     GPUSHARE_ERROR_OUT_OF_MEMORY);
    /* A shared buffer needs none. */
    OK(gpushare_copy_to_device(f.gpu, device, buffer, 4096));
    fixture_stop(&f);
}

struct copier {
    struct fixture *f;
    unsigned seed;
    bool good;
};

static void *copy_back_and_forth(void *context)
{
    struct copier *c = context;
    const size_t bytes = 10 * MIB + 77;
    uint8_t *in = make_pattern(bytes, c->seed), *out = calloc(1, bytes);
    gpushare_stream *stream;
    gpushare_address device;
    c->good = !gpushare_stream_create(c->f->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream) &&
              !gpushare_memory_alloc(c->f->gpu, bytes, &device);
    for (int i = 0; i < 3 && c->good; i++) {
        memset(out, 0, bytes);
        c->good = !gpushare_copy_to_device_async(c->f->gpu, device, in, bytes, stream) &&
                  !gpushare_copy_from_device_async(c->f->gpu, out, device, bytes, stream) &&
                  memcmp(in, out, bytes) == 0;
    }
    free(in);
    free(out);
    return NULL;
}

/* More threads than chunks, each wanting several: nobody may wait for a chunk while holding one. */
static void threads_share_the_staging_buffers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    struct copier copiers[6];
    pthread_t threads[6];
    for (unsigned i = 0; i < 6; i++) {
        copiers[i] = (struct copier){.f = &f, .seed = 100 + i};
        pthread_create(&threads[i], NULL, copy_back_and_forth, &copiers[i]);
    }
    for (unsigned i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        assert_true(copiers[i].good);
    }
    fixture_stop(&f);
}

/* With the device standing still, all chunks are filled ahead: that is the pipeline. */
static void *copy_in(void *context)
{
    struct copier *c = context;
    uint8_t *in = make_pattern(24 * MIB, c->seed);
    gpushare_address device = fake_attached(c->f->server, 0).device_base;
    c->good = !gpushare_copy_to_device(c->f->gpu, device, in, 24 * MIB);
    c->good = c->good && memcmp((void *)(uintptr_t)device, in, 24 * MIB) == 0;
    free(in);
    return NULL;
}

static void large_copies_run_ahead_of_the_device(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, &(struct fake_options){.manual = true});
    gpushare_address device;
    OK(gpushare_memory_alloc(f.gpu, 24 * MIB, &device));
    struct copier c = {.f = &f, .seed = 9};
    pthread_t thread;
    pthread_create(&thread, NULL, copy_in, &c);
    /* Four chunks of 4 MiB, and then it waits. */
    for (int i = 0; i < 5000 && fake_ready(f.server, 0, 0) < 4; i++)
        usleep(1000);
    usleep(100000); /* it may come with no fifth */
    assert_int_equal(fake_run(f.server, 0, 0, 100), 4);
    fake_automatic(f.server, true);
    pthread_join(thread, NULL);
    assert_true(c.good);
    assert_int_equal(fake_count(f.server, PROTO_HOST_ALLOC), 4);
    fixture_stop(&f);
}

/* ---- between connections ---- */

struct pair {
    struct fixture f;
    gpushare_connection *other;
    gpushare_address here, there;
};

static void pair_start(struct pair *pair, bool manual, size_t bytes)
{
    fixture_start(&pair->f, &(struct fake_options){.devices = 2, .manual = manual});
    pair->other = fixture_connect(&pair->f, 1);
    OK(gpushare_memory_alloc(pair->f.gpu, bytes, &pair->here));
    OK(gpushare_memory_alloc(pair->other, bytes, &pair->there));
}

static void copies_between_connections(void **state)
{
    (void)state;
    struct pair pair;
    const size_t bytes = 21 * MIB + 5;
    pair_start(&pair, false, bytes);
    uint8_t *in = make_pattern(bytes, 3);
    memcpy((void *)(uintptr_t)pair.here, in, bytes);
    OK(gpushare_copy_peer(pair.other, pair.there, pair.f.gpu, pair.here, bytes));
    assert_memory_equal((void *)(uintptr_t)pair.there, in, bytes);
    /* Back, in a stream of the source. */
    memset((void *)(uintptr_t)pair.here, 0, bytes);
    gpushare_stream *stream;
    OK(gpushare_stream_create(pair.other, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_copy_peer_async(pair.f.gpu, pair.here, pair.other, pair.there, bytes, pair.other,
                                stream));
    OK(gpushare_stream_synchronize(pair.other, stream));
    assert_memory_equal((void *)(uintptr_t)pair.here, in, bytes);
    /* Within one connection it is a plain copy. */
    unsigned shares = fake_count(pair.f.server, PROTO_HOST_IMPORT);
    assert_int_equal(shares, 2);
    OK(gpushare_copy_peer(pair.f.gpu, pair.here, pair.f.gpu, pair.here + MIB, MIB));
    assert_memory_equal((void *)(uintptr_t)pair.here, in + MIB, MIB);
    assert_int_equal(fake_count(pair.f.server, PROTO_HOST_IMPORT), shares);
    assert_int_equal(gpushare_copy_peer_async(pair.f.gpu, pair.here, pair.f.gpu, pair.here + MIB, 1,
                                              pair.other, NULL),
                     GPUSHARE_ERROR_INVALID_VALUE);
    free(in);
    gpushare_close(&pair.other);
    fixture_stop(&pair.f);
}

static void peer_copy_comes_after_earlier_and_before_later_work(void **state)
{
    (void)state;
    struct pair pair;
    pair_start(&pair, true, 4096);
    struct fixture *f = &pair.f;
    gpushare_stream *stream;
    OK(gpushare_stream_create(f->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    fixture_launch(f, stream);
    OK(gpushare_copy_peer_async(pair.other, pair.there, f->gpu, pair.here, 4096, f->gpu, stream));
    fixture_launch(f, stream);
    /* Client 0: stream 1 is the caller's. Client 1: the library's own stream is 1. */
    assert_int_equal(fake_run(f->server, 1, 1, 9), 0);
    assert_int_equal(fake_run(f->server, 0, 1, 9), 2); /* launch, copy in; then it waits */
    assert_int_equal(fake_launches(f->server, 0), 1);
    assert_int_equal(fake_run(f->server, 1, 1, 9), 3); /* after the launch, after the copy, copy */
    assert_int_equal(fake_run(f->server, 0, 1, 9), 2); /* the wait, the launch */
    assert_int_equal(fake_launches(f->server, 0), 2);
    gpushare_close(&pair.other);
    fixture_stop(f);
}

static void closing_one_of_two_peers_leaves_the_other_whole(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct pair pair;
        pair_start(&pair, false, 4096);
        gpushare_connection **closing = which ? &pair.other : &pair.f.gpu;
        gpushare_connection **staying = which ? &pair.f.gpu : &pair.other;
        gpushare_address memory = which ? pair.here : pair.there;
        OK(gpushare_copy_peer(pair.other, pair.there, pair.f.gpu, pair.here, 4096));
        OK(gpushare_copy_peer(pair.f.gpu, pair.here, pair.other, pair.there, 4096));
        gpushare_close(closing);
        OK(gpushare_fill(*staying, memory, 7, 1, 4096));
        struct gpushare_memory_info info = {.size = sizeof info};
        OK(gpushare_memory_info(*staying, &info));
        assert_int_equal(info.host_used, 0);
        /* A new one in its place starts afresh. */
        gpushare_connection *third = fixture_connect(&pair.f, 1);
        gpushare_address far;
        uint8_t back[4096];
        OK(gpushare_memory_alloc(third, 4096, &far));
        OK(gpushare_copy_peer(third, far, *staying, memory, 4096));
        OK(gpushare_copy_from_device(third, back, far, 4096));
        assert_int_equal(back[0], 7);
        assert_int_equal(back[4095], 7);
        gpushare_close(&third);
        gpushare_close(&pair.other);
        fixture_stop(&pair.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_memory_round_trips),
        cmocka_unit_test(source_can_be_reused_when_an_async_copy_returns),
        cmocka_unit_test(shared_buffers_are_copied_by_one_descriptor),
        cmocka_unit_test(no_command_crosses_the_edge_of_a_registration),
        cmocka_unit_test(direction_is_found_from_addresses),
        cmocka_unit_test(copies_between_host_memories_wait_for_their_stream),
        cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(memory_of_another_connection_is_not_ordinary),
        cmocka_unit_test(fills_of_each_width),
        cmocka_unit_test(staging_shrinks_to_the_memory_that_the_limit_leaves),
        cmocka_unit_test(no_room_for_staging_says_what_the_server_says),
        cmocka_unit_test(threads_share_the_staging_buffers),
        cmocka_unit_test(large_copies_run_ahead_of_the_device),
        cmocka_unit_test(copies_between_connections),
        cmocka_unit_test(peer_copy_comes_after_earlier_and_before_later_work),
        cmocka_unit_test(closing_one_of_two_peers_leaves_the_other_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
