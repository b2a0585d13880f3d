/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Clients are told for whom their module loads wait. */
#include "tests/unit/supervisor/fake.h"

#include <sys/mman.h>

static struct fake fake;
static struct proto_attached first, second;
static int loader, other;

static int setup(void **state)
{
    (void)state;
    fake_open(&fake, 1, 1024 * MIB);
    loader = fake_attach(&fake, 0, 16 * MIB, NULL, &first);
    other = fake_attach(&fake, 0, 16 * MIB, NULL, &second);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(loader);
    close(other);
    fake_close(&fake);
    return 0;
}

static void begin_load(void)
{
    fake.worker[0].hold_loads = true;
    fake_send_image(&fake, loader, "text", 4);
    FAKE_WAIT(&fake, fake.worker[0].held_count == 1);
}

static struct proto_load_wait notice(void)
{
    struct proto_load_wait wait =
        *(const struct proto_load_wait *)fake_expect(&fake, loader, PROTO_LOAD_WAIT);
    assert_int_equal(fake.message.header.serial, 0);
    return wait;
}

static void a_load_that_waits_tells_for_whom_once_each(void **state)
{
    (void)state;
    char process[32];
    snprintf(process, sizeof process, "process %d", (int)getpid());
    fake.worker[0].usage.waits_for = second.client;
    begin_load();
    struct proto_load_wait told = notice();
    assert_int_equal(told.client, second.client);
    assert_int_equal(told.own, 0);
    assert_non_null(strstr(told.text, process));
    assert_non_null(strstr(told.text, "gpusharectl kill 2, and"));
    assert_non_null(strstr(told.text, "kill --force 2)"));
    fake.worker[0].usage.waits_for = first.client;
    told = notice();
    assert_int_equal(told.client, first.client);
    assert_int_equal(told.own, 1);
    assert_non_null(strstr(told.text, "its own client (1)"));
    fake_release(&fake.worker[0]);
    fake_expect(&fake, loader, PROTO_MODULE_LOADED);
    assert_false(uv_is_active((uv_handle_t *)&fake_session(&fake, 0)->deadline));
}

static void another_users_client_is_told_by_its_number_alone(void **state)
{
    (void)state;
    fake_session(&fake, 1)->uid++;
    fake.worker[0].usage.waits_for = second.client;
    begin_load();
    struct proto_load_wait told = notice();
    assert_non_null(strstr(told.text, "client 2"));
    assert_null(strstr(told.text, "process"));
    fake_session(&fake, 1)->uid--;
    fake_release(&fake.worker[0]);
    fake_expect(&fake, loader, PROTO_MODULE_LOADED);
}

/* A client that has left can't be ended: the remedy is another worker. The clients' own sentence
 * must not name another user's client. */
static void a_client_that_has_left_is_told_with_what_ends_its_work(void **state)
{
    (void)state;
    struct session *gone = fake_session(&fake, 1);
    enum proto_connection_state attached = gone->state;
    strcpy(gone->name, "vanished");
    gone->state = PROTO_CONNECTION_STATE_LEAVING;
    fake.worker[0].usage.loads_wait_for = second.client;
    fake_send(&fake, loader, PROTO_LOAD_WAIT_QUERY, NULL);
    const struct proto_load_wait *wait = fake_expect(&fake, loader, PROTO_LOAD_WAIT);
    assert_non_null(strstr(wait->text, "client 2 ('vanished'), which has left,"));
    assert_non_null(strstr(wait->text, "interrupts what others have in flight"));
    assert_non_null(strstr(wait->text, "kill --force 2 does it)"));
    assert_null(strstr(wait->text, "end that program"));
    gone->uid++;
    fake_send(&fake, loader, PROTO_LOAD_WAIT_QUERY, NULL);
    wait = fake_expect(&fake, loader, PROTO_LOAD_WAIT);
    assert_null(strstr(wait->text, "vanished"));
    assert_non_null(strstr(wait->text, "another user's and has left"));
    assert_non_null(strstr(wait->text, "kill --force 2 does it)"));
    gone->uid--;
    gone->state = attached;
}

static void a_client_can_ask(void **state)
{
    (void)state;
    fake_send(&fake, other, PROTO_LOAD_WAIT_QUERY, NULL);
    const struct proto_load_wait *wait = fake_expect(&fake, other, PROTO_LOAD_WAIT);
    assert_int_equal(wait->client, 0);
    assert_string_equal(wait->text, "");
    fake.worker[0].usage.loads_wait_for = first.client;
    fake_send(&fake, other, PROTO_LOAD_WAIT_QUERY, NULL);
    wait = fake_expect(&fake, other, PROTO_LOAD_WAIT);
    assert_int_equal(wait->client, first.client);
    assert_int_equal(wait->own, 0);
    assert_non_null(strstr(wait->text, "client 1"));
}

static void a_client_that_is_held_learns_why(void **state)
{
    (void)state;
    fake.worker[0].usage.partition_error = PROTO_ERROR_OUT_OF_MEMORY;
    fake_send(&fake, other, PROTO_LOAD_WAIT_QUERY, NULL);
    const struct proto_load_wait *wait = fake_expect(&fake, other, PROTO_LOAD_WAIT);
    assert_int_equal(wait->client, second.client);
    assert_int_equal(wait->own, 1);
    assert_non_null(strstr(wait->text, "makes no set of multiprocessors"));
}

static void a_client_leaves_while_its_load_waits(void **state)
{
    (void)state;
    fake.worker[0].usage.waits_for = second.client;
    begin_load();
    shutdown(loader, SHUT_RDWR);
    FAKE_WAIT(&fake, fake_first(&fake)->number == second.client);
    fake_release(&fake.worker[0]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_load_that_waits_tells_for_whom_once_each),
        T(another_users_client_is_told_by_its_number_alone),
        T(a_client_that_has_left_is_told_with_what_ends_its_work),
        T(a_client_can_ask),
        T(a_client_that_is_held_learns_why),
        T(a_client_leaves_while_its_load_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
