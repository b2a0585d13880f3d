/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * One user who wants every connection or every file descriptor there is: the rest
 * stays for the others, and the refusal names who has too many and what helps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/support/neighbour.h"
#include "tests/support/raw.h"

/* Of 16 clients one user may have 12, if nothing else is said. */
enum { ALL = 16, CLIENTS_MAX = 12, CULPRIT = 65534 };

/* The kernel notes who connects by the effective uid. */
static void connect_as(struct raw *raw, const struct server *server, uid_t uid)
{
    assert_int_equal(seteuid(uid), 0);
    raw_connect(raw, server);
    assert_int_equal(seteuid(0), 0);
}

static uint32_t hello(struct raw *raw)
{
    struct proto_hello hello = {.major = PROTO_MAJOR, .minor = PROTO_MINOR};
    return raw_ask(raw, PROTO_HELLO, &hello, NULL, 0, -1);
}

static void one_user_cannot_take_every_connection(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can connect as another user\n");
        skip();
    }
    static const char *const args[] = {"--max-clients", "16", NULL};
    struct server *server = server_start(args, NULL);
    struct neighbour *neighbour = neighbour_start(server);
    struct raw culprits[ALL], more[ALL], honest;
    for (int i = 0; i < CLIENTS_MAX; i++) {
        connect_as(&culprits[i], server, CULPRIT);
        assert_int_equal(hello(&culprits[i]), 0);
    }
    /* One too many is told why. */
    connect_as(&more[0], server, CULPRIT);
    assert_int_equal(hello(&more[0]), PROTO_ERROR_TOO_MANY_CLIENTS);
    const struct proto_failed *failed = more[0].reply.body;
    assert_non_null(strstr(failed->text, "user 65534"));
    assert_non_null(strstr(failed->text, "(12)"));
    assert_non_null(strstr(failed->text, "--max-clients-per-user"));
    assert_true(raw_wait_end(&more[0]));
    raw_close(&more[0]);
    /* Connections that say nothing hold no places of others either. */
    for (int i = 0; i < ALL; i++)
        connect_as(&more[i], server, CULPRIT);
    for (int i = 0; i < 3; i++) {
        connect_as(&honest, server, 0);
        assert_int_equal(hello(&honest), 0);
        raw_close(&honest);
    }
    raw_attach(&honest, server, PROTO_UNSET);
    assert_int_not_equal(raw_alloc(&honest, 2 << 20), 0);
    raw_close(&honest);
    for (int i = 0; i < ALL; i++)
        raw_close(&more[i]);
    for (int i = 0; i < CLIENTS_MAX; i++)
        raw_close(&culprits[i]);
    /* It may have again the memory it gave back. */
    uint32_t again = PROTO_ERROR_TOO_MANY_CLIENTS;
    for (int i = 0; i < 500 && again; i++) {
        connect_as(&culprits[0], server, CULPRIT);
        again = hello(&culprits[0]);
        raw_close(&culprits[0]);
        usleep(10000);
    }
    assert_int_equal(again, 0);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
}

/* Allocates small buffers until that is refused, and returns how many there are. */
static unsigned take_descriptors(struct raw *raw, uint32_t *error)
{
    struct proto_host_alloc ask = {.count = 1};
    unsigned taken = 0;
    while (!(*error = raw_ask(raw, PROTO_HOST_ALLOC, &ask, NULL, 0, -1))) {
        channel_close_fds(&raw->reply);
        taken++;
    }
    return taken;
}

/* One client may have a quarter, so five that keep what they can would have all. */
static void one_user_cannot_take_every_descriptor(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can connect as another user\n");
        skip();
    }
    enum { GREEDY = 5 };
    static const char *const args[] = {"--max-clients", "16", NULL};
    server_limit_descriptors(528);
    struct server *server = server_start(args, NULL);
    server_limit_descriptors(0);
    struct neighbour *neighbour = neighbour_start(server);
    struct raw culprits[GREEDY], honest;
    unsigned taken = 0;
    uint32_t error = 0;
    for (int i = 0; i < GREEDY; i++) {
        assert_int_equal(seteuid(CULPRIT), 0);
        raw_attach(&culprits[i], server, PROTO_UNSET);
        assert_int_equal(seteuid(0), 0);
        taken += take_descriptors(&culprits[i], &error);
        assert_int_equal(error, PROTO_ERROR_SERVER_RESOURCES);
    }
    const struct proto_failed *failed = culprits[GREEDY - 1].reply.body;
    print_message("%u descriptors: %s\n", taken, failed->text);
    assert_non_null(strstr(failed->text, "all clients of user 65534"));
    assert_true(taken > 100);
    raw_attach(&honest, server, PROTO_UNSET);
    assert_true(take_descriptors(&honest, &error) >= taken / 4);
    raw_close(&honest);
    for (int i = 0; i < GREEDY; i++)
        raw_close(&culprits[i]);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
}

/* Asks for the default stream's ring again and again. Each answer has a descriptor. */
static void ask_and_never_read(struct raw *raw, unsigned times)
{
    struct {
        struct proto_message_header header;
        struct proto_ring_make body;
    } ask = {.header = {.bytes = sizeof ask, .opcode = PROTO_RING_MAKE}};
    for (unsigned i = 0; i < times; i++) {
        ask.header.serial = ++raw->serial;
        if (send(raw->fd, &ask, sizeof ask, MSG_NOSIGNAL) < 0)
            return; /* the server has ended it */
    }
}

/* Each connection alone keeps to what one may have, and asks for nothing that costs memory. */
static void one_user_cannot_take_every_descriptor_by_reading_no_answer(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can connect as another user\n");
        skip();
    }
    enum { ANSWERS = 36 };
    static const char *const args[] = {"--max-clients", "16", NULL};
    server_limit_descriptors(480);
    struct server *server = server_start(args, NULL);
    server_limit_descriptors(0);
    struct raw culprits[CLIENTS_MAX], honest;
    uint32_t error = 0;
    assert_int_equal(seteuid(CULPRIT), 0);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        raw_attach(&culprits[i], server, PROTO_UNSET);
        ask_and_never_read(&culprits[i], ANSWERS);
    }
    assert_int_equal(seteuid(0), 0);
    raw_attach(&honest, server, PROTO_UNSET);
    unsigned taken = take_descriptors(&honest, &error);
    const struct proto_failed *failed = honest.reply.body;
    print_message("%u descriptors: %s\n", taken, failed->text);
    assert_non_null(strstr(failed->text, "of this client"));
    raw_close(&honest);
    for (int i = 0; i < CLIENTS_MAX; i++)
        raw_close(&culprits[i]);
    assert_int_equal(server_stop(server), 0);
}

static void limits_of_the_administrator_bind_every_user(void **state)
{
    (void)state;
    static const char *const args[] = {"--max-clients-per-user", "2", NULL};
    struct server *server = server_start(args, NULL);
    struct raw raw[3];
    for (int i = 0; i < 3; i++) {
        raw_connect(&raw[i], server);
        assert_int_equal(hello(&raw[i]), i < 2 ? 0 : PROTO_ERROR_TOO_MANY_CLIENTS);
    }
    for (int i = 0; i < 3; i++)
        raw_close(&raw[i]);
    assert_int_equal(server_stop(server), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_user_cannot_take_every_connection),
        cmocka_unit_test(one_user_cannot_take_every_descriptor),
        cmocka_unit_test(one_user_cannot_take_every_descriptor_by_reading_no_answer),
        cmocka_unit_test(limits_of_the_administrator_bind_every_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
