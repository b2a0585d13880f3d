/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Another configuration with clients attached: whole, or as if it had never been asked for. */
#include <pwd.h>
#include <semaphore.h>

#include "server/supervisor/config/config.h"
#include "tests/unit/supervisor/fake.h"

static struct fake fake;
static struct fake_reload reload;

static void configure(const char *yaml)
{
    if (fake_configure(&fake, yaml, &reload))
        fail_msg("%s", reload.text);
}

static void refused(const char *yaml, const char *word)
{
    assert_int_not_equal(fake_configure(&fake, yaml, &reload), 0);
    if (!strstr(reload.text, word))
        fail_msg("\"%s\" lacks \"%s\"", reload.text, word);
    assert_null(fake.supervisor->reload);
}

static void begin(uint32_t devices, const char *yaml)
{
    fake_open(&fake, devices, 64 * MIB);
    for (uint32_t i = 0; i < devices; i++)
        fake.worker[i].sums = true;
    configure(yaml);
}

static void end(void)
{
    fake_expect_nothing_left(&fake);
    assert_null(fake.supervisor->server.totals.first);
    fake_close(&fake);
}

static int attach(const char *name)
{
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET};
    snprintf(body.name, sizeof body.name, "%s", name);
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    return fd;
}

static struct proto_attached attached(int fd)
{
    struct proto_attached told;
    memcpy(&told, fake_expect(&fake, fd, PROTO_ATTACHED), sizeof told);
    channel_close_fds(&fake.message);
    return told;
}

static struct proto_limits limits_of(int fd)
{
    fake_send(&fake, fd, PROTO_LIMITS_QUERY, NULL);
    return *(const struct proto_limits *)fake_expect(&fake, fd, PROTO_LIMITS);
}

#define AB(a, b) "rules:\n  - {match: {name: a}, " a "}\n  - {match: {name: b}, " b "}\n"

static void requests_change_places_though_both_together_would_not_fit(void **state)
{
    (void)state;
    begin(
        1,
        AB("threads: {request: 60%}, time: {request: 30%}, memory: {request: 40M}",
           "threads: {request: 40%}, time: {request: 70%}, memory: {request: 24M}") "gpus: [{gpu: "
                                                                                    "0, mode: "
                                                                                    "fair}]\n");
    int a = attach("a"), b = attach("b");
    uint32_t number = attached(a).client;
    struct proto_attached told = attached(b);
    assert_int_equal(told.grant.allowance.threads.request, 4000);
    assert_int_equal(told.grant.allowance.time.request, 7000);
    assert_int_equal(told.grant.mode, PROTO_MODE_FAIR);
    configure(AB(
        "threads: {request: 30%}, time: {request: 80%}, memory: {request: 10M}",
        "threads: {request: 70%}, time: {request: 20%}, memory: {request: 54M}") "gpus: [{gpu: 0, "
                                                                                 "mode: strict, "
                                                                                 "lease: 50ms}]\n");
    assert_int_equal(fake.worker[0].client_limits[number].allowance.threads.request, 3000);
    assert_int_equal(fake.worker[0].client_limits[number].allowance.time.request, 8000);
    assert_int_equal(fake.worker[0].schedule.mode, PROTO_MODE_STRICT);
    assert_int_equal(fake.worker[0].schedule.lease, 50000000);
    struct proto_limits limits = limits_of(b);
    assert_int_equal(limits.grant.allowance.threads.request, 7000);
    assert_int_equal(limits.grant.allowance.time.request, 2000);
    assert_int_equal(limits.grant.mode, PROTO_MODE_STRICT);
    fake_alloc(&fake, a, 10 * MIB);
    fake_alloc_refused(&fake, a, 2 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "guaranteed");
    fake_alloc(&fake, b, 54 * MIB);
    close(a);
    close(b);
    end();
}

static void told(void *context, uint32_t client, uint32_t error, const char *text)
{
    (void)client;
    if (error)
        fail_msg("%s", text);
    *(bool *)context = true;
}

/* As an administrator does by hand. */
static void set_request(uint32_t client, uint32_t request)
{
    struct allowance change = allowance_none;
    bool done = false;
    change.threads.request = request;
    assert_int_equal(
        change_set(fake.supervisor, client, &change, &(struct change_asker){"a test", told, &done}),
        0);
    FAKE_WAIT(&fake, done);
}

/* The limits of a worker and its clients, and those of a new client. */
struct picture {
    struct proto_worker_limits client_limits[FAKE_CLIENTS];
    struct proto_worker_schedule schedule;
    struct proto_limits a, b;
    uint64_t guaranteed[2];
    uint32_t fresh;
};

static struct picture picture(int a, int b)
{
    struct picture picture;
    memset(&picture, 0, sizeof picture);
    memcpy(picture.client_limits, fake.worker[0].client_limits, sizeof picture.client_limits);
    picture.schedule = fake.worker[0].schedule;
    picture.a = limits_of(a);
    picture.b = limits_of(b);
    for (unsigned i = 0; i < 2; i++)
        picture.guaranteed[i] = fake_session(&fake, i)->quotas[RESOURCE_MEMORY].guarantee;
    int fd = attach("fresh");
    picture.fresh = attached(fd).grant.allowance.threads.limit;
    uint32_t before = fake.worker[0].detached;
    close(fd);
    FAKE_WAIT(&fake, fake.worker[0].detached == before + 1);
    fake_settle(&fake);
    return picture;
}

static void a_refused_reload_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *word, *schedule;
    } files[] = {
        {"clients: {threads: {limit: 90%, request: 55%}, priority: 3}\n",
         "threads come to 11000, time to 0", NULL},
        /* The device refuses, though all clients agree. */
        {"clients: {threads: {limit: 50%}, memory: {limit: 4M}}\ngpus: [{gpu: 0, mode: turns}]\n",
         "GPU 0: no turns here", "no turns here"},
        /* In the old mode these fit. */
        {"clients: {time: {request: 60%}, threads: {request: 10%}}\ngpus: [{gpu: 0, mode: "
         "strict}]\n",
         "time to 12000", NULL},
        {"clients: {memory: {request: 33M}, threads: {limit: 20%}}\n",
         "a request of 33 MiB of device memory does not fit: 33 MiB are guaranteed to other "
         "clients, together 66 MiB, and there are 64 MiB",
         NULL},
        {"clients: {threads: {limit: 10}}\n", ":1: threads.limit", NULL},
    };
    begin(1, AB("threads: {request: 30%, limit: 60%}, memory: {request: 20M}",
                "threads: {request: 40%}, priority: 2") "gpus: [{gpu: 0, lease: 20ms}]\n");
    int a = attach("a"), b = attach("b");
    attached(a);
    uint32_t number = attached(b).client;
    set_request(number, 2500);
    struct picture before = picture(a, b);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fake.worker[0].refuse_schedule = files[i].schedule;
        refused(files[i].yaml, files[i].word);
        fake.worker[0].refuse_schedule = NULL;
        struct picture after = picture(a, b);
        assert_memory_equal(&after, &before, sizeof after);
    }
    close(a);
    close(b);
    end();
}

static void a_value_set_by_hand_stays_where_the_files_agree(void **state)
{
    (void)state;
    begin(1, "clients: {threads: {request: 10%, limit: 50%}, priority: 1}\n");
    int a = attach("a");
    uint32_t number = attached(a).client;
    set_request(number, 3000);
    configure("clients: {threads: {request: 10%, limit: 40%}, priority: 2}\n");
    assert_int_equal(limits_of(a).grant.allowance.threads.request, 3000);
    assert_int_equal(limits_of(a).grant.allowance.threads.limit, 4000);
    assert_int_equal(limits_of(a).grant.allowance.priority, 2);
    /* A limit of the file goes before. */
    configure("clients: {threads: {request: 10%, limit: 20%}, priority: 2}\n");
    assert_int_equal(limits_of(a).grant.allowance.threads.request, 2000);
    configure("clients: {threads: {request: 15%, limit: 20%}, priority: 2}\n");
    assert_int_equal(limits_of(a).grant.allowance.threads.request, 1500);
    uint32_t asked = fake.worker[0].limits;
    configure("clients: {threads: {request: 15%, limit: 20%}, priority: 2}\n");
    assert_int_equal(fake.worker[0].limits, asked);
    close(a);
    end();
}

static void a_client_that_attaches_during_a_reload_has_the_new_grant(void **state)
{
    (void)state;
    struct proto_worker_attached granted = {.multiprocessors = 64};
    struct fake_worker *worker = &fake.worker[0];
    begin(1, "clients: {threads: {limit: 50%}, memory: {limit: 8M}}\n");
    worker->automatic = false;
    int early = attach("early");
    fake_worker_expect(&fake, 0, PROTO_WORKER_ATTACH);
    struct channel_message request = worker->message;
    request.body = request.data + sizeof(struct proto_message_header);
    channel_close_fds(&worker->message);
    assert_int_equal(fake_reload_begin(
                         &fake, "clients: {threads: {limit: 20%}, memory: {limit: 4M}}\n", &reload),
                     0);
    int late = attach("late");
    for (int i = 0; i < 50; i++)
        fake_turn(&fake);
    assert_false(fake_worker_take(worker)); /* it waits for the first, and the second for it */
    fake_reply(worker, &request, PROTO_WORKER_ATTACHED, &granted, NULL, 0);
    attached(early);
    worker->automatic = true;
    FAKE_WAIT(&fake, reload.over);
    assert_int_equal(reload.error, 0);
    assert_int_equal(limits_of(early).grant.allowance.threads.limit, 2000);
    assert_int_equal(limits_of(early).grant.allowance.memory.limit, 4 * MIB);
    fake_alloc_refused(&fake, early, 6 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "limit of this client");
    struct proto_attached fresh = attached(late);
    assert_int_equal(fresh.grant.allowance.threads.limit, 2000);
    assert_int_equal(fresh.grant.allowance.memory.limit, 4 * MIB);
    close(early);
    close(late);
    end();
}

/* Of two clients the first has changed when the second is refused. */
static void a_client_that_attaches_after_a_refusal_has_the_old_grant(void **state)
{
    (void)state;
    struct proto_worker_attached granted = {.multiprocessors = 64};
    struct fake_worker *worker = &fake.worker[0];
    begin(1, "clients: {threads: {limit: 50%}}\n");
    int a = attach("a"), b = attach("b");
    attached(a);
    attached(b);
    worker->automatic = false;
    assert_int_equal(
        fake_reload_begin(&fake, "clients: {threads: {limit: 30%}, priority: 4}\n", &reload), 0);
    int late = attach("late");
    struct allowance change = allowance_none;
    struct error why;
    change.priority = 1;
    assert_int_equal(change_check(fake.supervisor, 1, &change, &why), PROTO_ERROR_NOT_READY);
    assert_int_equal(
        change_set(fake.supervisor, 1, &change, &(struct change_asker){"a test", told, NULL}),
        -EBUSY);
    struct schedule schedule = schedule_default();
    assert_int_equal(change_schedule(fake.supervisor, 0, &schedule, SCHEDULE_MODE,
                                     &(struct change_asker){"a test", told, NULL}),
                     -EBUSY);
    struct fake_reload second;
    assert_int_equal(fake_reload_begin(&fake, "", &second), -1);
    assert_non_null(strstr(second.text, "another reload is under way"));
    /* The new limit is a size of partitions that the worker did not know. */
    fake_worker_expect(&fake, 0, PROTO_WORKER_SCHEDULE);
    fake_reply(worker, &worker->message, PROTO_DONE, NULL, NULL, 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    fake_reply(worker, &worker->message, PROTO_WORKER_ATTACHED, &granted, NULL, 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    failed_send(worker->fd, worker->message.header.serial, worker->message.header.client,
                PROTO_ERROR_OUT_OF_MEMORY, "no partition");
    worker->automatic = true;
    FAKE_WAIT(&fake, reload.over);
    assert_int_equal(reload.error, PROTO_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(reload.text, "no partition"));
    assert_int_equal(attached(late).grant.allowance.threads.limit, 5000);
    assert_int_equal(limits_of(a).grant.allowance.threads.limit, 5000);
    assert_int_equal(limits_of(a).grant.allowance.priority, 0);
    assert_int_equal(limits_of(b).grant.allowance.priority, 0);
    close(a);
    close(b);
    close(late);
    end();
}

static void a_client_that_leaves_during_a_reload_stops_nothing(void **state)
{
    (void)state;
    struct fake_worker *worker = &fake.worker[0];
    begin(1, "");
    int a = attach("a"), b = attach("b");
    attached(a);
    attached(b);
    worker->automatic = false;
    assert_int_equal(fake_reload_begin(&fake,
                                       "clients: {threads: {limit: 30%}, memory: {request: 20M}}\n"
                                       "users: [{memory: {limit: 50M}}]\n",
                                       &reload),
                     0);
    close(a);
    for (int i = 0; i < 50; i++)
        fake_turn(&fake);
    worker->automatic = true;
    FAKE_WAIT(&fake, reload.over);
    assert_int_equal(reload.error, 0);
    assert_int_equal(limits_of(b).grant.allowance.threads.limit, 3000);
    close(b);
    end();
}

static void a_worker_that_dies_during_a_reload_refuses_it(void **state)
{
    (void)state;
    begin(2, "clients: {threads: {limit: 50%}}\n");
    int a = attach("a");
    attached(a);
    fake.worker[0].automatic = false;
    assert_int_equal(fake_reload_begin(&fake,
                                       "clients: {threads: {limit: 30%}}\n"
                                       "gpus: [{gpu: 0, mode: fair}, {gpu: 1, mode: fair}]\n",
                                       &reload),
                     0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_SCHEDULE);
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, reload.over);
    assert_int_not_equal(reload.error, 0);
    assert_int_equal(fake.worker[1].schedule.mode, PROTO_MODE_CONCURRENT);
    assert_int_equal(fake.supervisor->server.devices[0].schedule.mode, PROTO_MODE_CONCURRENT);
    assert_int_equal(fake.supervisor->server.config->ceilings[0].threads.limit, 5000);
    close(a);
    end();
}

static void a_server_can_stop_during_a_reload(void **state)
{
    (void)state;
    begin(1, "clients: {threads: {limit: 50%}}\n");
    int a = attach("a");
    attached(a);
    fake.worker[0].automatic = false;
    assert_int_equal(fake_reload_begin(&fake, "clients: {threads: {limit: 30%}}\n", &reload), 0);
    close(a);
    fake_close(&fake);
    assert_true(reload.over);
}

/* ---- a directory of users that answers late ---- */

static sem_t directory_asked, directory_answers;

/* In the place of the C library's: it knows "alice" alone. */
int getpwnam_r(const char *name, struct passwd *user, char *buffer, size_t bytes,
               struct passwd **found)
{
    (void)bytes;
    *found = NULL;
    if (strcmp(name, "alice") != 0)
        return 0;
    sem_post(&directory_asked);
    while (sem_wait(&directory_answers) < 0)
        ;
    *user = (struct passwd){.pw_name = strcpy(buffer, "alice"), .pw_uid = getuid()};
    *found = user;
    return 0;
}

#define ALICE "rules: [{match: {uid: alice}, threads: {limit: 20%}}]\n"

/* Begins a reload whose lookup has begun and does not end. */
static void begin_lookup(void)
{
    assert_int_equal(sem_init(&directory_asked, 0, 0), 0);
    assert_int_equal(sem_init(&directory_answers, 0, 0), 0);
    fake_reload_ask(&fake, ALICE, &reload);
    FAKE_WAIT(&fake, sem_trywait(&directory_asked) == 0);
    unlink(fake.settings.config);
}

static void clients_are_served_while_a_name_is_looked_up(void **state)
{
    (void)state;
    begin(1, "clients: {threads: {limit: 50%}}\n");
    int a = attach("a");
    uint32_t number = attached(a).client;
    begin_lookup();
    fake_alloc(&fake, a, 2 * MIB);
    int b = attach("b");
    assert_int_equal(attached(b).grant.allowance.threads.limit, 5000);
    set_request(number, 1000);
    assert_int_equal(limits_of(a).grant.allowance.threads.request, 1000);
    struct fake_reload second;
    assert_int_equal(fake_reload_begin(&fake, "", &second), -1);
    assert_non_null(strstr(second.text, "another reload is under way"));
    assert_false(reload.over);
    sem_post(&directory_answers);
    FAKE_WAIT(&fake, reload.over);
    assert_int_equal(reload.error, 0);
    assert_int_equal(limits_of(a).grant.allowance.threads.limit, 2000);
    assert_int_equal(limits_of(b).grant.allowance.threads.limit, 2000);
    assert_int_equal(limits_of(a).grant.allowance.threads.request, 1000);
    close(a);
    close(b);
    end();
}

/* The supervisor is there for as long as the thread reads. */
static void a_server_stops_when_the_lookup_is_over(void **state)
{
    (void)state;
    begin(1, "clients: {threads: {limit: 50%}}\n");
    begin_lookup();
    supervisor_stop(fake.supervisor);
    fake_settle(&fake);
    assert_false(fake.stopped);
    assert_false(reload.over);
    sem_post(&directory_answers);
    fake_close(&fake);
    assert_true(reload.over);
    assert_non_null(strstr(reload.text, "stopping"));
}

/* Of a user's total, whose worker answers late. */
static void a_reload_waits_for_a_change_that_began_while_a_name_was_looked_up(void **state)
{
    (void)state;
    begin(1, "clients: {threads: {limit: 50%}}\n");
    int a = attach("a");
    attached(a);
    begin_lookup();
    fake.worker[0].automatic = false;
    struct account_owner owner = {.id = getuid()};
    struct total_change change = {.parts = RESOURCE_BIT(RESOURCE_TIME), .limits = allowance_none};
    change.limits.time.limit = 3000;
    struct fake_reload of_total = {0};
    struct error why;
    bool over;
    assert_int_equal(owner_total_set(fake.supervisor, &owner, &change,
                                     &(struct reload_asker){"a test", fake_reloaded, &of_total},
                                     &over, &why),
                     0);
    assert_false(over);
    sem_post(&directory_answers);
    fake_settle(&fake);
    assert_false(of_total.over);
    assert_false(reload.over);
    fake.worker[0].automatic = true;
    FAKE_WAIT(&fake, reload.over);
    assert_true(of_total.over);
    assert_int_equal(of_total.error, 0);
    assert_int_equal(reload.error, 0);
    close(a);
    end();
}

/* Reads the file again, and says how many clients and settings became others. */
static void changes(const char *yaml, uint32_t clients, uint32_t settings)
{
    struct config_view view;
    configure(yaml);
    view_config(fake.supervisor, &view);
    assert_int_equal(view.changed_clients, clients);
    assert_int_equal(view.changed_settings, settings);
}

static void what_changed_is_counted(void **state)
{
    (void)state;
    const char *const fair = AB("threads: {limit: 50%}", "memory: {limit: 4M}") "gpus: [{gpu: 0, "
                                                                                "mode: fair}]\n";
    const char *const total = AB("threads: {limit: 50%}", "memory: {limit: 4M}") "users: [{memory: "
                                                                                 "{limit: 8M}}]\n";
    begin(1, "");
    int a = attach("a"), b = attach("b"), c = attach("c");
    attached(a);
    attached(b);
    attached(c);
    changes("", 0, 0);
    changes(fair, 2, 1);
    changes(fair, 0, 0);
    changes(total, 3, 1);
    changes("users: [{time: {limit: 30%}}]\ngpus: [{gpu: 0, mode: fair, lease: 20ms}]\n", 3, 2);
    refused("users: [{time: 3}]\n", "time");
    struct config_view view;
    view_config(fake.supervisor, &view);
    assert_int_equal(view.changed_settings, 2);
    close(a);
    close(b);
    close(c);
    end();
}

static void a_profile_that_has_gone_leaves_its_client_as_it_is(void **state)
{
    (void)state;
    begin(1, "profiles: {p: {threads: {limit: 30%}}}\n");
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET, .profile = "p"};
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    attached(fd);
    configure("clients: {threads: {limit: 10%}}\n");
    assert_int_equal(limits_of(fd).grant.allowance.threads.limit, 3000);
    configure("clients: {threads: {limit: 10%}}\nprofiles: {p: {threads: {limit: 20%}}}\n");
    assert_int_equal(limits_of(fd).grant.allowance.threads.limit, 1000);
    close(fd);
    end();
}

/* The source of the limit of device memory, as the refusal says it, and nothing else. */
static void expect_remedy(int fd, const char *word)
{
    static const char *const all[] = {"GPUSHARE_MEMORY_LIMIT",
                                      "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
                                      "GPUSHARE_FRACTION",
                                      "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                                      "an option of the program",
                                      ".yaml:",
                                      "gpusharectl"};
    fake_alloc_refused(&fake, fd, 64 * MIB, PROTO_ERROR_OUT_OF_MEMORY, word);
    const char *text = ((const struct proto_failed *)fake.message.body)->text;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], word) != 0 && !strstr(word, all[i]) && strstr(text, all[i]))
            fail_msg("\"%s\" names %s too", text, all[i]);
}

static int attach_with_limit(uint64_t bytes, enum proto_source source)
{
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "a"};
    int fd = fake_greet(&fake);
    body.allowance.memory.limit = bytes;
    body.sources.memory.limit = source;
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    return fd;
}

static void a_refusal_names_what_set_the_limit_that_binds(void **state)
{
    (void)state;
    static const struct {
        enum proto_source source;
        const char *word;
    } asked[] = {{PROTO_SOURCE_VARIABLE, "GPUSHARE_MEMORY_LIMIT"},
                 {PROTO_SOURCE_ALIAS, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT"},
                 {PROTO_SOURCE_NAMESAKE, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"},
                 {PROTO_SOURCE_FRACTION, "GPUSHARE_FRACTION"},
                 {PROTO_SOURCE_OPTIONS, "an option of the program"},
                 {PROTO_SOURCE_NONE, "the client"}};
    begin(1, "clients:\n  memory: {limit: 16M}\n");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int fd = attach_with_limit(8 * MIB, asked[i].source);
        attached(fd);
        expect_remedy(fd, asked[i].word);
        close(fd);
    }
    /* The file's is the stricter one here, whatever the client says. */
    int fd = attach_with_limit(32 * MIB, PROTO_SOURCE_VARIABLE);
    uint32_t number = attached(fd).client;
    expect_remedy(fd, "gpushare-fake-");
    fake_alloc_refused(&fake, fd, 64 * MIB, PROTO_ERROR_OUT_OF_MEMORY, ":2)");
    configure("rules:\n- match: {name: a}\n  memory:\n    limit: 12M\n");
    fake_alloc_refused(&fake, fd, 64 * MIB, PROTO_ERROR_OUT_OF_MEMORY, ":4)");
    struct allowance change = allowance_none;
    change.memory.limit = 10 * MIB;
    allowance_attribute(&change, (struct allowance_source){ALLOWANCE_BY_ADMIN, 0});
    assert_int_equal(
        change_set(fake.supervisor, number, &change, &(struct change_asker){"a test", NULL, NULL}),
        1);
    expect_remedy(fd, "gpusharectl");
    close(fd);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_change_places_though_both_together_would_not_fit),
        cmocka_unit_test(a_refused_reload_changes_nothing),
        cmocka_unit_test(a_value_set_by_hand_stays_where_the_files_agree),
        cmocka_unit_test(a_refusal_names_what_set_the_limit_that_binds),
        cmocka_unit_test(a_client_that_attaches_during_a_reload_has_the_new_grant),
        cmocka_unit_test(a_client_that_attaches_after_a_refusal_has_the_old_grant),
        cmocka_unit_test(a_client_that_leaves_during_a_reload_stops_nothing),
        cmocka_unit_test(a_worker_that_dies_during_a_reload_refuses_it),
        cmocka_unit_test(a_server_can_stop_during_a_reload),
        cmocka_unit_test(clients_are_served_while_a_name_is_looked_up),
        cmocka_unit_test(a_server_stops_when_the_lookup_is_over),
        cmocka_unit_test(a_reload_waits_for_a_change_that_began_while_a_name_was_looked_up),
        cmocka_unit_test(what_changed_is_counted),
        cmocka_unit_test(a_profile_that_has_gone_leaves_its_client_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
