/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The order in which the next worker is told of held sessions, and since when they are held. */
#include "tests/unit/supervisor/fake.h"

#include <sys/eventfd.h>

#include "common/clock.h"
#include "common/ipc/journal.h"
#include "common/ipc/ring.h"
#include "server/supervisor/account/user_share.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/life/restore.h"

static struct session one, other;

static int compare(bool one_busy, uint64_t one_heard, bool other_busy, uint64_t other_heard)
{
    one.restore.busy = one_busy;
    one.heard_at = one_heard;
    other.restore.busy = other_busy;
    other.heard_at = other_heard;
    int there = session_restore_compare(&one, &other);
    int back = session_restore_compare(&other, &one);
    assert_true((there > 0) == (back < 0) && (there < 0) == (back > 0));
    return there;
}

static void those_that_work_come_first(void **state)
{
    (void)state;
    assert_true(compare(true, 1, false, 100) < 0);
    assert_true(compare(true, 100, false, 1) < 0);
    assert_true(compare(false, UINT64_MAX, true, 0) > 0);
}

static void among_equals_the_latest_request_counts(void **state)
{
    (void)state;
    assert_true(compare(true, 2, true, 1) < 0);
    assert_true(compare(false, 2, false, 1) < 0);
    assert_true(compare(false, 0, false, UINT64_MAX) > 0);
    assert_int_equal(compare(false, 7, false, 7), 0);
    assert_int_equal(compare(true, 7, true, 7), 0);
}

/* A descriptor alone, as another server passes it. */
static int shared_memory(size_t bytes)
{
    struct shm memory;
    assert_int_equal(shm_create(&memory, "gpushare-test", bytes), 0);
    int fd = memory.fd;
    munmap(memory.base, memory.bytes);
    return fd;
}

/* Takes a client over that the last server had in this state. Returns since when it is held. */
static uint64_t held_since(struct fake *fake, enum proto_connection_state state)
{
    uint32_t streams = fake->settings.streams;
    const int fds[4] = {shared_memory(PROTO_RING_FIRST), shared_memory(ring_status_bytes(streams)),
                        shared_memory(journal_shadow_bytes(streams)), eventfd(0, EFD_CLOEXEC)};
    int fd = fake_greet(fake);
    struct session *session = fake_first(fake);
    session->device = &fake->supervisor->server.devices[0];
    session->state = state;
    assert_int_equal(session_attach_adopt(session, 0, 64 * MIB, fds), 0);
    uint64_t since = session->restore.held_at;
    close(fd);
    FAKE_WAIT(fake, fake->supervisor->server.sessions == 0);
    return since;
}

/* One that was being attached is asked for again. When its worker is lost one day, it has waited
 * for no other until then. */
static void only_a_client_that_was_attached_is_held_by_another_server(void **state)
{
    static struct fake fake;
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    uint64_t before = clock_now();
    assert_true(held_since(&fake, PROTO_CONNECTION_STATE_ATTACHED) >= before);
    assert_int_equal(held_since(&fake, PROTO_CONNECTION_STATE_ATTACHING), 0);
    fake_close(&fake);
}

/* One's clients would all come first if it rings for each of them. */
static void users_take_turns(void **state)
{
    struct user_share many = {.uid = 1}, few = {.uid = 2};
    (void)state;
    one.user_share = &many;
    other.user_share = &few;
    assert_true(compare(true, 2, true, 1) < 0);
    many.restored = 1;
    assert_true(compare(true, 2, true, 1) > 0);
    assert_true(compare(true, 2, false, 1) < 0);
    many.restored = 9;
    assert_true(compare(true, 2, false, 1) > 0);
    one.user_share = other.user_share = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_work_come_first),
        cmocka_unit_test(among_equals_the_latest_request_counts),
        cmocka_unit_test(only_a_client_that_was_attached_is_held_by_another_server),
        cmocka_unit_test(users_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
