/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Records of clients that do one thing after the other say at each moment what they have: each
 * change is marked by the function that makes it. The next server would not know of another.
 */
#include "tests/unit/supervisor/fake.h"

#include <poll.h>

#include "server/supervisor/session/life/record.h"
#include "server/supervisor/supervisor.h"

enum { CLIENTS = 2, HAD = 24, STEPS = 1500, LAYOUT = 1 };

struct client {
    int fd;
    uint32_t number;
    uint64_t blocks[HAD], buffers[HAD];
    uint32_t events[HAD], modules[HAD];
};

struct scene {
    struct fake fake;
    int manager;
    struct notify notify;
    struct keeper keeper;
    struct client clients[CLIENTS];
};

static struct scene scene;
static uint32_t state = 3;

static uint32_t chance(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static void scene_open(void)
{
    struct state_log_reader reader;
    struct error why;
    int pair[2];
    memset(&scene, 0, sizeof scene);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                     0);
    scene.manager = pair[0];
    scene.notify.fd = pair[1];
    fake_open(&scene.fake, 1, 256 * MIB);
    scene.fake.settings.pinned_pool = 0; /* as with every server that keeps */
    assert_int_equal(keeper_open(&scene.keeper, &scene.notify, NULL, 0, LAYOUT, &reader, &why),
                     KEEPER_NOTHING);
    assert_int_equal(keeper_begin(&scene.keeper, 0), 0);
    supervisor_keep(scene.fake.supervisor, &scene.keeper);
}

/* Messages to the service manager are of no interest, and must not fill the socket. */
static void manager_read(void)
{
    char text[256];
    while (recv(scene.manager, text, sizeof text, MSG_DONTWAIT) > 0)
        ;
}

static void expect_current(void)
{
    struct session *session;
    manager_read();
    assert_true(scene.keeper.on);
    LIST_FOR_EACH (session, &scene.fake.supervisor->server.session_list, link)
        assert_true(session->keeping.touched || session_record_is_current(session));
}

/* Looks after each turn, until the client has an answer. */
static void await_answer(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 0) {
        fake_turn(&scene.fake);
        expect_current();
    }
}

static uint32_t event_create(int fd)
{
    struct fake_worker *worker = &scene.fake.worker[0];
    struct proto_event_create body = {.event = 0};
    fake_settle(&scene.fake);
    worker->automatic = false;
    fake_send(&scene.fake, fd, PROTO_EVENT_CREATE, &body);
    struct channel_message *asked = fake_worker_expect(&scene.fake, 0, PROTO_EVENT_CREATE);
    memcpy(&body, asked->body, sizeof body);
    struct proto_event_created created = {.event = body.event};
    fake_settle(&scene.fake);
    expect_current(); /* while it is being made */
    fake_reply(worker, asked, PROTO_EVENT_CREATED, &created, NULL, 0);
    fake_expect(&scene.fake, fd, PROTO_EVENT_CREATED);
    worker->automatic = true;
    return created.event;
}

/* The worker says that nothing uses it any more. */
static void event_ended(uint32_t client, uint32_t event)
{
    struct proto_worker_event_ended body = {.event = event};
    channel_send(scene.fake.worker[0].fd,
                 &(struct channel_packet){
                     .opcode = PROTO_WORKER_EVENT_ENDED, .client = client, .body = &body});
}

static void ask(int fd, uint16_t opcode, const void *body)
{
    fake_send(&scene.fake, fd, opcode, body);
    await_answer(fd);
    fake_expect(&scene.fake, fd, PROTO_DONE);
}

static void memory_step(struct client *client, unsigned at)
{
    static const uint64_t sizes[] = {1, 5000, 300 << 10, 3 << 20};
    struct proto_memory_free gone = {.address = client->blocks[at]};
    struct proto_memory_alloc wish = {.count = sizes[chance(sizeof sizes / sizeof *sizes)]};
    const struct proto_memory_allocated *got;
    client->blocks[at] = 0;
    if (gone.address) {
        ask(client->fd, PROTO_MEMORY_FREE, &gone);
        return;
    }
    fake_send(&scene.fake, client->fd, PROTO_MEMORY_ALLOC, &wish);
    await_answer(client->fd);
    got = fake_expect(&scene.fake, client->fd, PROTO_MEMORY_ALLOCATED);
    client->blocks[at] = got->address;
}

/* So that slabs are given back. */
static void memory_free_all(struct client *client)
{
    for (unsigned at = 0; at < HAD; at++)
        if (client->blocks[at])
            memory_step(client, at);
}

static void buffer_step(struct client *client, unsigned at)
{
    struct proto_host_free gone = {.address = client->buffers[at]};
    struct proto_host_alloc wish = {.count = 4096};
    const struct proto_host_allocated *got;
    client->buffers[at] = 0;
    if (gone.address) {
        ask(client->fd, PROTO_HOST_FREE, &gone);
        return;
    }
    fake_send(&scene.fake, client->fd, PROTO_HOST_ALLOC, &wish);
    await_answer(client->fd);
    got = fake_expect(&scene.fake, client->fd, PROTO_HOST_ALLOCATED);
    client->buffers[at] = got->address;
    channel_close_fds(&scene.fake.message);
}

static void event_step(struct client *client, unsigned at)
{
    struct proto_event_destroy body = {.event = client->events[at]};
    if (body.event) {
        ask(client->fd, PROTO_EVENT_DESTROY, &body);
        expect_current();
        event_ended(client->number, body.event);
        client->events[at] = 0;
    } else {
        client->events[at] = event_create(client->fd);
    }
}

static void module_step(struct client *client, unsigned at)
{
    struct proto_module_unload body = {.module = client->modules[at]};
    if (body.module) {
        ask(client->fd, PROTO_MODULE_UNLOAD, &body);
        client->modules[at] = 0;
    } else {
        fake_send_image(&scene.fake, client->fd, "text", 4);
        await_answer(client->fd);
        client->modules[at] = ((const struct proto_module_loaded *)fake_expect(
                                   &scene.fake, client->fd, PROTO_MODULE_LOADED))
                                  ->module;
    }
}

static void step(struct client *client)
{
    static void (*const steps[])(struct client * client, unsigned at) = {memory_step, buffer_step,
                                                                         event_step, module_step};
    struct fake_worker *worker = &scene.fake.worker[0];
    /* Freed memory comes back at once, or later. */
    if (chance(8) == 0 && worker->hold_frees)
        fake_release(worker);
    else if (chance(8) == 0)
        worker->hold_frees = true;
    steps[chance(sizeof steps / sizeof *steps)](client, chance(HAD));
    if (chance(64) == 0)
        memory_free_all(client);
    for (unsigned i = 0; i < 4; i++) {
        fake_turn(&scene.fake);
        expect_current();
    }
}

/* Records of clients alone. */
static size_t count_records(void)
{
    struct state_log_reader reader;
    size_t count = 0;
    assert_int_equal(state_log_read(&reader, scene.keeper.log->fd, LAYOUT), LOG_IS_WHOLE);
    for (size_t i = 0; i < reader.count; i++)
        count += reader.entries[i].name.kind <= PART_CLIENT;
    state_log_reader_close(&reader);
    return count;
}

static void scene_close(void)
{
    fake_close(&scene.fake);
    keeper_close(&scene.keeper);
    close(scene.manager);
    notify_close(&scene.notify);
}

/* The service manager has to have a descriptor before anybody is told of it. Meanwhile the loop
 * turns, and others' messages are read. */
static void answers_wait_for_a_busy_manager_and_the_loop_does_not(void **unused)
{
    (void)unused;
    scene_open();
    int fd = fake_attach(&scene.fake, 0, 0, NULL, NULL);
    int other = fake_attach(&scene.fake, 0, 0, NULL, NULL);
    struct proto_host_alloc wish = {.count = 4096};
    struct proto_memory_alloc memory = {.count = 4096};
    manager_read();
    while (notify_status(&scene.notify, "busy") == 0)
        ;
    const uint64_t from = clock_now();
    fake_send(&scene.fake, fd, PROTO_HOST_ALLOC, &wish);
    for (unsigned i = 0; i < 20; i++)
        fake_turn(&scene.fake);
    fake_send(&scene.fake, other, PROTO_MEMORY_ALLOC, &memory);
    for (unsigned i = 0; i < 20; i++)
        fake_turn(&scene.fake);
    assert_true(clock_now() - from < UNITS_SECOND / 2);
    struct pollfd ready[] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    assert_int_equal(poll(ready, 2, 0), 0);
    assert_true(scene.keeper.on);
    await_answer(fd);
    fake_expect(&scene.fake, fd, PROTO_HOST_ALLOCATED);
    channel_close_fds(&scene.fake.message);
    await_answer(other);
    fake_expect(&scene.fake, other, PROTO_MEMORY_ALLOCATED);
    /* It was looked at in each turn, and carried out once. */
    fake_settle(&scene.fake);
    assert_int_equal(poll(ready, 2, 0), 0);
    expect_current();
    close(fd);
    close(other);
    fake_expect_nothing_left(&scene.fake);
    scene_close();
}

/* A client that ends in such a moment is freed, and nothing looks at it afterwards. */
static void a_client_may_end_while_the_manager_is_busy(void **unused)
{
    (void)unused;
    scene_open();
    int fd = fake_attach(&scene.fake, 0, 0, NULL, NULL);
    struct proto_host_alloc wish = {.count = 4096};
    manager_read();
    while (notify_status(&scene.notify, "busy") == 0)
        ;
    fake_send(&scene.fake, fd, PROTO_HOST_ALLOC, &wish);
    /* Another thread makes the buffer. */
    FAKE_WAIT(&scene.fake, !queue_is_empty(&scene.notify.waiting));
    close(fd);
    fake_settle(&scene.fake);
    assert_int_equal(scene.fake.supervisor->server.sessions, 1);
    manager_read();
    FAKE_WAIT(&scene.fake, scene.fake.supervisor->server.sessions == 0);
    fake_expect_nothing_left(&scene.fake);
    expect_current();
    scene_close();
}

static void what_is_kept_is_what_clients_have(void **unused)
{
    (void)unused;
    scene_open();
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct proto_attached attached;
        scene.clients[i].fd = fake_attach(&scene.fake, 0, 0, NULL, &attached);
        scene.clients[i].number = attached.client;
    }
    for (unsigned i = 0; i < STEPS; i++) {
        step(&scene.clients[chance(CLIENTS)]);
    }
    assert_true(count_records() > CLIENTS * 3);
    fake_release(&scene.fake.worker[0]);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(scene.clients[i].fd);
    fake_expect_nothing_left(&scene.fake);
    expect_current();
    assert_int_equal(count_records(), 0);
    scene_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_what_clients_have),
        cmocka_unit_test(answers_wait_for_a_busy_manager_and_the_loop_does_not),
        cmocka_unit_test(a_client_may_end_while_the_manager_is_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
