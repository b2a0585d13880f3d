/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* rules: the strictest of all that fit a client. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server/supervisor/config/rules.h"
#include "tests/unit/supervisor/accepted_config.h"

static const char rules_text[] = "clients:\n"
                                 "  threads: {limit: 80%}\n"
                                 "gpus:\n"
                                 "  - {gpu: 1, memory: {limit: 3G}}\n"
                                 "rules:\n"
                                 "  - match: {uid: [5, 1000-1999]}\n"
                                 "    except: {gid: 4000}\n"
                                 "    threads: {limit: 40%}\n"
                                 "  - match: {cgroup: /batch.slice}\n"
                                 "    profile: low\n"
                                 "  - match: {name: 'nb-*', uid: 1001}\n"
                                 "    memory: {limit: 0.5}\n"
                                 "    host_memory: {limit: 1M}\n"
                                 "profiles:\n"
                                 "  low: {threads: {limit: 10%}, priority: 7}\n"
                                 "  quarter: {replicas: 4}\n"
                                 "  third: {fraction: 33.33%}\n";

static struct allowance chosen(const struct config_who *who, uint32_t device)
{
    struct config *config = accepted_config(rules_text);
    struct allowance limits;
    assert_int_equal(config->time_line, 17);
    assert_int_equal(config_rules_choose(config, device, who, &limits), 0);
    config_free(config);
    return limits;
}

static struct config_who somebody(uint32_t uid)
{
    static const uint32_t gids[] = {100, 200};
    return (struct config_who){.identified = true,
                               .uid = uid,
                               .gids = gids,
                               .gid_count = 2,
                               .cgroup = "/user.slice/user-1000.slice/session-1.scope",
                               .name = "program",
                               .profile = ""};
}

static void rules_choose_by_identity(void **state)
{
    (void)state;
    struct config_who who = somebody(0);
    assert_int_equal(chosen(&who, 0).threads.limit, 8000);
    assert_true(chosen(&who, 0).memory.limit == PROTO_UNSET);
    assert_int_equal(chosen(&who, 1).memory.limit, UINT64_C(3) << 30);
    static const struct {
        uint32_t uid, threads;
    } users[] = {{4, 8000},    {5, 4000},    {6, 8000},   {999, 8000},
                 {1000, 4000}, {1999, 4000}, {2000, 8000}};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        who = somebody(users[i].uid);
        assert_int_equal(chosen(&who, 0).threads.limit, users[i].threads);
    }
    /* A member of the group that is excepted, as its second group. */
    static const uint32_t gids[] = {100, 4000};
    who = somebody(1000);
    who.gids = gids;
    assert_int_equal(chosen(&who, 0).threads.limit, 8000);
}

static void rules_choose_by_cgroup_and_name(void **state)
{
    (void)state;
    struct config_who who = somebody(0);
    who.cgroup = "/batch.slice/job.service";
    assert_int_equal(chosen(&who, 0).threads.limit, 1000);
    assert_int_equal(chosen(&who, 0).priority, 7);
    who.cgroup = "/batch.slice2";
    assert_int_equal(chosen(&who, 0).threads.limit, 8000);
    /* A rule fits who fits all of it. */
    who = somebody(1001);
    who.name = "nb-1";
    assert_int_equal(chosen(&who, 0).part[RESOURCE_MEMORY].limit, 5000);
    assert_int_equal(chosen(&who, 0).host_memory.limit, 1 << 20);
    assert_int_equal(chosen(&who, 0).threads.limit, 4000);
    who.uid = 1002;
    assert_true(chosen(&who, 0).part[RESOURCE_MEMORY].limit == ALLOWANCE_UNSET);
    who.uid = 1001;
    who.name = "nb";
    assert_true(chosen(&who, 0).part[RESOURCE_MEMORY].limit == ALLOWANCE_UNSET);
}

static void profiles_asked_for_tighten_too(void **state)
{
    (void)state;
    struct config_who who = somebody(1000);
    who.profile = "quarter";
    assert_int_equal(chosen(&who, 0).threads.limit, 2500);
    assert_int_equal(chosen(&who, 0).part[RESOURCE_MEMORY].limit, 2500);
    /* The rule's own 40 % is stricter than none. */
    who.profile = "third";
    assert_int_equal(chosen(&who, 0).threads.limit, 4000);
    assert_int_equal(chosen(&who, 0).part[RESOURCE_MEMORY].limit, 3333);
    struct config *config = accepted_config(rules_text);
    struct allowance limits;
    who.profile = "lo";
    assert_int_equal(config_rules_choose(config, 0, &who, &limits), -ENOENT);
    config_free(config);
}

/* Of three rules that fit, each is the strictest in one respect, wherever it stands. */
static void the_strictest_of_rules_holds_in_any_order(void **state)
{
    (void)state;
    static const char *const rules[3] = {
        "  - {threads: {limit: 10%}, memory: {limit: 3G}, host_memory: {limit: 3M}, priority: 1}\n",
        "  - {threads: {limit: 30%}, memory: {limit: 1G}, host_memory: {limit: 2M}, priority: 9}\n",
        "  - {threads: {limit: 20%}, memory: {limit: 2G}, host_memory: {limit: 1M}, priority: 5}\n",
    };
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        const int *order = orders[i];
        char text[1000];
        struct config_who who = somebody(1);
        struct allowance limits;
        snprintf(text, sizeof text, "rules:\n%s%s%s", rules[order[0]], rules[order[1]],
                 rules[order[2]]);
        struct config *config = accepted_config(text);
        assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
        assert_int_equal(limits.threads.limit, 1000);
        assert_int_equal(limits.memory.limit, UINT64_C(1) << 30);
        assert_int_equal(limits.host_memory.limit, 1 << 20);
        assert_int_equal(limits.priority, 9);
        config_free(config);
    }
}

/* Every key in every block that takes it, and nothing else with it. */
static void every_key_arrives(void **state)
{
    (void)state;
#define AT(field, value)                                                                           \
    {                                                                                              \
        offsetof(struct allowance, field), sizeof(((struct allowance *)0)->field), value           \
    }
    static const struct {
        const char *text;
        struct {
            size_t at, bytes;
            uint64_t value;
        } set[2];
    } keys[] = {
        {"threads: {limit: 12.5%}", {AT(threads.limit, 1250)}},
        {"threads: {request: 12.5%}", {AT(threads.request, 1250)}},
        {"threads: {request: 0}", {AT(threads.request, 0)}},
        {"threads: {request: 0.1, limit: 0.2}",
         {AT(threads.request, 1000), AT(threads.limit, 2000)}},
        {"time: {limit: 30%}", {AT(time.limit, 3000)}},
        {"time: {request: 30%}", {AT(time.request, 3000)}},
        {"time: {request: 0%}", {AT(time.request, 0)}},
        {"time: {}", {{0}}},
        {"memory: {limit: 3M}", {AT(memory.limit, 3 << 20)}},
        {"memory: {limit: 3%}", {AT(part[RESOURCE_MEMORY].limit, 300)}},
        {"memory: {request: 3M}", {AT(memory.request, 3 << 20)}},
        {"memory: {request: 0.03}", {AT(part[RESOURCE_MEMORY].request, 300)}},
        {"memory: {request: 0}", {AT(memory.request, 0)}},
        {"host_memory: {limit: 1G}", {AT(host_memory.limit, 1 << 30)}},
        {"host_memory: {request: 1G}", {AT(host_memory.request, 1 << 30)}},
        {"host_memory: {request: 0}", {AT(host_memory.request, 0)}},
        {"fraction: 0.25", {AT(part[RESOURCE_MEMORY].limit, 2500), AT(time.request, 2500)}},
        {"replicas: 7", {AT(part[RESOURCE_MEMORY].limit, 1428), AT(threads.limit, 1428)}},
        {"priority: 9", {AT(priority, 9)}},
    };
#undef AT
    static const char *const blocks[] = {"clients: {%s}\n", "gpus: [{gpu: 0, %s}]\n",
                                         "rules: [{%s}]\n", "profiles: {p: {%s}}\n"};
    struct config_who who = {.identified = true, .cgroup = "/", .name = "", .profile = "p"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        for (size_t b = 0; b < 4; b++) {
            char text[128];
            struct allowance limits;
            snprintf(text, sizeof text, blocks[b], keys[i].text);
            struct config *config = accepted_config(text);
            who.profile = b == 3 ? "p" : "";
            assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
            struct allowance wanted = allowance_none;
            /* Little-endian: the low bytes come first. */
            for (size_t n = 0; n < 2; n++)
                memcpy((char *)&wanted + keys[i].set[n].at, &keys[i].set[n].value,
                       keys[i].set[n].bytes);
            if (!allowance_equal(&limits, &wanted))
                fail_msg("%s", text);
            config_free(config);
        }
    }
}

static void the_least_of_several_requests_binds(void **state)
{
    (void)state;
    struct allowance limits;
    struct config *config =
        accepted_config("clients: {threads: {request: 40%}}\n"
                        "rules:\n  - match: {uid: 5}\n    threads: {request: 30%}\n"
                        "  - match: {cgroup: /a}\n    time: {request: 20%}\n"
                        "  - except: {uid: 5}\n    time: {request: 0}\n"
                        "profiles: {p: {threads: {request: 35%}, time: {request: 9%}}}\n");
    struct config_who who = somebody(6);
    who.cgroup = "/a/b";
    assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
    assert_int_equal(limits.threads.request, 4000);
    assert_int_equal(limits.time.request, 0);
    who.uid = 5;
    assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
    assert_int_equal(limits.threads.request, 3000);
    assert_int_equal(limits.time.request, 2000);
    who.profile = "p";
    assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
    assert_int_equal(limits.threads.request, 3000);
    assert_int_equal(limits.time.request, 900);
    /* A rule that may not be meant for it gives it nothing. */
    who = somebody(5);
    who.cgroup = NULL;
    assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
    assert_int_equal(limits.threads.request, 3000);
    assert_int_equal(limits.time.request, 0);
    who.identified = false;
    assert_int_equal(config_rules_choose(config, 0, &who, &limits), 0);
    assert_int_equal(limits.threads.request, 0);
    config_free(config);
}

static void an_unknown_user_gets_the_strictest_limits(void **state)
{
    (void)state;
    struct config_who who = somebody(0);
    who.identified = false;
    struct allowance limits = chosen(&who, 0);
    assert_int_equal(limits.threads.limit, 1000);
    assert_int_equal(limits.priority, 7);
    assert_int_equal(limits.part[RESOURCE_MEMORY].limit, 5000);
    assert_int_equal(limits.host_memory.limit, 1 << 20);
    /* A control group that can't be read fits every pattern, groups that can't except nobody. */
    who = somebody(1000);
    who.cgroup = NULL;
    assert_int_equal(chosen(&who, 0).threads.limit, 1000);
    who = somebody(1000);
    who.gids = NULL;
    assert_int_equal(chosen(&who, 0).threads.limit, 4000);
}

static void patterns(void **state)
{
    (void)state;
    assert_true(config_rules_pattern_fits("/", "/", false));
    assert_true(config_rules_pattern_fits("/", "/a/b", false));
    assert_true(config_rules_pattern_fits("/a", "/a", false));
    assert_true(config_rules_pattern_fits("/a", "/a/b/c", false));
    assert_false(config_rules_pattern_fits("/a", "/ab", false));
    assert_false(config_rules_pattern_fits("/a/b", "/a", false));
    assert_true(config_rules_pattern_fits("/*/b", "/a/b/c", false));
    assert_false(config_rules_pattern_fits("/*/b", "/a/a/b", false));
    assert_true(config_rules_pattern_fits("/docker-*.scope", "/docker-12ab.scope", false));
    assert_true(config_rules_pattern_fits("a*b*c", "aXbbYc", true));
    assert_false(config_rules_pattern_fits("a*b*c", "aXbbYcd", true));
    assert_true(config_rules_pattern_fits("*", "", true));
    assert_true(config_rules_pattern_fits("**", "x", true));
    assert_false(config_rules_pattern_fits("a", "a/b", true));
    assert_false(config_rules_pattern_fits("", "a", true));
    /* Backtracking that remembers more than one star would take years here. */
    char text[4096], many[129];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (size_t i = 0; i < sizeof many - 1; i += 2)
        memcpy(many + i, "*a", 2);
    many[sizeof many - 2] = 'b';
    many[sizeof many - 1] = 0;
    assert_false(config_rules_pattern_fits(many, text, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_choose_by_identity),
        cmocka_unit_test(rules_choose_by_cgroup_and_name),
        cmocka_unit_test(profiles_asked_for_tighten_too),
        cmocka_unit_test(the_strictest_of_rules_holds_in_any_order),
        cmocka_unit_test(every_key_arrives),
        cmocka_unit_test(the_least_of_several_requests_binds),
        cmocka_unit_test(an_unknown_user_gets_the_strictest_limits),
        cmocka_unit_test(patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
