/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The part of images and descriptors that all clients of a user may have together. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

/* Many connections are no way around the part of one. */
static void a_user_with_many_clients_leaves_a_quarter_to_others(void **state)
{
    (void)state;
    enum { CLIENTS = 4 };
    int fds[CLIENTS];
    char who[64];
    fake_open(&fake, 1, 256 * MIB);
    fake.supervisor->server.images.limit = 40;
    fake.supervisor->server.fds.limit = 40;
    for (unsigned i = 0; i < CLIENTS; i++)
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
    int other = fake_greet(&fake);
    fake_session(&fake, CLIENTS)->uid = getuid() + 1;
    fake_attach_greeted(&fake, other, 0, 0, NULL, NULL);
    for (unsigned i = 0; i + 1 < CLIENTS; i++)
        fake_load(&fake, fds[i], "ten bytes.");
    snprintf(who, sizeof who, "of all clients of user %u together", getuid());
    fake_send_image(&fake, fds[3], "a", 1);
    fake_expect_failed(&fake, fds[3], PROTO_ERROR_OUT_OF_MEMORY, who);
    assert_int_equal(fake.supervisor->server.images.used, 30);
    fake_load(&fake, other, "ten bytes.");
    uint64_t buffer = 0;
    for (unsigned i = 3; i < 30; i++)
        buffer = fake_host_alloc(&fake, fds[i % CLIENTS], 1, NULL);
    fake_host_refused(&fake, fds[0], 1, PROTO_ERROR_SERVER_RESOURCES, who);
    fake_alloc_refused(&fake, fds[3], 2 * MIB, PROTO_ERROR_SERVER_RESOURCES, who);
    fake_host_alloc(&fake, other, 1, NULL);
    fake_alloc(&fake, other, 2 * MIB);
    /* Another client of the user may have the memory that one gives back. */
    fake_host_free(&fake, fds[29 % CLIENTS], buffer);
    FAKE_WAIT(&fake, fake.supervisor->server.fds.used == 32);
    fake_alloc(&fake, fds[3], 2 * MIB);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(fds[i]);
    close(other);
    fake_expect_nothing_left(&fake);
    assert_null(fake.supervisor->server.user_shares.first);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_with_many_clients_leaves_a_quarter_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
