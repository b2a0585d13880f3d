/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* In which accounts a client counts, and what workers are told of them. */
#include "tests/unit/supervisor/fake.h"

#include "server/supervisor/account/client_accounts.h"
#include "server/supervisor/config/config.h"

#define USER(uid)  ((UINT64_C(1) << 32) + (uid))
#define GROUP(gid) ((UINT64_C(2) << 32) + (gid))

static const struct total_overrides no_overrides;
static const struct hash_key key = {.point = 12345, .factor = 678};
static const uint32_t gids[] = {100, 27, 44};
static struct client_accounts accounts;

static struct config_who somebody(uint32_t uid)
{
    return (struct config_who){.identified = true,
                               .uid = uid,
                               .gids = gids,
                               .gid_count = 3,
                               .cgroup = "/user.slice/user-7.slice/session-2.scope",
                               .name = "job",
                               .profile = ""};
}

static unsigned choose_with(const struct total_overrides *overrides, const char *yaml,
                            const struct config_who *who)
{
    struct config *config;
    struct error why;
    if (config_parse(&config, "f.yaml", yaml, strlen(yaml), &why))
        fail_msg("%s", why.text);
    unsigned left_out = client_accounts_choose(&accounts, overrides, config, who, 9, &key);
    config_free(config);
    return left_out;
}

/* Chooses under this text. Returns how many accounts were left out. */
static unsigned choose(const char *yaml, const struct config_who *who)
{
    return choose_with(&no_overrides, yaml, who);
}

static void choose_refused(const char *yaml, const char *word)
{
    struct config *config;
    struct error why;
    assert_int_not_equal(config_parse(&config, "f.yaml", yaml, strlen(yaml), &why), 0);
    if (!strstr(why.text, word))
        fail_msg("%s", why.text);
}

/* ---- choosing ---- */

static void expect_unbound(const struct proto_worker_account *account)
{
    assert_int_equal(account->time_request, 0);
    assert_int_equal(account->time_limit, 10000);
    assert_int_equal(account->threads_request, 0);
    assert_int_equal(account->threads_limit, 10000);
}

static void a_user_of_whom_nothing_is_said_is_an_account_without_bounds(void **state)
{
    (void)state;
    struct config_who who = somebody(7);
    choose("users:\n  - {uid: 8, time: {limit: 10%}}\n  - {uid: 7, memory: {limit: 1G}}\n", &who);
    assert_int_equal(accounts.count, 1);
    assert_int_equal(accounts.of[0].account, USER(7));
    expect_unbound(&accounts.of[0]);
}

/* Behind the file's entries, whenever they were set: the primary group, then by number. */
static void groups_that_an_administrator_alone_has_set_come_last_and_in_order(void **state)
{
    (void)state;
    static const uint32_t set[] = {44, 100};
    struct total_overrides overrides = {0}, more;
    struct allowance limits = allowance_none;
    struct config_who who = somebody(7);
    limits.time.limit = 5000;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        const struct account_owner owner = {.kind = TOTAL_GROUP, .id = set[i]};
        assert_int_equal(total_override_with(&more, &overrides, NULL, &owner,
                                             RESOURCE_BIT(RESOURCE_TIME), &limits),
                         0);
        total_override_free(&overrides);
        overrides = more;
    }
    choose_with(&overrides, "groups:\n  - {gid: 27, time: {limit: 60%}}\n", &who);
    assert_int_equal(accounts.count, 3);
    assert_int_equal(accounts.of[0].account, GROUP(27));
    assert_int_equal(accounts.of[1].account, GROUP(100));
    assert_int_equal(accounts.of[2].account, GROUP(44));
    total_override_free(&overrides);
}

/* Sets the limit of time of a control group's clients. */
static void override_cgroup(struct total_overrides *overrides, const char *path, uint32_t limit)
{
    const struct account_owner owner = {.kind = TOTAL_CGROUP, .cgroup = path};
    struct allowance limits = allowance_none;
    struct total_overrides more;
    limits.time.limit = limit;
    assert_int_equal(
        total_override_with(&more, overrides, NULL, &owner, RESOURCE_BIT(RESOURCE_TIME), &limits),
        0);
    total_override_free(overrides);
    *overrides = more;
}

/* Behind the file's entries, whenever they were set: the longest path first. */
static void control_groups_that_an_administrator_alone_has_set_come_last_and_in_order(void **state)
{
    (void)state;
    static const char *const file = "cgroups:\n  - {cgroup: /user.slice/*, time: {limit: 60%}}\n";
    struct total_overrides overrides = {0};
    struct config_who who = somebody(7);
    override_cgroup(&overrides, "/", 9000);
    override_cgroup(&overrides, "/user.slice/user-7.slice/session-2.scope", 8000);
    override_cgroup(&overrides, "/user.slice/user-7", 100);
    override_cgroup(&overrides, "/user.slice", 7000);
    choose_with(&overrides, file, &who);
    static const uint32_t limits[] = {6000, 8000, 7000, 9000};
    assert_int_equal(accounts.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(accounts.of[i].time_limit, limits[i]);
    assert_string_equal(accounts.of[0].name, "cgroup /user.slice/user-7.slice");
    assert_string_equal(accounts.of[3].name, "cgroup /");
    /* What was set before the file said anything of it does not hold. */
    uint64_t number = accounts.of[0].account;
    total_override_free(&overrides);
    override_cgroup(&overrides, "/user.slice/user-7.slice", 4000);
    choose_with(&overrides, file, &who);
    assert_int_equal(accounts.of[0].time_limit, 6000);
    assert_int_equal(accounts.of[0].account, number);
    choose_with(&overrides, "{}\n", &who);
    assert_int_equal(accounts.of[0].time_limit, 4000);
    assert_int_equal(accounts.of[0].account, number);
    /* Somebody whose path is not known is bound by all of them. */
    who.cgroup = NULL;
    override_cgroup(&overrides, "/elsewhere", 300);
    choose_with(&overrides, "{}\n", &who);
    assert_int_equal(accounts.of[0].time_limit, 300);
    total_override_free(&overrides);
}

static void the_first_of_cgroups_users_and_groups_schedules_and_the_others_cap(void **state)
{
    (void)state;
    static const char *const groups = "groups:\n  - {gid: 44, time: {limit: 60%}}\n"
                                      "  - {gid: [27, 44], time: {request: 10%, limit: 70%}}\n";
    static const char *const users = "users:\n  - {uid: 1-9, time: {request: 20%, limit: 50%}, "
                                     "threads: {request: 5%, limit: 25%}}\n";
    static const char *const cgroups = "cgroups:\n  - {cgroup: /system.slice, time: {limit: 1%}}\n"
                                       "  - {cgroup: /user.slice/*, time: {request: 30%}}\n"
                                       "  - {cgroup: /user.slice, time: {limit: 80%}}\n";
    struct config_who who = somebody(7);
    char text[1000];
    choose(groups, &who);
    assert_int_equal(accounts.count, 2);
    assert_int_equal(accounts.of[0].account, GROUP(44));
    assert_int_equal(accounts.of[0].time_limit, 6000);
    assert_int_equal(accounts.of[0].time_request, 1000);
    assert_int_equal(accounts.of[1].account, GROUP(27));
    assert_int_equal(accounts.of[1].time_limit, 7000);

    snprintf(text, sizeof text, "%s%s", groups, users);
    choose(text, &who);
    assert_int_equal(accounts.count, 3);
    assert_int_equal(accounts.of[0].account, USER(7));
    assert_int_equal(accounts.of[0].time_request, 2000);
    assert_int_equal(accounts.of[0].threads_request, 500);
    assert_int_equal(accounts.of[0].threads_limit, 2500);
    assert_string_equal(accounts.of[0].name, "user 7");

    snprintf(text, sizeof text, "%s%s%s", groups, users, cgroups);
    choose(text, &who);
    assert_int_equal(accounts.count, 5);
    assert_string_equal(accounts.of[0].name, "cgroup /user.slice/user-7.slice");
    assert_int_equal(accounts.of[0].time_request, 3000);
    assert_string_equal(accounts.of[1].name, "cgroup /user.slice");
    assert_int_equal(accounts.of[1].time_limit, 8000);
    assert_int_equal(accounts.of[2].account, USER(7));
    assert_int_equal(accounts.of[3].account, GROUP(44));
    assert_int_equal(accounts.of[4].account, GROUP(27));
}

static void each_path_that_a_pattern_fits_is_an_account_with_one_number(void **state)
{
    (void)state;
    static const char *const yaml = "cgroups:\n  - {cgroup: /user.slice/*, time: {request: 30%}}\n";
    struct config_who who = somebody(7);
    choose(yaml, &who);
    const uint64_t first = accounts.of[0].account;
    who.cgroup = "/user.slice/user-7.slice/session-3.scope";
    choose(yaml, &who);
    assert_int_equal(accounts.of[0].account, first);
    who.cgroup = "/user.slice/user-8.slice";
    choose(yaml, &who);
    assert_int_not_equal(accounts.of[0].account, first);
    who.cgroup = "/user.slice";
    choose(yaml, &who);
    assert_int_equal(accounts.of[0].account, USER(7));
}

static void each_uid_of_an_entry_has_an_account_of_its_own(void **state)
{
    (void)state;
    static const char *const yaml = "users:\n  - {uid: [5, 100-200], time: {request: 10%}}\n";
    struct config_who who = somebody(5);
    choose(yaml, &who);
    assert_int_equal(accounts.of[0].account, USER(5));
    who.uid = 150;
    choose(yaml, &who);
    assert_int_equal(accounts.of[0].account, USER(150));
    assert_int_equal(accounts.of[0].time_request, 1000);
    who.uid = 201;
    choose(yaml, &who);
    assert_int_equal(accounts.of[0].time_request, 0);
}

static void a_rule_makes_each_client_an_account_that_its_users_limit_caps(void **state)
{
    (void)state;
    struct config_who who = somebody(7);
    choose("rules:\n  - {match: {uid: 7}, per: client}\n"
           "users:\n  - {uid: 7, time: {request: 20%, limit: 50%}}\n",
           &who);
    assert_int_equal(accounts.count, 2);
    assert_int_equal(accounts.of[0].account, (UINT64_C(4) << 32) + 9);
    expect_unbound(&accounts.of[0]);
    assert_int_equal(accounts.of[1].account, USER(7));
    assert_int_equal(accounts.of[1].time_limit, 5000);
}

static void the_tightest_of_more_than_eight_accounts_hold(void **state)
{
    (void)state;
    uint32_t many[20];
    uint64_t numbers[PROTO_CLIENT_ACCOUNTS];
    char yaml[2000] = "groups:\n";
    for (uint32_t i = 0; i < 20; i++) {
        size_t used = strlen(yaml);
        many[i] = 500 + i;
        /* The tightest stand last. */
        snprintf(yaml + used, sizeof yaml - used, "  - {gid: %u, time: {limit: %u%%}}\n", many[i],
                 90 - i);
    }
    struct config_who who = somebody(7);
    who.gids = many;
    who.gid_count = 20;
    assert_int_equal(choose(yaml, &who), 12);
    assert_int_equal(accounts.count, PROTO_CLIENT_ACCOUNTS);
    assert_int_equal(accounts.of[0].account, GROUP(500));
    uint32_t sum = 0;
    for (uint32_t i = 1; i < accounts.count; i++) {
        assert_in_range(accounts.of[i].account, GROUP(513), GROUP(519));
        sum += (uint32_t)accounts.of[i].account;
    }
    assert_int_equal(sum, 7 * 516);
    client_accounts_numbers(&accounts, numbers);
    assert_int_equal(numbers[7], accounts.of[7].account);
}

static void who_can_not_be_seen_has_all_limits_and_no_request(void **state)
{
    (void)state;
    struct config_who who = {.identified = false, .name = "", .profile = ""};
    choose("users:\n  - {uid: 7, time: {request: 20%, limit: 50%}}\n"
           "  - {uid: 8, time: {limit: 40%}}\n"
           "cgroups:\n  - {cgroup: /a, time: {request: 5%, limit: 30%}}\n",
           &who);
    assert_int_equal(accounts.count, 2);
    assert_int_equal(accounts.of[0].time_request, 0);
    assert_int_equal(accounts.of[0].time_limit, 3000);
    assert_int_equal(accounts.of[1].account, USER(UINT32_MAX));
    assert_int_equal(accounts.of[1].time_limit, 4000);
}

static void mistakes_in_entries_are_refused(void **state)
{
    (void)state;
    choose_refused("cgroups:\n  - {time: {limit: 10%}}\n", "needs the key cgroup");
    choose_refused("cgroups:\n  - {cgroup: a, time: {limit: 10%}}\n", "cgroup");
    choose_refused("cgroups:\n  - {cgroup: /a, memory: {limit: 1G}}\n", "memory");
    choose_refused("rules:\n  - {match: {uid: 7}, per: user}\n", "per must be client");
    choose_refused("users:\n  - {uid: 7, time: {request: 60%, limit: 50%}}\n", "exceeds the limit");
    choose_refused("users:\n  - {uid: 7, memory: {request: 1G}}\n", "request is not allowed");
}

/* ---- workers ---- */

static struct fake fake;
static struct fake_reload reload, set_over;

static void configure(const char *format)
{
    char yaml[500];
    snprintf(yaml, sizeof yaml, format, getuid());
    if (fake_configure(&fake, yaml, &reload))
        fail_msg("%s", reload.text);
}

static int attached(void)
{
    struct proto_attach body = {.device = 0, .allowance = PROTO_ALLOWANCE_UNSET};
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    return fd;
}

static const struct proto_worker_limits *limits_of_first(void)
{
    return &fake.worker[0].client_limits[fake_first(&fake)->number % FAKE_CLIENTS];
}

/* request, limit: PROTO_UNSET for what does not change. */
static uint32_t set_time_of(const struct account_owner *owner, uint64_t request, uint64_t limit,
                            struct error *why)
{
    struct total_change change = {.limits = allowance_none};
    bool over;
    change.limits.time = (struct allowance_range){request, limit};
    change.parts = limit != PROTO_UNSET ? RESOURCE_BIT(RESOURCE_TIME) : 0;
    change.request_parts = request != PROTO_UNSET ? RESOURCE_BIT(RESOURCE_TIME) : 0;
    set_over = (struct fake_reload){0};
    uint32_t error =
        owner_total_set(fake.supervisor, owner, &change,
                        &(struct reload_asker){"a test", fake_reloaded, &set_over}, &over, why);
    if (error || over)
        return error;
    FAKE_WAIT(&fake, set_over.over);
    return set_over.error ? error_set(why, set_over.error, "%s", set_over.text) : 0;
}

static uint32_t set_time(uint64_t request, uint64_t limit, struct error *why)
{
    const struct account_owner owner = {.id = getuid()};
    return set_time_of(&owner, request, limit, why);
}

static void shows_of(const struct account_owner *owner, uint64_t request, uint64_t limit,
                     uint32_t clients, bool set)
{
    struct total_view view;
    owner_total_view(fake.supervisor, owner, RESOURCE_TIME, 0, &view);
    assert_int_equal(view.request, request);
    assert_int_equal(view.limit, limit);
    assert_int_equal(view.clients, clients);
    assert_int_equal(view.set, set);
}

static void shows(uint64_t request, uint64_t limit, uint32_t clients, bool set)
{
    const struct account_owner owner = {.id = getuid()};
    shows_of(&owner, request, limit, clients, set);
}

static void end(int fd)
{
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_worker_knows_an_account_before_its_client(void **state)
{
    (void)state;
    fake_open(&fake, 1, 64 * MIB);
    configure("users:\n  - {uid: %u, time: {request: 50%%, limit: 80%%}}\n");
    int fd = attached();
    assert_int_equal(fake.worker[0].accounts, 1);
    assert_int_equal(fake.worker[0].account.account, USER(getuid()));
    assert_int_equal(fake.worker[0].account.time_request, 5000);
    assert_int_equal(fake.worker[0].account.time_limit, 8000);
    assert_int_equal(limits_of_first()->accounts[0], USER(getuid()));
    assert_int_equal(limits_of_first()->accounts[1], 0);
    end(fd);
}

/* The client that leaves counts in the account still, so the worker has not forgotten it. */
static void the_next_client_has_nothing_of_what_was_said_of_the_last_one(void **state)
{
    (void)state;
    fake_open(&fake, 1, 64 * MIB);
    configure("users:\n  - {uid: %u, time: {request: 50%%, limit: 80%%}}\n");
    int fd = attached();
    fake.worker[0].hold_detach = true;
    close(fd);
    FAKE_WAIT(&fake, fake.worker[0].held_count == 1);
    configure("{}\n");
    fd = attached();
    assert_int_equal(fake.worker[0].account.account, USER(getuid()));
    assert_int_equal(fake.worker[0].account.time_request, 0);
    assert_int_equal(fake.worker[0].account.time_limit, 10000);
    fake_release(&fake.worker[0]);
    end(fd);
}

static void a_request_that_does_not_fit_leaves_the_limit_of_a_new_client(void **state)
{
    (void)state;
    fake_open(&fake, 1, 64 * MIB);
    configure("users:\n  - {uid: %u, time: {request: 50%%, limit: 80%%}}\n");
    fake.worker[0].refuse_requests = "too much";
    int fd = attached();
    FAKE_WAIT(&fake, fake.worker[0].accounts == 1);
    assert_int_equal(fake.worker[0].account.time_request, 0);
    assert_int_equal(fake.worker[0].account.time_limit, 8000);
    end(fd);
}

static void a_share_is_set_for_running_clients_and_goes_back(void **state)
{
    (void)state;
    struct error why;
    fake_open(&fake, 1, 64 * MIB);
    configure("users:\n  - {uid: %u, time: {limit: 80%%}}\n");
    int fd = attached();
    shows(PROTO_UNSET, 8000, 1, false);
    assert_int_equal(set_time(5000, PROTO_UNSET, &why), 0);
    assert_int_equal(fake.worker[0].account.time_request, 5000);
    assert_int_equal(fake.worker[0].account.time_limit, 8000);
    shows(5000, 8000, 1, true);
    assert_int_equal(set_time(PROTO_UNSET, 6000, &why), 0);
    shows(5000, 6000, 1, true);
    assert_int_equal(set_time(PROTO_UNSET, 4000, &why), PROTO_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why.text, "would exceed the limit"));
    shows(5000, 6000, 1, true);
    /* The file says something else, so it holds again. */
    configure("users:\n  - {uid: %u, time: {limit: 70%%}}\n");
    shows(PROTO_UNSET, 7000, 1, false);
    assert_int_equal(fake.worker[0].account.time_request, 0);
    assert_int_equal(fake.worker[0].account.time_limit, 7000);
    end(fd);
}

/* Every control group is in this one. */
static void a_control_groups_share_is_set_for_running_clients_and_goes_back(void **state)
{
    (void)state;
    char path[] = "/"; /* which the caller need not keep */
    const struct account_owner all = {.kind = TOTAL_CGROUP, .cgroup = "/"};
    const struct account_owner given = {.kind = TOTAL_CGROUP, .cgroup = path};
    struct error why;
    fake_open(&fake, 1, 64 * MIB);
    configure("users:\n  - {uid: %u, time: {limit: 80%%}}\n");
    int fd = attached();
    if (!fake_first(&fake)->identity.cgroup) {
        end(fd);
        skip();
    }
    shows_of(&all, PROTO_UNSET, PROTO_UNSET, 0, false);
    fake.worker[0].automatic = false;
    struct total_change change = {.parts = RESOURCE_BIT(RESOURCE_TIME), .limits = allowance_none};
    bool over;
    change.limits.time.limit = 6000;
    set_over = (struct fake_reload){0};
    assert_int_equal(owner_total_set(fake.supervisor, &given, &change,
                                     &(struct reload_asker){"a test", fake_reloaded, &set_over},
                                     &over, &why),
                     0);
    assert_false(over);
    path[0] = 'x';
    fake.worker[0].automatic = true;
    FAKE_WAIT(&fake, set_over.over);
    assert_int_equal(set_over.error, 0);
    shows_of(&all, PROTO_UNSET, 6000, 1, true);
    const struct client_accounts *accounts_now = &fake_first(&fake)->counts_in;
    assert_int_equal(accounts_now->count, 2);
    assert_string_equal(accounts_now->of[0].name, "cgroup /");
    assert_int_equal(accounts_now->of[0].time_limit, 6000);
    assert_int_equal(limits_of_first()->accounts[0], accounts_now->of[0].account);
    assert_int_equal(limits_of_first()->accounts[1], USER(getuid()));
    assert_int_equal(set_time_of(&all, 5000, PROTO_UNSET, &why), 0);
    shows_of(&all, 5000, 6000, 1, true);
    /* The file says something of it now. */
    configure("cgroups:\n  - {cgroup: /, time: {limit: 70%%}}\n"
              "users:\n  - {uid: %u, time: {limit: 80%%}}\n");
    shows_of(&all, PROTO_UNSET, 7000, 1, false);
    assert_int_equal(fake_first(&fake)->counts_in.of[0].time_request, 0);
    end(fd);
}

static void a_refused_share_changes_nothing(void **state)
{
    (void)state;
    struct error why;
    fake_open(&fake, 1, 64 * MIB);
    configure("users:\n  - {uid: %u, time: {limit: 80%%}}\n");
    int fd = attached();
    fake.worker[0].refuse_requests = "the sum is 120 %";
    assert_int_equal(set_time(7000, PROTO_UNSET, &why), PROTO_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why.text, "the sum is 120 %"));
    shows(PROTO_UNSET, 8000, 1, false);
    assert_int_equal(fake_first(&fake)->counts_in.of[0].time_request, 0);
    end(fd);
}

static void a_new_file_moves_a_running_client_to_another_account(void **state)
{
    (void)state;
    fake_open(&fake, 1, 64 * MIB);
    int fd = attached();
    assert_int_equal(limits_of_first()->accounts[0], USER(getuid()));
    configure("rules:\n  - {match: {uid: %1$u}, per: client}\n"
              "users:\n  - {uid: %1$u, time: {limit: 80%%}}\n");
    assert_int_equal(limits_of_first()->accounts[0],
                     (UINT64_C(4) << 32) + fake_first(&fake)->number);
    assert_int_equal(limits_of_first()->accounts[1], USER(getuid()));
    assert_int_equal(fake.worker[0].account.time_limit, 8000);
    configure("");
    assert_int_equal(limits_of_first()->accounts[0], USER(getuid()));
    assert_int_equal(limits_of_first()->accounts[1], 0);
    end(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_of_whom_nothing_is_said_is_an_account_without_bounds),
        cmocka_unit_test(groups_that_an_administrator_alone_has_set_come_last_and_in_order),
        cmocka_unit_test(control_groups_that_an_administrator_alone_has_set_come_last_and_in_order),
        cmocka_unit_test(the_first_of_cgroups_users_and_groups_schedules_and_the_others_cap),
        cmocka_unit_test(each_path_that_a_pattern_fits_is_an_account_with_one_number),
        cmocka_unit_test(each_uid_of_an_entry_has_an_account_of_its_own),
        cmocka_unit_test(a_rule_makes_each_client_an_account_that_its_users_limit_caps),
        cmocka_unit_test(the_tightest_of_more_than_eight_accounts_hold),
        cmocka_unit_test(who_can_not_be_seen_has_all_limits_and_no_request),
        cmocka_unit_test(mistakes_in_entries_are_refused),
        cmocka_unit_test(a_worker_knows_an_account_before_its_client),
        cmocka_unit_test(the_next_client_has_nothing_of_what_was_said_of_the_last_one),
        cmocka_unit_test(a_request_that_does_not_fit_leaves_the_limit_of_a_new_client),
        cmocka_unit_test(a_share_is_set_for_running_clients_and_goes_back),
        cmocka_unit_test(a_control_groups_share_is_set_for_running_clients_and_goes_back),
        cmocka_unit_test(a_refused_share_changes_nothing),
        cmocka_unit_test(a_new_file_moves_a_running_client_to_another_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
