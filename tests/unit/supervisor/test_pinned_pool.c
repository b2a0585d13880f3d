/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Pinned host memory that stays registered when nobody uses it: who gets it next, what is in it
 * then, who is charged for it, and when it gives way. The worker is a fake that counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/session.h"
#include "tests/unit/supervisor/fake.h"

enum { BUFFER = 4 << 20 };

static struct fake fake;

static struct server *server(void)
{
    return &fake.supervisor->server;
}

static struct fake_worker *worker(void)
{
    return &fake.worker[0];
}

static void open_with(uint64_t pool)
{
    fake_open(&fake, 1, 256 * MIB);
    fake.settings.pinned_pool = pool;
}

static uint64_t charged(void)
{
    return server()->quotas[RESOURCE_HOST_MEMORY].used;
}

/* Buffers that the next client of their user can have. */
static unsigned idle(void)
{
    const struct pinned_buffer *buffer;
    unsigned count = 0;
    LIST_FOR_EACH (buffer, &server()->pinned.buffers, link)
        count += buffer->state == PINNED_IDLE;
    return count;
}

static int attach_as(uid_t uid, struct proto_attached *attached)
{
    int fd = fake_greet(&fake);
    struct session *session = LIST_ENTRY(list_last(&server()->session_list), struct session, link);
    assert_non_null(session);
    if (!session)
        return -1; /* never: the assertion does not return, which clang-tidy does not know */
    session->uid = uid;
    fake_attach_greeted(&fake, fd, 0, 0, NULL, attached);
    return fd;
}

static int attach(struct proto_attached *attached)
{
    return attach_as(getuid(), attached);
}

static void free_buffer(int fd, uint64_t address)
{
    struct proto_host_free body = {.address = address};
    fake_send(&fake, fd, PROTO_HOST_FREE, &body);
    fake_expect(&fake, fd, PROTO_DONE);
}

/* A client that allocates a buffer, writes into it and leaves. Returns the buffer's address. */
static uint64_t leave_buffer(uid_t uid, uint64_t bytes, struct proto_attached *attached)
{
    int buffer, fd = attach_as(uid, attached);
    uint64_t address = fake_host_alloc(&fake, fd, bytes, &buffer);
    assert_int_equal(pwrite(buffer, "left behind", 11, (off_t)bytes - 11), 11);
    close(buffer);
    close(fd);
    FAKE_WAIT(&fake, server()->sessions == 0);
    return address;
}

static void expect_zero(int buffer, uint64_t bytes)
{
    static uint8_t page[1 << 16];
    for (uint64_t at = 0; at < bytes; at += sizeof page) {
        assert_int_equal(pread(buffer, page, sizeof page, (off_t)at), sizeof page);
        for (size_t i = 0; i < sizeof page; i++)
            assert_int_equal(page[i], 0);
    }
    close(buffer);
}

/* Ends the server. Memory it kept goes, though no client asked for the room. */
static void end(void)
{
    FAKE_WAIT(&fake, server()->sessions == 0);
    fake_close(&fake);
}

static void a_freed_buffer_serves_its_client_again_without_a_registration(void **state)
{
    (void)state;
    int buffer;
    open_with(32 * MIB);
    int fd = attach(NULL);
    uint64_t first = fake_host_alloc(&fake, fd, BUFFER, &buffer);
    assert_int_equal(pwrite(buffer, "secret", 6, 4096), 6);
    close(buffer);
    free_buffer(fd, first);
    FAKE_WAIT(&fake, idle() == 1);
    assert_int_equal(fake_usage(&fake, fd).host_used, 0);
    assert_int_equal(charged(), BUFFER);
    uint64_t second = fake_host_alloc(&fake, fd, BUFFER, &buffer);
    assert_int_equal(second, first);
    expect_zero(buffer, BUFFER);
    assert_int_equal(fake_usage(&fake, fd).host_used, BUFFER);
    assert_int_equal(charged(), BUFFER);
    assert_int_equal(worker()->host_maps, 1);
    assert_int_equal(worker()->host_lends, 1);
    /* Another size is another buffer. */
    fake_host_alloc(&fake, fd, BUFFER / 2, NULL);
    assert_int_equal(worker()->host_maps, 2);
    close(fd);
    end();
}

static void the_next_client_of_a_user_gets_what_the_last_one_left(void **state)
{
    (void)state;
    struct proto_attached first, second;
    int buffer;
    open_with(32 * MIB);
    uint64_t left = leave_buffer(getuid(), BUFFER, &first);
    FAKE_WAIT(&fake, idle() == 1);
    assert_int_equal(charged(), BUFFER);
    assert_int_equal(server()->fds.used, 1);
    assert_int_equal(server()->plan.windows, 1);
    int fd = attach(&second);
    assert_int_equal(second.host_base, first.host_base);
    assert_int_equal(fake_usage(&fake, fd).host_used, 0);
    assert_int_equal(fake_host_alloc(&fake, fd, BUFFER, &buffer), left);
    expect_zero(buffer, BUFFER);
    assert_int_equal(worker()->host_maps, 1);
    assert_int_equal(fake_usage(&fake, fd).host_used, BUFFER);
    close(fd);
    end();
}

static void no_other_user_gets_a_used_buffer_or_its_addresses(void **state)
{
    (void)state;
    struct proto_attached first, second;
    open_with(32 * MIB);
    uint64_t left = leave_buffer(getuid(), BUFFER, &first);
    FAKE_WAIT(&fake, idle() == 1);
    int fd = attach_as(getuid() + 1, &second);
    assert_int_not_equal(second.host_base, first.host_base);
    assert_int_not_equal(fake_host_alloc(&fake, fd, BUFFER, NULL), left);
    assert_int_equal(worker()->host_maps, 2);
    assert_int_equal(worker()->host_lends, 0);
    assert_int_equal(idle(), 1);
    close(fd);
    end();
}

/* The fake worker detaches as one beside a kernel that does not end: what needs no window is done,
 * and the answer does not come. */
static void a_client_that_left_is_charged_for_no_memory_while_its_modules_wait(void **state)
{
    (void)state;
    open_with(32 * MIB);
    int fd = attach(NULL);
    uint32_t number = fake_session(&fake, 0)->number;
    uint64_t left = fake_host_alloc(&fake, fd, BUFFER, NULL);
    fake_alloc(&fake, fd, 4 * MIB);
    worker()->hold_detach = true;
    close(fd);
    FAKE_WAIT(&fake, worker()->held_count == 1);
    assert_int_equal(charged(), BUFFER);
    assert_int_equal(server()->pinned.bytes, 0);
    assert_true(server()->devices[0].quotas[RESOURCE_MEMORY].used >= 4 * MIB);
    channel_send(worker()->fd,
                 &(struct channel_packet){.opcode = PROTO_WORKER_RELEASED, .client = number});
    FAKE_WAIT(&fake, idle() == 1);
    assert_int_equal(server()->sessions, 1);
    assert_int_equal(server()->devices[0].quotas[RESOURCE_MEMORY].used, 0);
    const struct session *leaving = LIST_FIRST(&server()->session_list, struct session, link);
    assert_int_equal(leaving->quotas[RESOURCE_HOST_MEMORY].used, 0);
    worker()->hold_detach = false;
    fd = attach(NULL);
    assert_int_equal(fake_host_alloc(&fake, fd, BUFFER, NULL), left);
    close(fd);
    fake_release(worker());
    end();
}

/* Whoever runs the test is none of them. */
static uint32_t another_user(uint32_t i)
{
    return getuid() + 1 + i;
}

static void the_pool_gives_way_to_a_client_that_needs_the_room(void **state)
{
    (void)state;
    struct proto_host_alloc more = {.count = 16 * MIB};
    open_with(48 * MIB);
    for (unsigned i = 0; i < 3; i++)
        leave_buffer(another_user(i), 16 * MIB, NULL);
    FAKE_WAIT(&fake, idle() == 3);
    int one = attach(NULL), two = attach(NULL);
    fake_host_alloc(&fake, one, 16 * MIB, NULL);
    assert_int_equal(charged(), 64 * MIB); /* all there is */
    worker()->hold_frees = true;
    fake_send(&fake, two, PROTO_HOST_ALLOC, &more);
    FAKE_WAIT(&fake, worker()->held_count == 1);
    assert_int_equal(fake_take(&fake, two), CHANNEL_EMPTY);
    fake_release(worker());
    fake_expect(&fake, two, PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    assert_int_equal(worker()->host_drops, 1);
    assert_int_equal(idle(), 2);
    assert_int_equal(charged(), 64 * MIB);
    close(one);
    close(two);
    end();
}

/* Beside a kernel that does not end nothing is unregistered. */
static void who_waits_for_the_pool_is_refused_in_the_end(void **state)
{
    (void)state;
    open_with(48 * MIB);
    for (unsigned i = 0; i < 3; i++)
        leave_buffer(another_user(i), 16 * MIB, NULL);
    int one = attach(NULL), two = attach(NULL);
    fake_host_alloc(&fake, one, 16 * MIB, NULL);
    worker()->hold_frees = true;
    fake_host_refused(&fake, two, 16 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "--host-memory-total");
    fake_release(worker());
    close(one);
    close(two);
    end();
}

/* A load that waits for a window has a timer as well, which must not take the place of this one. */
static void who_waits_for_the_pool_is_refused_though_its_load_waits_too(void **state)
{
    (void)state;
    struct proto_host_alloc more = {.count = 16 * MIB};
    open_with(48 * MIB);
    for (unsigned i = 0; i < 3; i++)
        leave_buffer(another_user(i), 16 * MIB, NULL);
    FAKE_WAIT(&fake, idle() == 3);
    int one = attach(NULL), before = attach(NULL), after = attach(NULL);
    fake_host_alloc(&fake, one, 16 * MIB, NULL);
    worker()->hold_frees = worker()->hold_loads = true;
    fake_send_image(&fake, before, "text", 4);
    FAKE_WAIT(&fake, worker()->held_count == 1);
    fake_send(&fake, before, PROTO_HOST_ALLOC, &more);
    fake_send(&fake, after, PROTO_HOST_ALLOC, &more);
    FAKE_WAIT(&fake, worker()->held_count == 2); /* a buffer is to be dropped, for both */
    fake_send_image(&fake, after, "text", 4);
    FAKE_WAIT(&fake, worker()->held_count == 3);
    fake_expect_failed(&fake, before, PROTO_ERROR_OUT_OF_MEMORY, "--host-memory-total");
    fake_expect_failed(&fake, after, PROTO_ERROR_OUT_OF_MEMORY, "--host-memory-total");
    fake_release(worker());
    fake_expect(&fake, before, PROTO_MODULE_LOADED);
    fake_expect(&fake, after, PROTO_MODULE_LOADED);
    close(one);
    close(before);
    close(after);
    end();
}

/* A request of the same client that is refused meanwhile does not end the wait of a later one. */
static void each_request_waits_for_the_pool_as_long_as_any_other(void **state)
{
    (void)state;
    struct proto_host_alloc more = {.count = 16 * MIB};
    open_with(48 * MIB);
    for (unsigned i = 0; i < 3; i++)
        leave_buffer(another_user(i), 16 * MIB, NULL);
    FAKE_WAIT(&fake, idle() == 3);
    int one = attach(NULL), two = attach(NULL);
    const uv_timer_t *wait = &fake_session(&fake, 1)->host_wait;
    fake_host_alloc(&fake, one, 16 * MIB, NULL);
    worker()->hold_frees = true;
    uint64_t first = fake_send(&fake, two, PROTO_HOST_ALLOC, &more);
    FAKE_WAIT(&fake, worker()->held_count == 1);
    FAKE_WAIT(&fake, uv_timer_get_due_in(wait) < 1000);
    fake_send(&fake, two, PROTO_HOST_ALLOC, &more);
    fake_expect_failed(&fake, two, PROTO_ERROR_OUT_OF_MEMORY, "--host-memory-total");
    assert_int_equal(fake.message.header.serial, first);
    assert_int_equal(fake_take(&fake, two), CHANNEL_EMPTY);
    assert_true(uv_is_active((const uv_handle_t *)wait));
    fake_release(worker());
    fake_expect(&fake, two, PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    close(one);
    close(two);
    end();
}

static void the_pool_keeps_no_more_than_it_may(void **state)
{
    (void)state;
    open_with(20 * MIB);
    leave_buffer(another_user(0), 16 * MIB, NULL);
    FAKE_WAIT(&fake, idle() == 1);
    /* This one has no room, and the first makes room for the next. */
    leave_buffer(another_user(1), 16 * MIB, NULL);
    FAKE_WAIT(&fake, worker()->host_drops == 2);
    FAKE_WAIT(&fake, charged() == 0);
    assert_int_equal(worker()->host_mapped, 0);
    assert_int_equal(server()->plan.windows, 0);
    leave_buffer(another_user(2), 16 * MIB, NULL);
    FAKE_WAIT(&fake, idle() == 1);
    end();
}

static void a_buffer_larger_than_the_pool_is_not_kept(void **state)
{
    (void)state;
    open_with(2 * MIB);
    leave_buffer(getuid(), BUFFER, NULL);
    FAKE_WAIT(&fake, charged() == 0);
    assert_int_equal(worker()->host_lends + worker()->host_drops, 0);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_lost_worker_takes_the_pool_with_it(void **state)
{
    (void)state;
    struct stat status;
    int buffer;
    open_with(32 * MIB);
    int fd = attach(NULL);
    fake_host_alloc(&fake, fd, BUFFER, &buffer);
    close(fd);
    FAKE_WAIT(&fake, idle() == 1);
    close(worker()->fd);
    worker()->fd = -1;
    FAKE_WAIT(&fake, charged() == 0 && server()->plan.windows == 0);
    assert_true(pinned_pool_is_empty(&server()->pinned));
    /* Nobody is charged for it, so nobody has it, who kept the descriptor either. */
    assert_int_equal(fstat(buffer, &status), 0);
    assert_int_equal(status.st_blocks, 0);
    close(buffer);
    fake_close(&fake);
}

static void a_client_that_wants_other_addresses_leaves_the_window_to_others(void **state)
{
    (void)state;
    struct proto_attached first, second;
    open_with(32 * MIB);
    uint64_t left = leave_buffer(getuid(), BUFFER, &first);
    FAKE_WAIT(&fake, idle() == 1);
    int fd = attach(&second);
    assert_int_equal(second.host_base, first.host_base);
    fake_send(&fake, fd, PROTO_WINDOW_MOVE, NULL);
    const struct proto_window *moved = fake_expect(&fake, fd, PROTO_WINDOW);
    assert_int_not_equal(moved->host_base, first.host_base);
    int other = attach(NULL);
    assert_int_equal(fake_host_alloc(&fake, other, BUFFER, NULL), left);
    close(other);
    close(fd);
    end();
}

static void a_window_that_the_pool_has_no_room_for_does_not_move(void **state)
{
    (void)state;
    struct proto_attached first = {0}, second = {0};
    open_with(32 * MIB);
    leave_buffer(getuid(), BUFFER, &first);
    FAKE_WAIT(&fake, idle() == 1);
    server()->plan.bytes = 4 * first.window_bytes; /* the pool may keep one window */
    int fd = attach(&second);
    assert_int_equal(second.host_base, first.host_base);
    int other = attach_as(another_user(0), NULL);
    fake_host_alloc(&fake, other, BUFFER, NULL);
    close(other);
    FAKE_WAIT(&fake, server()->sessions == 1 && idle() == 2);
    fake_send(&fake, fd, PROTO_WINDOW_MOVE, NULL);
    fake_expect_failed(&fake, fd, PROTO_ERROR_NOT_PERMITTED, "connect again");
    assert_int_equal(server()->plan.windows, 2);
    /* The buffers went, and so nothing keeps the window in its place. */
    FAKE_WAIT(&fake, !fake_first(&fake)->buffers.regions);
    fake_send(&fake, fd, PROTO_WINDOW_MOVE, NULL);
    const struct proto_window *moved = fake_expect(&fake, fd, PROTO_WINDOW);
    assert_int_not_equal(moved->host_base, first.host_base);
    fake_host_alloc(&fake, fd, BUFFER, NULL);
    close(fd);
    end();
}

/* Its charge is the session's still, which may end before the thread that empties the buffer. */
static void a_buffer_that_is_being_emptied_keeps_its_window_in_its_place(void **state)
{
    (void)state;
    open_with(2 * MIB);
    int fd = attach(NULL);
    free_buffer(fd, fake_host_alloc(&fake, fd, BUFFER, NULL));
    struct session *session = fake_first(&fake);
    FAKE_WAIT(&fake, session->host_emptying == 1);
    assert_true(session_host_has_any(session));
    FAKE_WAIT(&fake, session->host_emptying == 0);
    assert_false(session_host_has_any(session));
    close(fd);
    end();
}

static void a_buffer_that_the_worker_does_not_unmap_keeps_its_window_in_its_place(void **state)
{
    (void)state;
    open_with(2 * MIB);
    int fd = attach(NULL);
    uint64_t address = fake_host_alloc(&fake, fd, BUFFER, NULL);
    worker()->refuse_unmap = true;
    free_buffer(fd, address);
    const struct session *session = fake_first(&fake);
    FAKE_WAIT(&fake, session->host_unmapping == 0);
    fake_send(&fake, fd, PROTO_WINDOW_MOVE, NULL);
    fake_expect_failed(&fake, fd, PROTO_ERROR_NOT_PERMITTED, "allocated");
    close(fd);
    end();
}

static unsigned retries; /* of all sessions */

static void count_retry(struct server *of, struct session *session)
{
    retries += !session;
    session_host_retry(of, session);
}

/* Each retry looks at every session. */
static void buffers_that_go_together_have_waiting_requests_tried_again_once(void **state)
{
    (void)state;
    struct proto_host_alloc body = {.count = BUFFER};
    open_with(2 * MIB); /* none of them is kept */
    int fd = attach(NULL);
    server()->pinned.retry = count_retry;
    retries = 0;
    for (unsigned i = 0; i < 3; i++)
        fake_send(&fake, fd, PROTO_HOST_ALLOC, &body);
    close(fd);
    FAKE_WAIT(&fake, server()->sessions == 0);
    assert_int_equal(retries, 1);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freed_buffer_serves_its_client_again_without_a_registration),
        cmocka_unit_test(the_next_client_of_a_user_gets_what_the_last_one_left),
        cmocka_unit_test(no_other_user_gets_a_used_buffer_or_its_addresses),
        cmocka_unit_test(a_client_that_left_is_charged_for_no_memory_while_its_modules_wait),
        cmocka_unit_test(the_pool_gives_way_to_a_client_that_needs_the_room),
        cmocka_unit_test(who_waits_for_the_pool_is_refused_in_the_end),
        cmocka_unit_test(who_waits_for_the_pool_is_refused_though_its_load_waits_too),
        cmocka_unit_test(each_request_waits_for_the_pool_as_long_as_any_other),
        cmocka_unit_test(the_pool_keeps_no_more_than_it_may),
        cmocka_unit_test(a_buffer_larger_than_the_pool_is_not_kept),
        cmocka_unit_test(a_lost_worker_takes_the_pool_with_it),
        cmocka_unit_test(a_client_that_wants_other_addresses_leaves_the_window_to_others),
        cmocka_unit_test(buffers_that_go_together_have_waiting_requests_tried_again_once),
        cmocka_unit_test(a_window_that_the_pool_has_no_room_for_does_not_move),
        cmocka_unit_test(a_buffer_that_is_being_emptied_keeps_its_window_in_its_place),
        cmocka_unit_test(a_buffer_that_the_worker_does_not_unmap_keeps_its_window_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
