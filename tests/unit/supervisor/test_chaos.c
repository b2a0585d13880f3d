/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Clients on two devices ask for anything, in any order, and vanish; workers hold
 * their answers back, are full, die and are replaced. Whatever happens, limits hold
 * at every step, and in the end everything has come back.
 */
#include "tests/unit/supervisor/fake.h"

enum { CLIENTS = 12, KNOWN = 16, STEPS = 6000 };

struct client {
    int fd; /* -1: none */
    uint32_t number, device;
    uint8_t group[16];
    uint64_t memory[KNOWN], buffers[KNOWN];
    uint32_t modules[KNOWN];
};

static struct fake fake;
static struct client clients[CLIENTS];
static unsigned seed, lent;
static unsigned seen[200]; /* answers by opcode */

static unsigned dice(unsigned sides)
{
    return (unsigned)rand_r(&seed) % sides;
}

static void forget(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    memset(client, 0, sizeof *client);
    client->fd = -1;
}

/* Takes what has arrived; remembers handles in random places, and so forgets others. */
static void drain(struct client *client)
{
    while (client->fd >= 0) {
        int result = fake_take(&fake, client->fd);
        if (result == CHANNEL_EMPTY)
            return;
        if (result == CHANNEL_CLOSED) {
            forget(client);
            return;
        }
        assert_int_equal(result, 0);
        const void *body = fake.message.body;
        seen[fake.message.header.opcode]++;
        switch (fake.message.header.opcode) {
        case PROTO_ATTACHED:
            client->number = ((const struct proto_attached *)body)->client;
            memcpy(client->group, ((const struct proto_attached *)body)->group, 16);
            break;
        case PROTO_MEMORY_ALLOCATED:
            client->memory[dice(KNOWN)] = ((const struct proto_memory_allocated *)body)->address;
            break;
        case PROTO_HOST_ALLOCATED:
            client->buffers[dice(KNOWN)] = ((const struct proto_host_allocated *)body)->address;
            break;
        case PROTO_MODULE_LOADED:
            client->modules[dice(KNOWN)] = ((const struct proto_module_loaded *)body)->module;
            break;
        case PROTO_FAILED:
            /* Only what this test provokes; a refusal without a reason would be none. */
            assert_true(((const struct proto_failed *)body)->text[0]);
            break;
        default:
            break;
        }
        channel_close_fds(&fake.message);
    }
}

static void ask(struct client *client, uint16_t opcode, const void *body, const int *fd)
{
    /* A full socket, or one whose other end is gone, is no matter here. */
    channel_send(client->fd, &(struct channel_packet){.opcode = opcode,
                                                      .serial = ++fake.next_serial,
                                                      .body = body,
                                                      .fds = fd,
                                                      .fd_count = fd != NULL});
}

static void come(struct client *client)
{
    struct proto_hello hello = {.major = PROTO_MAJOR};
    struct proto_attach attach = {.device = dice(2), .allowance = PROTO_ALLOWANCE_UNSET};
    attach.allowance.memory.limit = (4 + dice(60)) * MIB;
    const struct client *friend = &clients[dice(CLIENTS)];
    if (friend->fd >= 0 && friend->number && dice(5))
        memcpy(attach.group, friend->group, 16);
    memset(client, 0, sizeof *client);
    client->device = attach.device;
    client->fd = fake_connect(&fake);
    ask(client, PROTO_HELLO, &hello, NULL);
    ask(client, PROTO_ATTACH, &attach, NULL);
}

static void load(struct client *client)
{
    static const char *const texts[] = {"one", "two", "three", "a fourth one"};
    const char *text = texts[dice(4)];
    int fd = memfd_create("image", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    struct proto_module_load body = {.count = dice(8) ? strlen(text) : 100};
    ask(client, PROTO_MODULE_LOAD, &body, &fd);
    close(fd);
}

/* Mostly another connection of the same group, if there is one. */
static struct client *choose_other(const struct client *client)
{
    unsigned start = dice(CLIENTS);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *other = &clients[(start + i) % CLIENTS];
        if (other != client && other->fd >= 0 && other->device != client->device &&
            memcmp(other->group, client->group, 16) == 0)
            return other;
    }
    return &clients[start];
}

static void act(struct client *client)
{
    struct client *other = choose_other(client);
    struct proto_memory_alloc alloc = {.count = 1 + dice(dice(3) ? 1 << 20 : 8 << 20)};
    struct proto_memory_free release = {.address = client->memory[dice(KNOWN)]};
    struct proto_host_alloc host = {.count = 1 + dice(4 << 20)};
    struct proto_host_free host_free = {.address = client->buffers[dice(KNOWN)]};
    struct proto_host_import share = {.client = other->number,
                                      .address = other->buffers[dice(KNOWN)]};
    struct proto_link link = {.client = other->number};
    struct proto_module_unload unload = {.module = client->modules[dice(KNOWN)]};
    switch (dice(9)) {
    case 0:
    case 1:
        ask(client, PROTO_MEMORY_ALLOC, &alloc, NULL);
        break;
    case 2:
    case 3:
        ask(client, PROTO_MEMORY_FREE, &release, NULL);
        break;
    case 4:
        ask(client, PROTO_HOST_ALLOC, &host, NULL);
        break;
    case 5:
        if (dice(2)) /* what another has lent, or has not */
            host_free.address = share.address;
        ask(client, PROTO_HOST_FREE, &host_free, NULL);
        break;
    case 6:
        if (dice(4))
            ask(client, PROTO_HOST_IMPORT, &share, NULL);
        else
            ask(client, PROTO_LINK, &link, NULL);
        break;
    case 7:
        load(client);
        break;
    default:
        if (unload.module)
            ask(client, PROTO_MODULE_UNLOAD, &unload, NULL);
    }
}

static void disturb(struct fake_worker *worker, uint32_t device)
{
    switch (dice(6)) {
    case 0:
        worker->hold_frees = true;
        break;
    case 1:
        worker->hold_detach = true;
        break;
    case 2:
    case 3:
        fake_release(worker);
        break;
    case 4:
        worker->refuse_map = dice(4);
        worker->refuse_load = dice(2);
        worker->global_bytes = dice(3 * (unsigned)MIB);
        break;
    default:
        if (dice(6))
            return;
        fake_kill_worker(&fake, device);
        FAKE_WAIT(&fake, !fake.supervisor->server.devices[device].link);
        uv_timer_stop(&fake.supervisor->server.devices[device].timer);
        fake_start_worker(&fake, device, 256 * MIB);
    }
}

/* No account is above its limit, and each is the sum of what stands under it. */
static void check_limits(void)
{
    uint64_t host = 0, fds = 0;
    struct session *s;
    LIST_FOR_EACH (s, &fake.supervisor->server.session_list, link) {
        if (!s->device)
            continue;
        assert_true(s->quotas[RESOURCE_MEMORY].used <= s->quotas[RESOURCE_MEMORY].limit);
        assert_true(s->quotas[RESOURCE_HOST_MEMORY].used <= s->quotas[RESOURCE_HOST_MEMORY].limit);
        assert_true(s->fds.used <= s->fds.limit);
        uint64_t regions = 0;
        for (const struct heap_region *region = s->heap.first; region; region = region->next)
            regions += region->bytes;
        assert_int_equal(regions, s->quotas[RESOURCE_MEMORY].used);
        host += s->quotas[RESOURCE_HOST_MEMORY].used;
        lent += s->lent;
        fds += s->fds.used;
    }
    assert_int_equal(host, fake.supervisor->server.quotas[RESOURCE_HOST_MEMORY].used);
    assert_int_equal(fds, fake.supervisor->server.fds.used);
}

static void after_random_events_every_charge_is_returned(void **state)
{
    (void)state;
    for (seed = 1; seed <= 4; seed++) {
        unsigned start = seed;
        fake_open(&fake, 2, 256 * MIB);
        for (unsigned i = 0; i < CLIENTS; i++)
            clients[i].fd = -1;
        for (unsigned step = 0; step < STEPS; step++) {
            struct client *client = &clients[dice(CLIENTS)];
            if (client->fd < 0)
                come(client);
            else if (!dice(60))
                forget(client);
            else if (client->number)
                act(client);
            if (!dice(40)) {
                uint32_t device = dice(2);
                if (fake.worker[device].held_count < 200)
                    disturb(&fake.worker[device], device);
                else
                    fake_release(&fake.worker[device]);
            }
            if (!dice(3)) {
                fake_turn(&fake);
                /* Copies end when they end: often enough they are waited for, on any machine. */
                if (dice(2))
                    FAKE_WAIT(&fake, fake.loop.active_reqs.count == 0);
                for (unsigned i = 0; i < CLIENTS; i++)
                    drain(&clients[i]);
                check_limits();
            }
            for (uint32_t i = 0; i < 2; i++)
                if (fake.worker[i].held_count > 200)
                    fake_release(&fake.worker[i]);
        }
        for (unsigned i = 0; i < CLIENTS; i++)
            forget(&clients[i]);
        for (uint32_t i = 0; i < 2; i++)
            fake_release(&fake.worker[i]);
        fake_expect_nothing_left(&fake);
        fake_close(&fake);
        seed = start;
    }
    /* It was no idle talk. */
    static const uint16_t expected[] = {
        PROTO_ATTACHED, PROTO_MEMORY_ALLOCATED, PROTO_HOST_ALLOCATED, PROTO_MODULE_LOADED,
        PROTO_DONE,     PROTO_LINKED,           PROTO_FAILED,         PROTO_ENDED};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (seen[expected[i]] <= 20)
            fail_msg("only %u %s", seen[expected[i]], proto_message_find(expected[i])->name);
    if (lent <= 20)
        fail_msg("only %u shares seen", lent);
    print_message("%u shares, %u links\n", lent, seen[PROTO_LINKED]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_random_events_every_charge_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
