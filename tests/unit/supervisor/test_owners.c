/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A client is told which limits hold for it beside its own. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;
static struct fake_reload reload;

static int begin(const char *yaml, const char *profile)
{
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "a"};
    snprintf(body.profile, sizeof body.profile, "%s", profile);
    fake_open(&fake, 1, 64 * MIB);
    if (fake_configure(&fake, yaml, &reload))
        fail_msg("%s", reload.text);
    int fd = fake_greet(&fake);
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    return fd;
}

static void end(int fd)
{
    close(fd);
    fake_settle(&fake);
    fake_close(&fake);
}

static struct proto_owners owners(int fd)
{
    fake_send(&fake, fd, PROTO_OWNERS_QUERY, NULL);
    return *(const struct proto_owners *)fake_expect(&fake, fd, PROTO_OWNERS);
}

static const char *text(const char *kind, unsigned id)
{
    static char name[64];
    snprintf(name, sizeof name, "%s %u", kind, id);
    return name;
}

static void without_a_configuration_there_is_its_user_alone(void **state)
{
    (void)state;
    int fd = begin("", "");
    struct proto_owners told = owners(fd);
    assert_string_equal(told.profiles, "");
    assert_int_equal(told.count, 1);
    assert_int_equal(told.more, 0);
    assert_string_equal(told.owners[0].name, text("user", getuid()));
    assert_int_equal(told.owners[0].scheduled, 1);
    assert_int_equal(told.owners[0].time_limit, ALLOWANCE_WHOLE);
    assert_int_equal(told.owners[0].memory_limit, PROTO_UNSET);
    end(fd);
}

static void profiles_of_rules_and_its_own_are_named_once(void **state)
{
    (void)state;
    static const char yaml[] = "profiles: {one: {}, two: {}, three: {}, four: {}}\n"
                               "rules:\n"
                               "  - {match: {name: a}, profile: two}\n"
                               "  - {match: {name: b}, profile: three}\n"
                               "  - {profile: two}\n"
                               "  - {profile: one}\n";
    int fd = begin(yaml, "four");
    assert_string_equal(owners(fd).profiles, "two, one, four");
    end(fd);
    fd = begin(yaml, "one");
    assert_string_equal(owners(fd).profiles, "two, one");
    end(fd);
}

static void an_owner_with_an_account_and_totals_is_one(void **state)
{
    (void)state;
    int fd = begin("users: [{time: {request: 25%, limit: 50%}, memory: {limit: 32M}}]\n"
                   "groups: [{threads: {limit: 75%}, host_memory: {limit: 8M}}]\n",
                   "");
    fake_alloc(&fake, fd, 4 * MIB);
    struct proto_owners told = owners(fd);
    const struct proto_owner *user = &told.owners[0], *group = &told.owners[1];
    assert_true(told.count >= 2);
    assert_string_equal(user->name, text("user", getuid()));
    assert_int_equal(user->scheduled, 1);
    assert_int_equal(user->time_request, 2500);
    assert_int_equal(user->time_limit, 5000);
    assert_int_equal(user->threads_limit, ALLOWANCE_WHOLE);
    assert_int_equal(user->memory_limit, 32 * MIB);
    assert_int_equal(user->memory_used, 4 * MIB);
    assert_int_equal(user->host_memory_limit, PROTO_UNSET);
    assert_ptr_equal(strstr(group->name, "group "), group->name);
    assert_int_equal(group->scheduled, 0);
    assert_int_equal(group->threads_limit, 7500);
    assert_int_equal(group->memory_limit, PROTO_UNSET);
    assert_int_equal(group->host_memory_limit, 8 * MIB);
    end(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_configuration_there_is_its_user_alone),
        cmocka_unit_test(profiles_of_rules_and_its_own_are_named_once),
        cmocka_unit_test(an_owner_with_an_account_and_totals_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
