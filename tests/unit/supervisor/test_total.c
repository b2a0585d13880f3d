/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Guarantees of clients, and totals of users and groups: by accounts. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;
static struct fake_reload reload, set_over;

static void begin(uint32_t devices, const char *yaml)
{
    fake_open(&fake, devices, 64 * MIB);
    if (fake_configure(&fake, yaml, &reload))
        fail_msg("%s", reload.text);
}

static void end(void)
{
    fake_expect_nothing_left(&fake);
    assert_null(fake.supervisor->server.totals.first);
    for (uint32_t i = 0; i < fake.devices; i++)
        assert_int_equal(fake.supervisor->server.devices[i].quotas[RESOURCE_MEMORY].used, 0);
    fake_close(&fake);
}

/* Attaches by a name that rules know. Returns the connection. */
static int attach(uint32_t device, const char *name)
{
    struct proto_attach body = {.device = device, .allowance = PROTO_ALLOWANCE_UNSET};
    snprintf(body.name, sizeof body.name, "%s", name);
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    return fd;
}

static int attached(uint32_t device, const char *name)
{
    int fd = attach(device, name);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    return fd;
}

static void attach_refused(const char *name, uint32_t error, const char *word)
{
    int fd = attach(0, name);
    fake_expect_failed(&fake, fd, error, word);
    close(fd);
    fake_settle(&fake);
}

static void requested_memory_stays_free_for_its_client(void **state)
{
    (void)state;
    begin(1, "rules:\n  - {match: {name: a}, memory: {request: 40M}}\n");
    int a = attached(0, "a"), b = attached(0, "b");
    fake_alloc(&fake, b, 24 * MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY,
                       "device memory of all clients together: 64 MiB of 64 MiB are in use or "
                       "guaranteed");
    fake_alloc_refused(&fake, b, 1, PROTO_ERROR_OUT_OF_MEMORY, "wait until other clients have");
    fake_alloc(&fake, a, 40 * MIB);
    fake_alloc_refused(&fake, a, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "all clients");
    /* When it has gone, its room is anybody's. */
    close(a);
    FAKE_WAIT(&fake, fake.worker[0].detached == 1);
    fake_settle(&fake);
    fake_alloc(&fake, b, 40 * MIB);
    close(b);
    end();
}

/* Small pieces come from slabs, which must shrink to what is left. */
static void slabs_leave_room_for_guarantees(void **state)
{
    (void)state;
    begin(1, "rules:\n  - {match: {name: a}, memory: {request: 59M}}\n");
    int a = attached(0, "a"), b = attached(0, "b");
    fake_alloc(&fake, b, 1000);
    fake_alloc(&fake, b, MIB / 2);
    fake_alloc(&fake, b, MIB / 2);
    fake_alloc(&fake, b, MIB / 2);
    fake_alloc(&fake, b, MIB / 2);
    assert_true(fake_session(&fake, 1)->quotas[RESOURCE_MEMORY].used <= 4 * MIB);
    fake_alloc_refused(&fake, b, 4 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "guaranteed");
    for (int i = 0; i < 29; i++)
        fake_alloc(&fake, a, 2 * MIB);
    close(a);
    close(b);
    end();
}

static void requests_beyond_the_device_are_refused_with_the_arithmetic(void **state)
{
    (void)state;
    begin(2, "rules:\n  - {match: {name: \"a*\"}, memory: {request: 40M}}\n"
             "  - {match: {name: c}, memory: {request: 24M}}\n");
    int a = attached(0, "a");
    attach_refused(
        "a2", PROTO_ERROR_NO_ROOM,
        "a request of 40 MiB of device memory does not fit: 40 MiB are guaranteed to other "
        "clients, together 80 MiB, and there are 64 MiB");
    assert_int_equal(fake.supervisor->server.devices[0].quotas[RESOURCE_MEMORY].used, 40 * MIB);
    int other = attached(1, "a2"); /* another device has room */
    int b = attached(0, "b");
    fake_alloc(&fake, b, 2 * MIB);
    attach_refused(
        "c", PROTO_ERROR_NO_ROOM,
        "a request of 24 MiB of device memory does not fit now: of 64 MiB other clients have "
        "40 MiB guaranteed and use 2 MiB beyond that: ask for less (the request comes from "
        "/tmp/gpushare-fake-");
    close(b);
    FAKE_WAIT(&fake, fake.worker[0].detached == 1);
    fake_settle(&fake);
    int c = attached(0, "c");
    close(a);
    close(c);
    close(other);
    end();
}

static void a_clients_request_for_more_than_the_device_has_is_refused(void **state)
{
    (void)state;
    begin(1, "");
    struct proto_attach body = {.device = 0, .allowance = PROTO_ALLOWANCE_UNSET};
    body.allowance.memory.request = 64 * MIB + 1;
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_NO_ROOM, "and there are 64 MiB");
    body.allowance.memory.request = 64 * MIB;
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    assert_int_equal(fake_first(&fake)->grant.allowance.memory.request, 64 * MIB);
    close(fd);
    end();
}

static void a_clients_request_for_more_pinned_memory_than_there_is_is_refused(void **state)
{
    (void)state;
    begin(1, "");
    const uint64_t all = fake.supervisor->server.quotas[RESOURCE_HOST_MEMORY].limit;
    struct proto_attach body = {.device = 0, .allowance = PROTO_ALLOWANCE_UNSET};
    body.allowance.host_memory.request = all + 1;
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_NO_ROOM, "pinned host memory does not fit");
    /* A client may have a part of it, and that is what it can be guaranteed. */
    body.allowance.host_memory.request = all;
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    const struct allowance *granted = &fake_first(&fake)->grant.allowance;
    assert_int_equal(granted->host_memory.request, granted->host_memory.limit);
    close(fd);
    end();
}

static void host_memory_is_guaranteed_too(void **state)
{
    (void)state;
    /* The server has 64 MiB, each client 16. */
    begin(1, "rules:\n  - {match: {name: \"a*\"}, host_memory: {request: 16M}}\n");
    int fds[5];
    for (int i = 0; i < 4; i++)
        fds[i] = attached(0, i < 3 ? "a" : "b");
    struct proto_host_alloc alloc = {.count = 16 * MIB};
    fake_send(&fake, fds[3], PROTO_HOST_ALLOC, &alloc);
    fake_expect(&fake, fds[3], PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    fds[4] = attached(0, "b");
    alloc.count = 4096;
    fake_send(&fake, fds[4], PROTO_HOST_ALLOC, &alloc);
    fake_expect_failed(&fake, fds[4], PROTO_ERROR_OUT_OF_MEMORY,
                       "pinned host memory limit of the server (--host-memory-total): 64 MiB of "
                       "64 MiB are in use or guaranteed");
    attach_refused("a", PROTO_ERROR_NO_ROOM,
                   "of 64 MiB other clients have 48 MiB guaranteed and "
                   "use 16 MiB beyond that");
    alloc.count = 16 * MIB;
    for (int i = 0; i < 3; i++) {
        fake_send(&fake, fds[i], PROTO_HOST_ALLOC, &alloc);
        fake_expect(&fake, fds[i], PROTO_HOST_ALLOCATED);
        channel_close_fds(&fake.message);
    }
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    end();
}

static uint32_t guarantee(struct session *session, uint64_t memory, uint64_t host,
                          struct error *why)
{
    struct allowance wanted = allowance_none;
    wanted.memory.request = memory;
    wanted.host_memory.request = host;
    return session_quota_guarantee(session, &wanted, why);
}

static void a_guarantee_that_fails_in_part_changes_nothing(void **state)
{
    (void)state;
    struct error why;
    begin(1, "");
    int a = attached(0, "a");
    struct session *session = fake_first(&fake);
    uint64_t memory = 8 * MIB, host = 4 * MIB;
    assert_int_equal(guarantee(session, memory, host, &why), 0);
    assert_int_not_equal(guarantee(session, 16 * MIB, 65 * MIB, &why), 0);
    assert_non_null(strstr(why.text, "pinned host memory"));
    assert_int_not_equal(guarantee(session, 65 * MIB, 8 * MIB, &why), 0);
    assert_int_equal(session->quotas[RESOURCE_MEMORY].guarantee, memory);
    assert_int_equal(session->quotas[RESOURCE_HOST_MEMORY].guarantee, host);
    assert_int_equal(session->device->quotas[RESOURCE_MEMORY].used, memory);
    assert_int_equal(fake.supervisor->server.quotas[RESOURCE_HOST_MEMORY].used, host);
    close(a);
    end();
}

static void all_clients_of_a_user_have_one_total(void **state)
{
    (void)state;
    char yaml[300], who[64];
    snprintf(yaml, sizeof yaml,
             "users:\n  - {uid: %u, memory: {limit: 12M}, host_memory: {limit: 1M}}\n"
             "  - {uid: %u, memory: {limit: 2M}}\n",
             getuid(), getuid() + 1);
    begin(2, yaml);
    int a = attached(0, "a"), b = attached(0, "b"), other = attached(1, "c");
    uint64_t first = fake_alloc(&fake, a, 8 * MIB);
    fake_alloc(&fake, b, 4 * MIB);
    snprintf(who, sizeof who, "device memory limit of all clients of user %u together", getuid());
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, who);
    fake_alloc_refused(&fake, a, 1, PROTO_ERROR_OUT_OF_MEMORY, "12 MiB of 12 MiB are in use");
    fake_alloc(&fake, other, 12 * MIB); /* of each GPU */
    fake_free(&fake, a, first);
    fake_alloc(&fake, b, 8 * MIB);
    fake_alloc_refused(&fake, a, 1, PROTO_ERROR_OUT_OF_MEMORY, who);
    /* Pinned memory is the server's, wherever it is used. */
    struct proto_host_alloc alloc = {.count = MIB};
    fake_send(&fake, other, PROTO_HOST_ALLOC, &alloc);
    fake_expect(&fake, other, PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    alloc.count = 4096;
    fake_send(&fake, a, PROTO_HOST_ALLOC, &alloc);
    fake_expect_failed(&fake, a, PROTO_ERROR_OUT_OF_MEMORY,
                       "pinned host memory limit of all clients "
                       "of user");
    /* A client that leaves gives it back. */
    close(b);
    FAKE_WAIT(&fake, fake.worker[0].detached == 1);
    fake_settle(&fake);
    fake_alloc(&fake, a, 12 * MIB);
    fake_alloc_refused(&fake, a, 1, PROTO_ERROR_OUT_OF_MEMORY, who);
    close(a);
    close(other);
    end();
}

static void a_request_needs_room_in_the_total_and_holds_it(void **state)
{
    (void)state;
    begin(1, "groups:\n  - {memory: {limit: 16M}}\n"
             "rules:\n  - {match: {name: a}, memory: {request: 10M}}\n");
    int a = attached(0, "a");
    attach_refused("a", PROTO_ERROR_NO_ROOM,
                   "a request of 10 MiB of device memory does not fit: "
                   "device memory limit of all clients of group");
    int b = attached(0, "b");
    fake_alloc(&fake, b, 6 * MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "of group");
    /* Both are named by their lines. */
    attach_refused("a", PROTO_ERROR_NO_ROOM, ":4, and the total from ");
    attach_refused("a", PROTO_ERROR_NO_ROOM, ":2), or wait");
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, ":2)");
    fake_alloc(&fake, a, 10 * MIB);
    close(a);
    close(b);
    end();
}

static void a_new_file_changes_totals_of_attached_clients(void **state)
{
    (void)state;
    begin(1, "");
    int a = attached(0, "a"), b = attached(0, "b");
    fake_alloc(&fake, a, 10 * MIB);
    uint64_t second = fake_alloc(&fake, b, 10 * MIB);
    /* Below what is in use: nothing is taken away, nothing is added. */
    assert_int_equal(fake_configure(&fake, "users:\n  - {memory: {limit: 16M}}\n", &reload), 0);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "20 MiB of 16 MiB are in use");
    fake_free(&fake, b, second);
    fake_alloc(&fake, b, 6 * MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB");
    assert_int_equal(fake_configure(&fake, "users:\n  - {memory: {limit: 50%}}\n", &reload), 0);
    fake_alloc(&fake, b, 16 * MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "32 MiB of 32 MiB");
    assert_int_equal(fake_configure(&fake, "", &reload), 0);
    fake_alloc(&fake, b, 32 * MIB);
    close(a);
    close(b);
    end();
}

/* A file is put in force to see whether it fits; what does not fit is taken back whole. */
static void a_file_that_is_refused_leaves_the_totals(void **state)
{
    (void)state;
    begin(1, "users:\n  - {memory: {limit: 48M}}\n");
    int a = attached(0, "a"), b = attached(0, "b");
    fake_alloc(&fake, a, 40 * MIB);
    assert_int_not_equal(fake_configure(&fake,
                                        "users:\n  - {memory: {limit: 41M}}\n"
                                        "rules:\n  - {match: {name: b}, memory: {request: 40M}}\n",
                                        &reload),
                         0);
    assert_non_null(strstr(reload.text, "request of 40 MiB"));
    fake_alloc(&fake, b, 8 * MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "48 MiB of 48 MiB");
    close(a);
    close(b);
    end();
}

/* ---- by an administrator ---- */

/* A value of PROTO_UNSET changes nothing. */
static uint32_t set_total(bool group, uint32_t id, struct total_change change, struct error *why)
{
    struct account_owner owner = {.kind = group ? TOTAL_GROUP : TOTAL_USER, .id = id};
    for (enum resource i = 0; i < RESOURCES; i++)
        change.parts |= allowance_has(&change.limits, i, ALLOWANCE_LIMIT) ? RESOURCE_BIT(i) : 0;
    set_over = (struct fake_reload){0};
    bool over;
    uint32_t error =
        owner_total_set(fake.supervisor, &owner, &change,
                        &(struct reload_asker){"a test", fake_reloaded, &set_over}, &over, why);
    if (error || over)
        return error;
    FAKE_WAIT(&fake, set_over.over);
    return set_over.error ? error_set(why, set_over.error, "%s", set_over.text) : 0;
}

static struct total_change total_of(uint64_t memory, uint64_t host)
{
    struct total_change change = {.limits = allowance_none};
    change.limits.memory.limit = memory;
    change.limits.host_memory.limit = host;
    return change;
}

static void may_have(uint64_t memory, uint64_t host)
{
    struct error why = {0};
    struct total_change change = total_of(memory, host);
    if (set_total(false, getuid(), change, &why))
        fail_msg("%s", why.text);
}

static void shows(bool group, uint32_t id, uint32_t device, uint64_t limit, uint64_t used)
{
    struct account_owner owner = {.kind = group ? TOTAL_GROUP : TOTAL_USER, .id = id};
    struct total_view view;
    owner_total_view(fake.supervisor, &owner,
                     device == TOTAL_OF_SERVER ? RESOURCE_HOST_MEMORY : RESOURCE_MEMORY, device,
                     &view);
    if (view.limit != limit || view.used != used)
        fail_msg("%u: limit %lu, used %lu, and not %lu and %lu", id, view.limit, view.used, limit,
                 used);
}

static void a_total_is_set_for_attached_and_for_later_clients(void **state)
{
    (void)state;
    begin(2, "");
    int a = attached(0, "a");
    fake_alloc(&fake, a, 10 * MIB);
    shows(false, getuid(), 0, PROTO_UNSET, 10 * MIB);
    shows(false, getuid() + 1, 0, PROTO_UNSET, 0);
    may_have(16 * MIB, MIB);
    int b = attached(0, "b"), other = attached(1, "c");
    fake_alloc(&fake, b, 6 * MIB);
    fake_alloc_refused(&fake, a, 1, PROTO_ERROR_OUT_OF_MEMORY, "of user");
    fake_alloc_refused(&fake, b, 1, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB are in use");
    fake_alloc_refused(&fake, b, 1, PROTO_ERROR_OUT_OF_MEMORY, "(it comes from gpusharectl set)");
    fake_alloc(&fake, other, 16 * MIB); /* of each GPU */
    shows(false, getuid(), 0, 16 * MIB, 16 * MIB);
    shows(false, getuid(), 1, 16 * MIB, 16 * MIB);
    struct proto_host_alloc alloc = {.count = MIB};
    fake_send(&fake, b, PROTO_HOST_ALLOC, &alloc);
    fake_expect(&fake, b, PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    alloc.count = 4096;
    fake_send(&fake, a, PROTO_HOST_ALLOC, &alloc);
    fake_expect_failed(&fake, a, PROTO_ERROR_OUT_OF_MEMORY, "of user");
    shows(false, getuid(), TOTAL_OF_SERVER, MIB, MIB);
    /* Limits that are not named stay; below the memory in use nothing is taken away. */
    may_have(8 * MIB, PROTO_UNSET);
    shows(false, getuid(), TOTAL_OF_SERVER, MIB, MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 8 MiB are in use");
    struct total_change half = total_of(PROTO_UNSET, PROTO_UNSET);
    half.limits.part[RESOURCE_MEMORY].limit = 5000;
    struct error why;
    assert_int_equal(set_total(false, getuid(), half, &why), 0);
    shows(false, getuid(), 1, 32 * MIB, 16 * MIB);
    fake_alloc(&fake, b, 16 * MIB);
    fake_alloc_refused(&fake, b, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "32 MiB of 32 MiB");
    close(a);
    close(b);
    close(other);
    end();
}

static void a_groups_total_is_set_too(void **state)
{
    (void)state;
    struct error why;
    begin(1, "");
    int a = attached(0, "a");
    struct total_change change = total_of(4 * MIB, PROTO_UNSET);
    assert_int_equal(set_total(true, getgid() + 4321, change, &why), 0);
    fake_alloc(&fake, a, 6 * MIB); /* of another group */
    assert_int_equal(set_total(true, getgid(), change, &why), 0);
    shows(true, getgid(), 0, 4 * MIB, 6 * MIB);
    fake_alloc_refused(&fake, a, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "of group");
    assert_int_equal(set_total(true, UINT32_MAX, change, &why), PROTO_ERROR_NOT_FOUND);
    assert_int_equal(set_total(false, UINT32_MAX, change, &why), PROTO_ERROR_NOT_FOUND);
    assert_int_equal(set_total(false, 65534, change, &why), PROTO_ERROR_NOT_FOUND);
    assert_non_null(strstr(why.text, "that the server can't identify"));
    close(a);
    end();
}

static void a_total_set_by_hand_stays_until_the_file_changes_it(void **state)
{
    (void)state;
    struct error why;
    begin(1, "users:\n  - {memory: {limit: 16M}}\n");
    int a = attached(0, "a");
    may_have(24 * MIB, PROTO_UNSET);
    fake_alloc(&fake, a, 20 * MIB);
    /* Another line of the file is no word about this user. */
    assert_int_equal(fake_configure(&fake,
                                    "users:\n  - {memory: {limit: 16M}}\n"
                                    "groups:\n  - {gid: 4294967290, memory: {limit: 1M}}\n",
                                    &reload),
                     0);
    shows(false, getuid(), 0, 24 * MIB, 20 * MIB);
    fake_alloc(&fake, a, 4 * MIB);
    fake_alloc_refused(&fake, a, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "24 MiB of 24 MiB");
    /* A file that is refused, by its own word about this user, says nothing. */
    int b = attached(0, "b");
    may_have(40 * MIB, PROTO_UNSET);
    assert_int_not_equal(fake_configure(&fake,
                                        "users:\n  - {memory: {limit: 17M}}\n"
                                        "rules:\n  - {match: {name: b}, memory: {request: 4M}}\n",
                                        &reload),
                         0);
    assert_non_null(strstr(reload.text, "together"));
    shows(false, getuid(), 0, 40 * MIB, 24 * MIB);
    close(b);
    FAKE_WAIT(&fake, fake.worker[0].detached == 1);
    fake_settle(&fake);
    assert_int_equal(fake_configure(&fake, "users:\n  - {memory: {limit: 48M}}\n", &reload), 0);
    shows(false, getuid(), 0, 48 * MIB, 24 * MIB);
    /* Nor does it come back with the words that it was set against. */
    assert_int_equal(fake_configure(&fake, "users:\n  - {memory: {limit: 16M}}\n", &reload), 0);
    shows(false, getuid(), 0, 16 * MIB, 24 * MIB);
    struct total_change change = total_of(8 * MIB, PROTO_UNSET);
    fake_reload_begin(&fake, "rules:\n  - {match: {}, threads: {limit: 50%}}\n", &reload);
    assert_false(reload.over);
    assert_int_equal(set_total(false, getuid(), change, &why), PROTO_ERROR_NOT_READY);
    FAKE_WAIT(&fake, reload.over);
    shows(false, getuid(), 0, PROTO_UNSET, 24 * MIB);
    close(a);
    end();
}

/* Each for itself: another word about pinned memory leaves what was set of device memory. */
static void request_and_limit_set_by_hand_are_forgotten_apart(void **state)
{
    (void)state;
    begin(1, "users:\n  - {memory: {limit: 16M}}\n");
    int a = attached(0, "a");
    may_have(24 * MIB, 2 * MIB);
    assert_int_equal(
        fake_configure(&fake, "users:\n  - {memory: {limit: 16M}, host_memory: {limit: 1M}}\n",
                       &reload),
        0);
    shows(false, getuid(), 0, 24 * MIB, 0);
    shows(false, getuid(), TOTAL_OF_SERVER, MIB, 0);
    may_have(PROTO_UNSET, 3 * MIB);
    assert_int_equal(fake_configure(&fake, "users:\n  - {host_memory: {limit: 1M}}\n", &reload), 0);
    shows(false, getuid(), 0, PROTO_UNSET, 0);
    shows(false, getuid(), TOTAL_OF_SERVER, 3 * MIB, 0);
    close(a);
    end();
}

static void a_default_is_what_the_configuration_says(void **state)
{
    (void)state;
    struct error why;
    struct account_owner owner = {.id = getuid()};
    struct total_view view;
    begin(1, "users:\n  - {memory: {limit: 16M}}\n");
    int a = attached(0, "a");
    may_have(24 * MIB, 2 * MIB);
    owner_total_view(fake.supervisor, &owner, RESOURCE_MEMORY, 0, &view);
    assert_true(view.set);
    struct total_change memory = total_of(PROTO_UNSET, PROTO_UNSET);
    memory.parts = RESOURCE_BIT(RESOURCE_MEMORY);
    assert_int_equal(set_total(false, getuid(), memory, &why), 0);
    shows(false, getuid(), 0, 16 * MIB, 0);
    shows(false, getuid(), TOTAL_OF_SERVER, 2 * MIB, 0);
    owner_total_view(fake.supervisor, &owner, RESOURCE_MEMORY, 0, &view);
    assert_false(view.set);
    fake_alloc(&fake, a, 16 * MIB);
    fake_alloc_refused(&fake, a, 1, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB");
    /* Nothing of it is set any longer: its place is free. */
    struct total_change host = total_of(PROTO_UNSET, PROTO_UNSET);
    host.parts = RESOURCE_BIT(RESOURCE_HOST_MEMORY);
    assert_int_equal(set_total(false, getuid(), host, &why), 0);
    shows(false, getuid(), TOTAL_OF_SERVER, PROTO_UNSET, 0);
    assert_int_equal(fake.supervisor->server.total_overrides.count, 0);
    close(a);
    end();
}

/* Whoever it is, it is not let out of what was set for some. */
static void users_outside_the_namespace_get_the_strictest_total(void **state)
{
    (void)state;
    struct error why;
    begin(1, "");
    int a = attached(0, "a"), b = attached(0, "b");
    int greeted = fake_greet(&fake); /* is nobody's client yet, and has no accounts */
    struct session *unseen = fake_first(&fake);
    unseen->identity.known = false;
    fake_alloc(&fake, a, 2 * MIB);
    fake_alloc(&fake, b, 20 * MIB);
    struct total_change change = total_of(8 * MIB, PROTO_UNSET);
    assert_int_equal(set_total(false, getuid() + 1, change, &why), 0);
    change.limits.memory.limit = 4 * MIB;
    assert_int_equal(set_total(false, getuid() + 2, change, &why), 0);
    shows(false, UINT32_MAX, 0, 4 * MIB, 2 * MIB);
    shows(false, getuid(), 0, PROTO_UNSET, 20 * MIB);
    fake_alloc(&fake, a, 2 * MIB);
    fake_alloc_refused(&fake, a, 1, PROTO_ERROR_OUT_OF_MEMORY, "users that can't be seen");
    fake_alloc(&fake, b, 2 * MIB);
    /* Groups of whom are not seen likewise. */
    gid_t *gids = unseen->identity.gids;
    unseen->identity.gids = NULL;
    assert_int_equal(set_total(true, 77777, change, &why), 0);
    shows(true, UINT32_MAX, 0, 4 * MIB, 4 * MIB);
    unseen->identity.gids = gids;
    close(greeted);
    close(a);
    close(b);
    end();
}

static void guaranteed(unsigned client, uint64_t memory)
{
    const struct session *session = fake_session(&fake, client);
    if (session->quotas[RESOURCE_MEMORY].guarantee != memory)
        fail_msg("%lu are guaranteed and not %lu", session->quotas[RESOURCE_MEMORY].guarantee,
                 memory);
}

/* A guarantee counts as held; a total below it takes nothing away, however often it is changed and
 * put back. */
static void a_total_below_a_guarantee_leaves_it(void **state)
{
    (void)state;
    begin(1, "rules:\n  - {match: {name: a}, memory: {request: 20M}}\n");
    int a = attached(0, "a"), b = attached(0, "b");
    may_have(10 * MIB, PROTO_UNSET);
    shows(false, getuid(), 0, 10 * MIB, 20 * MIB);
    fake_alloc(&fake, a, 12 * MIB); /* of its guarantee */
    fake_alloc_refused(&fake, b, 1, PROTO_ERROR_OUT_OF_MEMORY, "20 MiB of 10 MiB are in use or");
    /* A reload that is refused after it was lowered. */
    assert_int_not_equal(fake_configure(&fake,
                                        "rules:\n  - {match: {name: a}, memory: {request: 15M}}\n"
                                        "  - {match: {name: b}, memory: {request: 60M}}\n",
                                        &reload),
                         0);
    guaranteed(0, 20 * MIB);
    shows(false, getuid(), 0, 10 * MIB, 20 * MIB);
    /* A change that is put back because another client's was refused. */
    struct allowance change = allowance_none;
    uint32_t number = fake_first(&fake)->number;
    change.memory.request = 15 * MIB;
    assert_int_equal(
        change_set(fake.supervisor, number, &change, &(struct change_asker){"a test", NULL, NULL}),
        1);
    guaranteed(0, 15 * MIB);
    change.memory.request = 20 * MIB;
    assert_int_equal(change_put_back(fake.supervisor, number, &change,
                                     &(struct change_asker){"a test", NULL, NULL}),
                     1);
    guaranteed(0, 20 * MIB);
    /* Asking for as much anew is another matter. */
    change.memory.request = 21 * MIB;
    assert_int_equal(
        change_set(fake.supervisor, number, &change, &(struct change_asker){"a test", NULL, NULL}),
        -ENOSPC);
    /* Both kinds at once, the second of which does not fit. */
    struct error why;
    struct session *session = fake_first(&fake);
    assert_int_not_equal(guarantee(session, 15 * MIB, 65 * MIB, &why), 0);
    guaranteed(0, 20 * MIB);
    fake_alloc(&fake, a, 8 * MIB);
    close(a);
    close(b);
    end();
}

static void many_totals_are_refused_and_the_others_hold(void **state)
{
    (void)state;
    struct error why;
    struct total_change change = total_of(8 * MIB, PROTO_UNSET);
    begin(1, "");
    int a = attached(0, "a");
    for (uint32_t i = 0; i < TOTAL_OVERRIDES_MAX; i++)
        assert_int_equal(set_total(true, 100000 + i, change, &why), 0);
    assert_int_equal(set_total(false, getuid(), change, &why), PROTO_ERROR_SERVER_RESOURCES);
    assert_non_null(strstr(why.text, "1024 totals have been set"));
    shows(true, 100000, 0, 8 * MIB, 0);
    shows(true, 100000 + TOTAL_OVERRIDES_MAX - 1, 0, 8 * MIB, 0);
    change.limits.memory.limit = 4 * MIB; /* one that is there may change */
    assert_int_equal(set_total(true, 100000, change, &why), 0);
    shows(true, 100000, 0, 4 * MIB, 0);
    fake_alloc(&fake, a, 32 * MIB);
    close(a);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requested_memory_stays_free_for_its_client),
        cmocka_unit_test(slabs_leave_room_for_guarantees),
        cmocka_unit_test(requests_beyond_the_device_are_refused_with_the_arithmetic),
        cmocka_unit_test(a_clients_request_for_more_than_the_device_has_is_refused),
        cmocka_unit_test(a_clients_request_for_more_pinned_memory_than_there_is_is_refused),
        cmocka_unit_test(host_memory_is_guaranteed_too),
        cmocka_unit_test(a_guarantee_that_fails_in_part_changes_nothing),
        cmocka_unit_test(all_clients_of_a_user_have_one_total),
        cmocka_unit_test(a_request_needs_room_in_the_total_and_holds_it),
        cmocka_unit_test(a_new_file_changes_totals_of_attached_clients),
        cmocka_unit_test(a_file_that_is_refused_leaves_the_totals),
        cmocka_unit_test(a_total_is_set_for_attached_and_for_later_clients),
        cmocka_unit_test(a_groups_total_is_set_too),
        cmocka_unit_test(a_total_set_by_hand_stays_until_the_file_changes_it),
        cmocka_unit_test(request_and_limit_set_by_hand_are_forgotten_apart),
        cmocka_unit_test(a_default_is_what_the_configuration_says),
        cmocka_unit_test(users_outside_the_namespace_get_the_strictest_total),
        cmocka_unit_test(a_total_below_a_guarantee_leaves_it),
        cmocka_unit_test(many_totals_are_refused_and_the_others_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
