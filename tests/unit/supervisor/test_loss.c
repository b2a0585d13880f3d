/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Clients, workers and the server that end while requests are under way. */
#include "tests/unit/supervisor/fake.h"

#include <sys/mman.h>

#include "common/ipc/journal.h"
#include "common/ipc/shared_word.h"

static struct fake fake;

/* Every request of a client that is gone before the worker, or the copy, has answered. */
static void a_client_that_vanishes_at_any_point_leaves_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    for (unsigned what = 0; what < 5; what++) {
        fake.worker[0].automatic = true;
        int fd = fake_attach(&fake, 0, 64 * MIB, NULL, NULL);
        uint64_t small = fake_alloc(&fake, fd, 4096);
        fake.worker[0].automatic = false;
        struct proto_memory_alloc alloc = {.count = what == 1 ? MIB / 2 : 4 * MIB};
        struct proto_memory_free give = {.address = small};
        struct proto_host_alloc host = {.count = MIB};
        for (unsigned i = 0; what < 2 && i < 5; i++)
            fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
        if (what == 2)
            fake_send(&fake, fd, PROTO_MEMORY_FREE, &give);
        if (what == 3)
            fake_send(&fake, fd, PROTO_HOST_ALLOC, &host);
        if (what == 4)
            fake_send_image(&fake, fd, "text", 4);
        fake_settle(&fake);
        close(fd);
        fake_settle(&fake);
        fake.worker[0].automatic = true;
        fake_expect_nothing_left(&fake);
    }
    fake_close(&fake);
}

static void a_fault_takes_its_author_along_by_name(void **state)
{
    (void)state;
    fake_open(&fake, 2, 256 * MIB);
    int fds[3], elsewhere = fake_attach(&fake, 1, 0, NULL, NULL);
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
        fake_alloc(&fake, fds[i], 3 * MIB);
        fake_alloc(&fake, fds[i], 1000);
        fake_load(&fake, fds[i], "text");
        fake_host_alloc(&fake, fds[i], MIB, NULL);
    }
    fake.worker[0].automatic = false;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    fake_send(&fake, fds[0], PROTO_MEMORY_ALLOC, &alloc);
    fake_settle(&fake);
    /* The fault word is what a sleeping client sees. */
    struct session *last = LIST_LAST(&fake.supervisor->server.session_list, struct session, link);
    if (!last) {
        fail_msg("the server has no session");
        return;
    }
    struct proto_status_header *status = last->status.base;
    struct proto_status_header *copy = mmap(NULL, 4096, PROT_READ, MAP_SHARED, last->status.fd, 0);
    assert_ptr_not_equal(copy, MAP_FAILED);
    assert_int_equal(status->fault, 0);
    fake_put_in_flight(&fake, last, 1);
    fake_say_fault(&fake, 0, PROTO_ERROR_ILLEGAL_ADDRESS);
    fake_expect_ended(&fake, fds[2], PROTO_ERROR_ILLEGAL_ADDRESS, "kernel f used 0x0");
    assert_int_equal(copy->fault, PROTO_ERROR_ILLEGAL_ADDRESS);
    munmap(copy, 4096);
    for (unsigned i = 0; i < 2; i++)
        close(fds[i]);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    fake_usage(&fake, elsewhere);
    fake_kill_worker(&fake, 0);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
    int next = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, next, MIB);
    fake_kill_worker(&fake, 0); /* without a word, this time */
    fake_expect_ended(&fake, next, PROTO_ERROR_WORKER_LOST, "worker of device 0");
    close(elsewhere);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void start_next_worker(void)
{
    FAKE_WAIT(&fake, !fake.supervisor->server.devices[0].link);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
}

static void an_idle_client_goes_on_with_all_that_it_had(void **state)
{
    (void)state;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    struct proto_stream_create create = {0};
    struct proto_memory_allocated allocated;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t first = fake_alloc(&fake, fd, 3 * MIB);
    fake_alloc(&fake, fd, 1000);
    fake_load(&fake, fd, "text");
    fake_host_alloc(&fake, fd, MIB, NULL);
    const struct session *session = fake_first(&fake);
    const uint64_t used = session->quotas[RESOURCE_MEMORY].used,
                   host = session->quotas[RESOURCE_HOST_MEMORY].used,
                   mapped = fake.worker[0].mapped;
    /* One request that the worker never answers, and one that nobody can take. */
    fake.worker[0].automatic = false;
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
    fake_settle(&fake);
    fake_lose_worker(&fake, 0);
    fake_settle(&fake);
    assert_true(session->held);
    fake_send(&fake, fd, PROTO_STREAM_CREATE, &create);
    fake_settle(&fake);
    start_next_worker();
    fake_expect(&fake, fd, PROTO_MEMORY_ALLOCATED);
    memcpy(&allocated, fake.message.body, sizeof allocated);
    assert_int_equal(allocated.count, 4 * MIB);
    assert_int_not_equal(allocated.address, first);
    fake_expect(&fake, fd, PROTO_STREAM_CREATED);
    const struct fake_worker *next = &fake.worker[0];
    assert_int_equal(next->attached, 1);
    assert_int_equal(next->restored, 1);
    assert_int_equal(next->remaps, 2);
    assert_int_equal(next->mapped, mapped + 4 * MIB);
    assert_int_equal(next->host_maps, 1);
    assert_int_equal(next->inspected, 1);
    assert_int_equal(next->modules_again, 1);
    assert_int_equal(next->resumed, 1);
    assert_int_equal(session->quotas[RESOURCE_MEMORY].used, used + 4 * MIB);
    assert_int_equal(session->quotas[RESOURCE_HOST_MEMORY].used, host);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* At each of the messages that restore it, one after the other. */
static void a_worker_that_dies_while_it_is_told_costs_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake_load(&fake, fd, "text");
    fake_host_alloc(&fake, fd, MIB, NULL);
    for (unsigned taken = 1; fake.worker[0].restored <= 1 && taken < 20; taken++) {
        fake_lose_worker(&fake, 0);
        start_next_worker();
        fake.worker[0].automatic = false;
        for (unsigned i = 0; i < taken; i++) {
            fake_settle(&fake);
            if (!fake_worker_take(&fake.worker[0]))
                break;
            fake_answer(&fake.worker[0], &fake.worker[0].message);
            channel_close_fds(&fake.worker[0].message);
        }
        if (fake.worker[0].resumed)
            break;
    }
    assert_int_equal(fake.worker[0].resumed, 1);
    fake.worker[0].automatic = true;
    fake_alloc(&fake, fd, 3 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* The numbers that a step sends are valid when the answers of the one before are there. */
static void a_client_is_restored_step_by_step(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake_load(&fake, fd, "text");
    fake_lose_worker(&fake, 0);
    start_next_worker();
    fake.worker[0].automatic = false;
    fake_settle(&fake);
    /* Messages before the one about the client itself are answered; that one is not. */
    const struct channel_message *message = &fake.worker[0].message;
    do {
        assert_true(fake_worker_take(&fake.worker[0]));
        if (message->header.opcode != PROTO_WORKER_ATTACH)
            fake_answer(&fake.worker[0], message);
        channel_close_fds(&fake.worker[0].message);
        fake_settle(&fake);
    } while (message->header.opcode != PROTO_WORKER_ATTACH);
    assert_false(fake_worker_take(&fake.worker[0]));
    assert_int_equal(fake.worker[0].resumed, 0);
    assert_true(fake_first(&fake)->held);
    fake_lose_worker(&fake, 0);
    start_next_worker();
    fake_settle(&fake);
    assert_int_equal(fake.worker[0].resumed, 1);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_client_that_leaves_between_two_workers_leaves_nothing(void **state)
{
    (void)state;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake_load(&fake, fd, "text");
    fake_host_alloc(&fake, fd, MIB, NULL);
    fake_lose_worker(&fake, 0);
    fake_settle(&fake);
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
    fake_settle(&fake);
    close(fd);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 0);
    start_next_worker();
    fake_settle(&fake);
    assert_int_equal(fake.worker[0].attached, 0);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void query_module(int fd, uint32_t module, uint16_t expected)
{
    struct proto_module_query query = {.module = module};
    fake_send(&fake, fd, PROTO_MODULE_QUERY, &query);
    fake_expect(&fake, fd, expected);
}

static void a_module_that_only_the_lost_worker_had_is_refused(void **state)
{
    (void)state;
    const struct proto_failed *failed;
    struct proto_function_get get = {.module = 1};
    fake_open(&fake, 1, 256 * MIB);
    fake.worker[0].resident_bytes = 4096;
    fake.worker[0].unsaved = PROTO_UNSAVED_VARIABLES;
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    const struct session *session = fake_first(&fake);
    uint32_t lost = fake_load(&fake, fd, "text");
    fake.worker[0].resident_bytes = 0;
    fake.worker[0].unsaved = PROTO_UNSAVED_NOTHING;
    uint32_t kept = fake_load(&fake, fd, "other");
    assert_int_equal(session->quotas[RESOURCE_MEMORY].used, 4096);
    query_module(fd, lost, PROTO_DONE);
    fake_lose_worker(&fake, 0);
    start_next_worker();
    query_module(fd, lost, PROTO_FAILED);
    failed = fake.message.body;
    assert_int_equal(failed->error, PROTO_ERROR_STATE_LOST);
    assert_non_null(strstr(failed->text, "module 1"));
    /* It may have an address of the other one's variables. */
    query_module(fd, kept, PROTO_FAILED);
    assert_int_equal(failed->error, PROTO_ERROR_STATE_LOST);
    assert_non_null(strstr(failed->text, "module 1"));
    fake_send(&fake, fd, PROTO_FUNCTION_GET, &get);
    fake_expect(&fake, fd, PROTO_FAILED);
    assert_int_equal(fake.worker[0].modules_lost, 1);
    assert_int_equal(fake.worker[0].modules_again, 1);
    /* The driver's memory went with the worker. */
    assert_int_equal(session->quotas[RESOURCE_MEMORY].used, 0);
    struct proto_module_unload unload = {.module = lost};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    query_module(fd, kept, PROTO_DONE);
    query_module(fd, lost, PROTO_FAILED);
    failed = fake.message.body;
    assert_int_equal(failed->error, PROTO_ERROR_INVALID_HANDLE);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* It may call a function whose address the lost module has left in memory. */
static void a_cubin_without_state_is_loaded_again(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.worker[0].unsaved = PROTO_UNSAVED_FUNCTION_ADDRESSES;
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    uint32_t lost = fake_load(&fake, fd, "text");
    fake.worker[0].unsaved = PROTO_UNSAVED_CALLS;
    uint32_t kept = fake_load(&fake, fd, "cubin");
    fake_lose_worker(&fake, 0);
    start_next_worker();
    query_module(fd, kept, PROTO_FAILED);
    const struct proto_failed *failed = fake.message.body;
    assert_int_equal(failed->error, PROTO_ERROR_STATE_LOST);
    assert_non_null(strstr(failed->text, "module 1"));
    fake_settle(&fake);
    assert_int_equal(fake.worker[0].modules_lost, 1);
    assert_int_equal(fake.worker[0].modules_again, 1);
    struct proto_module_unload unload = {.module = lost};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    query_module(fd, kept, PROTO_DONE);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* Writes a copy of these host bytes as the stream's next command in the journal. */
static void note_copy(void *shadow, uint32_t streams, uint32_t *next, uint64_t value, uint64_t to,
                      uint64_t bytes)
{
    union {
        struct ring_descriptor descriptor;
        struct proto_command_copy copy;
    } u = {.copy = {.opcode = PROTO_COMMAND_COPY, .destination = to, .source = 1, .count = bytes}};
    journal_note(journal_at(shadow, streams), next, 0, value, &u.descriptor);
    shared_word_publish(ring_shadow_begun(shadow, streams, 0), value);
}

static const struct proto_stream_recovered *recover(int fd)
{
    struct proto_stream_recover body = {0};
    fake_send(&fake, fd, PROTO_STREAM_RECOVER, &body);
    return fake_expect(&fake, fd, PROTO_STREAM_RECOVERED);
}

/* The device had reached 2. Copies 3 and 4 touch; 5 writes no host memory. */
static void a_report_has_the_host_memory_that_lost_copies_wrote(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    const struct session *session = fake_first(&fake);
    uint32_t streams = session->server->settings->streams, next = 0;
    uint64_t host = address_plan_host(&session->server->plan, &session->window);
    void *shadow = mmap(NULL, session->shadow.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        session->shadow.fd, 0);
    assert_ptr_not_equal(shadow, MAP_FAILED);
    note_copy(shadow, streams, &next, 1, host, 10);
    note_copy(shadow, streams, &next, 2, host + 4096, 10);
    shared_word_publish(ring_shadow_reached(shadow, 0), 2);
    note_copy(shadow, streams, &next, 3, host + 8192, 100);
    note_copy(shadow, streams, &next, 4, host + 8292, 50);
    note_copy(shadow, streams, &next, 5, host + session->window.bytes, 50);
    fake_lose_worker(&fake, 0);
    start_next_worker();
    const struct proto_stream_recovered *report = recover(fd);
    assert_int_equal(report->ranges, 1);
    assert_int_equal(report->more, 0);
    assert_int_equal(report->addresses[0], host + 8192);
    assert_int_equal(report->counts[0], 150);
    assert_int_equal(recover(fd)->ranges, 0);

    shared_word_publish(ring_shadow_reached(shadow, 0), 5);
    for (uint64_t i = 0; i < PROTO_LOST_RANGES_MAX + 1; i++)
        note_copy(shadow, streams, &next, 6 + i, host + 8192 * i, 7);
    fake_lose_worker(&fake, 0);
    start_next_worker();
    report = recover(fd);
    assert_int_equal(report->ranges, PROTO_LOST_RANGES_MAX);
    assert_int_equal(report->more, 1);
    for (uint64_t i = 0; i < PROTO_LOST_RANGES_MAX; i++)
        assert_int_equal(report->addresses[i], host + 8192 * i);
    assert_int_equal(recover(fd)->more, 0);

    /* More than the journal keeps. */
    uint64_t last = 5 + PROTO_LOST_RANGES_MAX + 1;
    shared_word_publish(ring_shadow_reached(shadow, 0), last);
    for (uint64_t i = 1; i <= JOURNAL_ENTRIES + 1; i++)
        note_copy(shadow, streams, &next, last + i, i == 1 ? host : host + 4096, 7);
    fake_lose_worker(&fake, 0);
    start_next_worker();
    report = recover(fd);
    assert_int_equal(report->more, 1);
    assert_int_equal(report->addresses[0], host + 4096);
    munmap(shadow, session->shadow.bytes);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_server_that_stops_tells_its_clients(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake.worker[0].automatic = false; /* and the worker does not even answer */
    supervisor_stop(fake.supervisor);
    fake_expect_ended(&fake, fd, PROTO_ERROR_CONNECTION_LOST, "stopping");
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_vanishes_at_any_point_leaves_nothing),
        cmocka_unit_test(a_fault_takes_its_author_along_by_name),
        cmocka_unit_test(an_idle_client_goes_on_with_all_that_it_had),
        cmocka_unit_test(a_worker_that_dies_while_it_is_told_costs_nothing),
        cmocka_unit_test(a_client_is_restored_step_by_step),
        cmocka_unit_test(a_client_that_leaves_between_two_workers_leaves_nothing),
        cmocka_unit_test(a_module_that_only_the_lost_worker_had_is_refused),
        cmocka_unit_test(a_cubin_without_state_is_loaded_again),
        cmocka_unit_test(a_report_has_the_host_memory_that_lost_copies_wrote),
        cmocka_unit_test(a_server_that_stops_tells_its_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
