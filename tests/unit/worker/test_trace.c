/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: between a question for what a client used and the end of a trace a hold may last 5 ms more
 */
/* The record of work and its times, read back from the memory as any reader would. */
#include "tests/unit/worker/harness.h"

#include "common/clock.h"
#include "common/ipc/shared_word.h"
#include "server/worker/sharing/meter.h"
#include "server/worker/sharing/stream_pool.h"
#include "server/worker/trace.h"

#define MS UINT64_C(1000000)

static const struct trace_device device = {
    .mode = 2, .sm_groups = 17, .sm_group_multiprocessors = 8, .remainder = 4};

/* The reader's end: what was written stays when the writer has gone. */
struct reader {
    struct shm memory;
    const struct proto_trace_header *header;
    const struct proto_trace_record *records;
};

static void reader_open(struct reader *reader, size_t bytes)
{
    assert_int_equal(shm_create(&reader->memory, "trace", bytes), 0);
    reader->header = reader->memory.base;
    reader->records = (const void *)(reader->header + 1);
}

static int start(struct trace *trace, const struct reader *reader, size_t bytes)
{
    return trace_begin(trace, fcntl(reader->memory.fd, F_DUPFD_CLOEXEC, 0), bytes, &device);
}

static struct proto_trace_record lease(uint32_t client, uint64_t from, uint64_t to)
{
    return (struct proto_trace_record){
        .kind = TRACE_LEASE, .client = client, .value = 3, .from = from, .to = to};
}

static void records_come_back_as_they_were_added(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    trace_open(&trace);
    reader_open(&reader, 4096);
    struct proto_trace_record off = lease(1, 1, UINT64_MAX);
    trace_add(&trace, &off); /* not on */
    uint64_t before = clock_now();
    assert_int_equal(start(&trace, &reader, 4096), 0);
    assert_true(trace_is_on(&trace));
    uint64_t now = clock_now();
    struct proto_trace_record one = lease(7, now + 5, now + 9);
    trace_add(&trace, &one);
    struct proto_trace_record span = {.kind = TRACE_SPAN,
                                      .client = 8,
                                      .stream = 2,
                                      .value = 32,
                                      .from = now + 1,
                                      .to = now + 2,
                                      .sm_groups = {5, 0, 0, 1}};
    trace_add(&trace, &span);
    assert_int_equal(reader.header->ended, 0);
    trace_end(&trace);
    trace_end(&trace);
    trace_add(&trace, &one);
    assert_false(trace_is_on(&trace));
    assert_int_equal(reader.header->version, 1);
    assert_int_equal(reader.header->record_bytes, sizeof one);
    assert_int_equal(reader.header->capacity, (4096 - 128) / 64);
    assert_int_equal(reader.header->next, 2);
    assert_true(reader.header->started >= before && reader.header->started <= now);
    assert_true(reader.header->ended >= now && reader.header->ended <= clock_now());
    assert_int_equal(reader.header->mode, 2);
    assert_int_equal(reader.header->sm_groups, 17);
    assert_int_equal(reader.header->sm_group_multiprocessors, 8);
    assert_int_equal(reader.header->remainder, 4);
    assert_memory_equal(&reader.records[0], &one, sizeof one);
    assert_memory_equal(&reader.records[1], &span, sizeof span);
    assert_int_equal(reader.records[2].kind, 0);
    shm_release(&reader.memory);
}

static void records_without_room_are_counted(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    trace_open(&trace);
    reader_open(&reader, 8192); /* the writer is given less, and must not write beyond */
    assert_int_equal(start(&trace, &reader, 128 + 3 * 64 + 63), 0);
    uint64_t now = clock_now();
    for (uint32_t i = 0; i < 10; i++) {
        struct proto_trace_record record = lease(i + 1, now, now);
        trace_add(&trace, &record);
    }
    trace_end(&trace);
    assert_int_equal(reader.header->capacity, 3);
    assert_int_equal(reader.header->next, 10);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(reader.records[i].client, i + 1);
    assert_int_equal(reader.records[3].kind, 0);
    shm_release(&reader.memory);
}

static void earlier_spans_are_cut_or_left_out(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    trace_open(&trace);
    reader_open(&reader, 4096);
    assert_int_equal(start(&trace, &reader, 4096), 0);
    uint64_t started = reader.header->started;
    struct proto_trace_record past = lease(1, started - 2, started - 1);
    struct proto_trace_record half = lease(2, started - 2, started + 1);
    struct proto_trace_record wrong = lease(3, started + 9, started + 5);
    trace_add(&trace, &past);
    trace_add(&trace, &half);
    trace_add(&trace, &wrong);
    trace_end(&trace);
    assert_int_equal(reader.header->next, 2);
    assert_int_equal(reader.records[0].client, 2);
    assert_int_equal(reader.records[0].from, started);
    assert_int_equal(reader.records[0].to, started + 1);
    assert_int_equal(reader.records[1].from, reader.records[1].to);
    shm_release(&reader.memory);
}

static void memory_that_can_not_be_trusted_is_refused(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    trace_open(&trace);
    reader_open(&reader, 4096);
    assert_int_equal(start(&trace, &reader, 8192), -EBADF);
    assert_int_equal(start(&trace, &reader, 128 + 63), -EINVAL);
    int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
    assert_int_equal(ftruncate(unsealed, 4096), 0);
    assert_int_equal(trace_begin(&trace, unsealed, 4096, &device), -EBADF);
    assert_int_equal(fcntl(unsealed, F_GETFD), -1);
    assert_false(trace_is_on(&trace));
    assert_int_equal(start(&trace, &reader, 4096), 0);
    assert_int_equal(start(&trace, &reader, 4096), 0); /* the first one is stopped */
    trace_end(&trace);
    shm_release(&reader.memory);
}

/* ---- another worker ---- */

static int go_on(struct trace *trace, const struct reader *reader, uint64_t lost_at)
{
    return trace_go_on(trace, fcntl(reader->memory.fd, F_DUPFD_CLOEXEC, 0), 4096, lost_at);
}

/* Writes one record and begins another, as a worker does that is lost then. */
static void leave_behind(const struct reader *reader, const struct proto_trace_record *record)
{
    struct trace trace;
    trace_open(&trace);
    assert_int_equal(start(&trace, reader, 4096), 0);
    trace_add(&trace, record);
    shared_word_draw(&((struct proto_trace_header *)reader->memory.base)->next);
    shm_release(&trace.memory);
}

static void another_worker_goes_on_behind_the_records(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    reader_open(&reader, 4096);
    uint64_t now = clock_now();
    struct proto_trace_record first = lease(7, now + 1000 * MS, now + 1001 * MS);
    leave_behind(&reader, &first);
    struct proto_trace_header header = *reader.header;
    trace_open(&trace);
    uint64_t lost_at = clock_now();
    assert_int_equal(go_on(&trace, &reader, lost_at), 0);
    assert_true(trace_is_on(&trace));
    assert_memory_equal(reader.header, &header, sizeof header);
    trace_add_recovery(&trace, 0);
    trace_add_recovery(&trace, 7);
    struct proto_trace_record early = lease(8, header.started - 2, header.started - 1);
    trace_add(&trace, &early); /* before the trace, whose beginning is the first worker's */
    trace_end(&trace);
    assert_int_equal(reader.header->next, 4);
    assert_int_equal(reader.header->started, header.started);
    assert_true(reader.header->ended >= lost_at);
    assert_memory_equal(&reader.records[0], &first, sizeof first);
    assert_int_equal(reader.records[1].kind, 0);
    for (uint32_t i = 2; i < 4; i++) {
        assert_int_equal(reader.records[i].kind, TRACE_RECOVERY);
        assert_int_equal(reader.records[i].client, i == 2 ? 0 : 7);
        assert_int_equal(reader.records[i].from, lost_at);
        assert_true(reader.records[i].to >= lost_at);
        assert_true(reader.records[i].to <= reader.header->ended);
    }
    assert_int_equal(reader.records[4].kind, 0);
    shm_release(&reader.memory);
}

static void only_a_trace_that_goes_on_has_recoveries(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    trace_open(&trace);
    trace_add_recovery(&trace, 1); /* not on */
    reader_open(&reader, 4096);
    assert_int_equal(start(&trace, &reader, 4096), 0);
    assert_int_equal(go_on(&trace, &reader, clock_now()), 0);
    trace_add_recovery(&trace, 1);
    assert_int_equal(reader.header->next, 1);
    assert_int_equal(start(&trace, &reader, 4096), 0);
    trace_add_recovery(&trace, 1);
    trace_end(&trace);
    assert_int_equal(reader.header->next, 0);
    shm_release(&reader.memory);
}

static void what_a_lost_worker_left_is_not_trusted(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    trace_open(&trace);
    reader_open(&reader, 4096);
    assert_int_equal(go_on(&trace, &reader, clock_now()), -EINVAL); /* nothing */
    uint64_t now = clock_now();
    struct proto_trace_record first = lease(7, now + 1000 * MS, now + 1001 * MS);
    leave_behind(&reader, &first);
    struct proto_trace_header *header = reader.memory.base, good = *header;
    uint64_t lost_at = clock_now();
    assert_int_equal(go_on(&trace, &reader, good.started - 1), -EINVAL);
    header->version = 2;
    assert_int_equal(go_on(&trace, &reader, lost_at), -EINVAL);
    *header = good;
    header->record_bytes = 65;
    assert_int_equal(go_on(&trace, &reader, lost_at), -EINVAL);
    *header = good;
    header->capacity++;
    assert_int_equal(go_on(&trace, &reader, lost_at), -EINVAL);
    *header = good;
    assert_false(trace_is_on(&trace));
    header->next = UINT64_MAX; /* it would wrap, and the first records be lost */
    header->ended = 1;
    assert_int_equal(go_on(&trace, &reader, lost_at), 0);
    assert_int_equal(header->ended, 0);
    trace_add_recovery(&trace, 0);
    trace_add_recovery(&trace, 1);
    trace_end(&trace);
    assert_true(header->next > header->capacity);
    assert_memory_equal(&reader.records[0], &first, sizeof first);
    shm_release(&reader.memory);
}

/* ---- several threads ---- */

enum { WRITERS = 3, EACH = 20000 };

struct writer {
    pthread_t thread;
    struct trace *trace;
    uint32_t client;
};

static void *writer_main(void *context)
{
    struct writer *writer = context;
    for (uint32_t i = 0; i < EACH; i++) {
        struct proto_trace_record record = lease(writer->client, UINT64_MAX - EACH + i, UINT64_MAX);
        trace_add(writer->trace, &record);
    }
    return NULL;
}

static void threads_write_at_once_and_a_stop_waits_for_them(void **state)
{
    (void)state;
    struct trace trace;
    struct reader reader;
    struct writer writers[WRITERS];
    size_t bytes = 128 + (size_t)WRITERS * EACH * 64;
    trace_open(&trace);
    reader_open(&reader, bytes);
    assert_int_equal(start(&trace, &reader, bytes), 0);
    for (uint32_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.trace = &trace, .client = i};
        pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]);
    }
    while (__atomic_load_n(&reader.header->next, __ATOMIC_RELAXED) < EACH)
        sched_yield();
    trace_end(&trace); /* in the middle, or behind all */
    uint64_t next = reader.header->next;
    uint64_t least[WRITERS] = {0};
    for (uint64_t i = 0; i < next; i++) {
        const struct proto_trace_record *record = &reader.records[i];
        assert_int_equal(record->kind, TRACE_LEASE);
        assert_true(record->client < WRITERS);
        /* One thread's records stand in its order, none twice. */
        assert_true(record->from > least[record->client]);
        least[record->client] = record->from;
    }
    for (uint32_t i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    assert_int_equal(reader.header->next, next);
    assert_true(next >= EACH);
    shm_release(&reader.memory);
}

/* ---- spans of the account ---- */

struct actor {
    struct client client;
    struct partition partition;
    struct client_stream stream;
    struct pool_stream on;
    uint64_t shadow;
};

static void actor_open(struct actor *actor, uint32_t number)
{
    memset(actor, 0, sizeof *actor);
    actor->partition.sm_groups.bits[0] = 6;
    actor->client.number = number;
    actor->client.shared.partition = &actor->partition;
    actor->on.partition = &actor->partition;
    actor->stream.client = &actor->client;
    actor->stream.index = 9;
    actor->stream.shadow = &actor->shadow;
    actor->stream.bound = &actor->on;
}

/* The fake's clock is in milliseconds, and each record advances it by one. */
static void run(struct meter *account, struct actor *actor, uint64_t from, uint64_t to,
                uint64_t commands, bool over)
{
    fake.clock = from - 1;
    meter_begin(account, &actor->stream, false);
    fake.clock = to - 1;
    actor->stream.ring.value += commands;
    meter_end(account, &actor->stream, actor->stream.ring.value);
    if (over)
        actor->shadow = actor->stream.ring.value;
}

static void spans_are_as_long_as_the_device_says_and_do_not_overlap(void **state)
{
    (void)state;
    struct cuda_driver driver = fake_driver();
    struct partition_table partitions = {.count = 4, .sm_group_size = 8};
    struct meter account;
    struct trace trace;
    struct reader reader;
    struct actor actor;
    fake_reset();
    trace_open(&trace);
    reader_open(&reader, 65536);
    assert_int_equal(meter_open(&account, &driver, &partitions), CUDA_OK);
    account.trace = &trace;
    actor_open(&actor, 41);
    run(&account, &actor, 1, 5, 1, true); /* before the trace */
    meter_trace_begin(&account);
    assert_int_equal(start(&trace, &reader, 65536), 0);
    /* The device's time passes much faster than the host's here: only the lengths can be kept. */
    run(&account, &actor, 10, 13, 7, true);
    meter_collect(&account);
    assert_int_equal(reader.header->next, 1);
    for (uint64_t i = 0; i < 50; i++)
        run(&account, &actor, 20 + 4 * i, 22 + 4 * i, i + 1, true);
    meter_collect(&account);
    assert_int_equal(reader.header->next, 51);
    uint64_t last = 0;
    for (uint32_t i = 0; i < 51; i++) {
        const struct proto_trace_record *record = &reader.records[i];
        assert_int_equal(record->kind, TRACE_SPAN);
        assert_int_equal(record->client, 41);
        assert_int_equal(record->stream, 9);
        assert_int_equal(record->value, i ? i : 7);
        assert_int_equal(record->sm_groups[0], 6);
        assert_true(record->from >= last);
        assert_true(record->to >= record->from);
        assert_true(record->to <= clock_now());
        last = record->to;
    }
    assert_true(reader.records[0].to - reader.records[0].from <= 3 * MS);
    /* Work that still runs at the end is there so far. */
    run(&account, &actor, 300, 900, 2, false);
    meter_trace_end(&account);
    trace_end(&trace);
    assert_int_equal(reader.header->next, 52);
    assert_int_equal(reader.records[51].value, 2);
    assert_true(reader.records[51].to <= clock_now());
    meter_forget(&account, &actor.client);
    meter_close(&account);
    assert_int_equal(fake.live_events, 0);
    shm_release(&reader.memory);
}

/* ---- messages ---- */

/* The first record behind `last` (NULL: from the start) of this kind and client. */
static const struct proto_trace_record *next_of(const struct reader *reader, uint32_t kind,
                                                uint32_t client,
                                                const struct proto_trace_record *last)
{
    uint64_t i = last ? (uint64_t)(last - reader->records) + 1 : 0;
    for (; i < reader->header->next; i++)
        if (reader->records[i].kind == kind && reader->records[i].client == client)
            return &reader->records[i];
    return NULL;
}

static uint64_t sum_of(const struct reader *reader, uint32_t kind, uint32_t client)
{
    uint64_t sum = 0;
    const struct proto_trace_record *record = NULL;
    while ((record = next_of(reader, kind, client, record)))
        sum += record->to - record->from;
    return sum;
}

static void the_supervisor_begins_and_ends_traces(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader, 1 << 20);
    struct proto_worker_trace_start wanted = {.count = 1 << 20};
    harness_ask(PROTO_WORKER_TRACE_STOP, 0, NULL, PROTO_DONE); /* there is none */
    harness_send(PROTO_WORKER_TRACE_START, 0, &wanted, NULL, 0, &reader.memory.fd, 1);
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(reader.header->version, 1);
    assert_int_equal(reader.header->sm_groups, 17); /* 132 multiprocessors in groups of 8 */
    assert_int_equal(reader.header->sm_group_multiprocessors, 8);
    assert_int_equal(reader.header->remainder, 4);
    struct peer *peer = peer_attach(5);
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch command = peer_launch(peer_function(peer, 1, "kernel"));
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &command)), 0);
    harness_ask(PROTO_WORKER_TRACE_STOP, 0, NULL, PROTO_DONE);
    assert_true(reader.header->ended >= reader.header->started);
    const struct proto_trace_record *share = next_of(&reader, TRACE_SM_GROUPS, 5, NULL);
    assert_non_null(share);
    assert_int_equal(share->value, 132);
    assert_int_equal(share->sm_groups[0], 0x1ffff);
    assert_null(next_of(&reader, TRACE_SM_GROUPS, 5, share));
    const struct proto_trace_record *span = next_of(&reader, TRACE_SPAN, 5, NULL);
    assert_non_null(span);
    assert_null(next_of(&reader, TRACE_SPAN, 5, span));
    assert_int_equal(reader.header->next, 2);
    wanted.count = 2 << 20;
    harness_send(PROTO_WORKER_TRACE_START, 0, &wanted, NULL, 0, &reader.memory.fd, 1);
    assert_int_equal(harness_receive(), PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
    peer_detach(peer);
    shm_release(&reader.memory);
}

static void a_worker_goes_on_with_a_trace_of_another(void **state)
{
    (void)state;
    struct reader reader;
    reader_open(&reader, 1 << 20);
    struct proto_worker_trace_start wanted = {.count = 1 << 20, .lost_at = clock_now()};
    harness_send(PROTO_WORKER_TRACE_START, 0, &wanted, NULL, 0, &reader.memory.fd, 1);
    assert_int_equal(harness_receive(), PROTO_FAILED); /* there is none */
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
    wanted.lost_at = 0;
    harness_send(PROTO_WORKER_TRACE_START, 0, &wanted, NULL, 0, &reader.memory.fd, 1);
    assert_int_equal(harness_receive(), PROTO_DONE);
    harness_ask(PROTO_WORKER_TRACE_STOP, 0, NULL, PROTO_DONE);
    uint64_t started = reader.header->started, next = reader.header->next;
    wanted.lost_at = clock_now();
    harness_send(PROTO_WORKER_TRACE_START, 0, &wanted, NULL, 0, &reader.memory.fd, 1);
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(reader.header->started, started);
    assert_true(reader.header->next > next);
    const struct proto_trace_record *recovery = next_of(&reader, TRACE_RECOVERY, 0, NULL);
    assert_non_null(recovery);
    assert_int_equal(recovery->from, wanted.lost_at);
    assert_null(next_of(&reader, TRACE_RECOVERY, 0, recovery));
    const struct proto_trace_record *mode = next_of(&reader, TRACE_MODE, 0, NULL);
    assert_non_null(mode);
    assert_int_equal(mode->value, reader.header->mode);
    harness_ask(PROTO_WORKER_TRACE_STOP, 0, NULL, PROTO_DONE);
    assert_true(reader.header->ended >= wanted.lost_at);
    shm_release(&reader.memory);
}

static struct proto_worker_usage usage_of(uint32_t client)
{
    return *(const struct proto_worker_usage *)harness_ask(PROTO_WORKER_USAGE_QUERY, client, NULL,
                                                           PROTO_WORKER_USAGE);
}

static void about_the_same(uint64_t one, uint64_t other, uint64_t slack)
{
    if (one + slack < other || other + slack < one)
        fail_msg("%llu and %llu", (unsigned long long)one, (unsigned long long)other);
}

static void leases_add_up_to_charges_and_holds_to_throttled_time(void **state)
{
    (void)state;
    struct reader reader;
    struct peer *peers[2];
    struct proto_command_launch commands[2];
    uint64_t values[2];
    reader_open(&reader, 8 << 20);
    for (uint32_t i = 0; i < 2; i++) {
        struct proto_worker_limits limits = {.allowance = granted_whole()};
        limits.allowance.time.request = 5000;
        peers[i] = peer_attach(i + 1);
        harness_ask(PROTO_WORKER_LIMITS, i + 1, &limits, PROTO_WORKER_ATTACHED);
        peer_load_text(peers[i], 1, harness_ptx, 0);
        commands[i] = peer_launch(peer_function(peers[i], 1, "kernel"));
    }
    struct proto_worker_trace_start wanted = {.count = 8 << 20};
    harness_send(PROTO_WORKER_TRACE_START, 0, &wanted, NULL, 0, &reader.memory.fd, 1);
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(reader.header->mode, PROTO_MODE_CONCURRENT);
    harness_set_mode(PROTO_MODE_STRICT, 5 * MS);
    uint64_t end = clock_now() + 120 * MS;
    while (clock_now() < end)
        for (uint32_t i = 0; i < 2; i++)
            if (ring_room(&peers[i]->producers[0]) != RING_FULL)
                values[i] = peer_push(peers[i], 0, &commands[i]);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(peer_wait(peers[i], 0, values[i]), 0);
    struct proto_worker_usage used[2] = {usage_of(1), usage_of(2)};
    harness_ask(PROTO_WORKER_TRACE_STOP, 0, NULL, PROTO_DONE);
    const struct proto_trace_record *mode = next_of(&reader, TRACE_MODE, 0, NULL);
    assert_non_null(mode);
    assert_int_equal(mode->value, PROTO_MODE_STRICT);
    assert_true(reader.header->next < reader.header->capacity);
    uint64_t last = 0, leases = 0;
    for (uint64_t i = 0; i < reader.header->next; i++) {
        const struct proto_trace_record *record = &reader.records[i];
        if (record->kind != TRACE_LEASE)
            continue;
        assert_int_equal(record->value, 0); /* everybody is on all SM groups: one lease group */
        assert_true(record->from >= last);
        assert_true(record->from >= mode->from);
        last = record->to;
        leases++;
    }
    assert_true(leases >= 4);
    for (uint32_t i = 0; i < 2; i++) {
        about_the_same(sum_of(&reader, TRACE_LEASE, i + 1), used[i].charged, MS);
        about_the_same(sum_of(&reader, TRACE_HOLD, i + 1), used[i].throttled_lease, 5 * MS);
        assert_true(used[i].throttled_lease > 0);
    }
    harness_set_mode(PROTO_MODE_CONCURRENT, 5 * MS);
    peer_detach(peers[0]);
    peer_detach(peers[1]);
    shm_release(&reader.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_were_added),
        cmocka_unit_test(records_without_room_are_counted),
        cmocka_unit_test(earlier_spans_are_cut_or_left_out),
        cmocka_unit_test(memory_that_can_not_be_trusted_is_refused),
        cmocka_unit_test(another_worker_goes_on_behind_the_records),
        cmocka_unit_test(only_a_trace_that_goes_on_has_recoveries),
        cmocka_unit_test(what_a_lost_worker_left_is_not_trusted),
        cmocka_unit_test(threads_write_at_once_and_a_stop_waits_for_them),
        cmocka_unit_test(spans_are_as_long_as_the_device_says_and_do_not_overlap),
        cmocka_unit_test_setup_teardown(the_supervisor_begins_and_ends_traces, harness_setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(a_worker_goes_on_with_a_trace_of_another, harness_setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(leases_add_up_to_charges_and_holds_to_throttled_time,
                                        harness_setup, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
