/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_change: limits and schedules shown and set, whole or not at all. */
#include "tests/unit/supervisor/fake_admin.h"

/* Answers the changes that were asked of the workers. */
static void workers_set(uint32_t error)
{
    size_t count = supervisor.setting_count;
    supervisor.setting_count = 0;
    for (size_t i = 0; i < count; i++)
        supervisor.setting[i].done(supervisor.setting[i].context, supervisor.setting[i].client,
                                   error, error ? "it was not to be" : "");
}

static void set_reads_every_limit(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    json_t *answer = ask("{\"request\":\"set\",\"client\":5,\"memory\":{\"limit\":\"512M\"},"
                         "\"host_memory\":{\"limit\":\"64K\"},\"priority\":3}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    assert_true(number_of(client, "client") == 5);
    assert_true(number_of(client, "priority") == 3);
    json_decref(answer);
    assert_true(supervisor.change.memory.limit == UINT64_C(512) << 20);
    assert_true(supervisor.change.host_memory.limit == 64 << 10);
    assert_true(supervisor.change.threads.limit == ALLOWANCE_UNSET);
    answer = ask("{\"request\":\"set\",\"user\":1000,\"memory\":{\"limit\":\"25%\"}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_true(supervisor.change.memory.limit == PROTO_UNSET);
    assert_int_equal(supervisor.change.part[RESOURCE_MEMORY].limit, 2500);
    assert_true(supervisor.change.priority == ALLOWANCE_UNSET);
    answer = ask("{\"request\":\"set\",\"client\":5,\"time\":{\"request\":\"0\",\"limit\":\"0.5\"},"
                 "\"memory\":{\"request\":\"12.5%\",\"limit\":\"1G\"},"
                 "\"host_memory\":{\"request\":\"16K\"}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_int_equal(supervisor.change.time.request, 0);
    assert_int_equal(supervisor.change.time.limit, 5000);
    assert_int_equal(supervisor.change.part[RESOURCE_MEMORY].request, 1250);
    assert_true(supervisor.change.memory.request == PROTO_UNSET);
    assert_true(supervisor.change.memory.limit == UINT64_C(1) << 30);
    assert_true(supervisor.change.host_memory.request == 16384);
    assert_true(supervisor.change.host_memory.limit == PROTO_UNSET);
    assert_true(supervisor.change.threads.request == ALLOWANCE_UNSET);
    answer = ask("{\"request\":\"set\",\"client\":5,\"memory\":{\"request\":\"0%\"}}");
    json_decref(answer);
    assert_true(supervisor.change.memory.request == 0);
    assert_true(supervisor.change.part[RESOURCE_MEMORY].request == ALLOWANCE_UNSET);
}

static void await_settings(size_t count)
{
    for (int i = 0; i < 5000 && supervisor.setting_count < count; i++)
        turn();
    assert_int_equal(supervisor.setting_count, count);
}

/* Answers one of the changes that wait. */
static void answer_setting(size_t at, uint32_t error, const char *words)
{
    supervisor.setting[at].done(supervisor.setting[at].context, supervisor.setting[at].client,
                                error, words);
}

static void set_for_a_user_is_all_or_nothing(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    for (uint32_t i = 5; i < 8; i++)
        add_client(i, true);
    supervisor.clients[0].own.threads.request = 1000; /* would take */
    supervisor.clients[1].own.threads.request = 9000; /* would give */
    supervisor.clients[2].own.threads.request = 5000;
    supervisor.clients[0].own.priority = 4;
    static const char line[] =
        "{\"request\":\"set\",\"user\":1000,\"threads\":{\"request\":\"50%\"},\"priority\":2}\n";
    int fd = connect_to();
    send_all(fd, line, strlen(line));
    await_settings(3);
    /* Those who give come first, or the sum would be too much on the way. */
    assert_int_equal(supervisor.setting[0].client, 6);
    assert_int_equal(supervisor.setting[1].client, 7);
    assert_int_equal(supervisor.setting[2].client, 5);
    answer_setting(0, 0, "");
    answer_setting(1, 0, "");
    answer_setting(2, PROTO_ERROR_INVALID_VALUE, "50 % and 50 % and 50 % are 150 %");
    /* The two that were changed are put back as they were, the last one first. */
    await_settings(5);
    assert_int_equal(supervisor.setting[3].client, 7);
    assert_int_equal(supervisor.setting[3].change.threads.request, 5000);
    assert_int_equal(supervisor.setting[4].client, 6);
    assert_int_equal(supervisor.setting[4].change.threads.request, 9000);
    assert_int_equal(supervisor.setting[4].change.priority, 0);
    assert_true(supervisor.setting[4].change.threads.limit == ALLOWANCE_UNSET);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), -1);
    answer_setting(3, 0, "");
    answer_setting(4, 0, "");
    json_t *answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "invalid_value");
    assert_string_equal(json_string_value(json_object_get(answer, "text")),
                        "client 5: 50 % and 50 % and 50 % are 150 %");
    json_decref(answer);
    close(fd);
    supervisor.setting_count = 0;
}

/* As during a reload. */
static void what_is_granted_is_shown_while_nothing_can_be_changed(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    supervisor.no_room = "not now";
    static const char *const lines[] = {"{\"request\":\"get\",\"client\":5}",
                                        "{\"request\":\"get\",\"user\":1000}"};
    for (int i = 0; i < 2; i++) {
        json_t *answer = ask(lines[i]);
        assert_true(json_is_true(json_object_get(answer, "ok")));
        json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
        assert_true(number_of(client, "client") == 5);
        json_decref(answer);
    }
    json_t *answer = ask("{\"request\":\"set\",\"client\":5,\"priority\":1}");
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "out_of_memory");
    json_decref(answer);
    supervisor.no_room = NULL;
}

static void a_client_that_leaves_refuses_nothing_to_the_others(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, true);
    static const char line[] =
        "{\"request\":\"set\",\"user\":1000,\"threads\":{\"request\":\"5%\"}}\n";
    int fd = connect_to();
    send_all(fd, line, strlen(line));
    await_settings(2);
    answer_setting(0, PROTO_ERROR_NOT_FOUND, "it left");
    answer_setting(1, 0, "");
    json_t *answer = read_answer(fd);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    /* Nobody was left to change. */
    supervisor.setting_count = 0;
    send_all(fd, line, strlen(line));
    await_settings(2);
    answer_setting(0, PROTO_ERROR_NOT_FOUND, "it left");
    answer_setting(1, PROTO_ERROR_NOT_FOUND, "it left");
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "not_found");
    json_decref(answer);
    close(fd);
    supervisor.setting_count = 0;
}

static void a_guarantee_without_room_gives_the_first_ones_back(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, true);
    supervisor.clients[0].own.host_memory.request = 77;
    refused_with("{\"request\":\"set\",\"user\":1000,\"host_memory\":{\"request\":\"64K\"}}",
                 "out_of_memory", "there is no room for client 6");
    /* The value asked for last is client 5's again. */
    assert_true(supervisor.change.host_memory.request == 77);
    assert_true(supervisor.change.host_memory.limit == PROTO_UNSET);
}

static void a_gpus_schedule_is_set_and_shown(void **state)
{
    (void)state;
    json_t *answer = ask("{\"request\":\"get\",\"gpu\":0}");
    json_t *gpu = json_array_get(json_object_get(answer, "gpus"), 0);
    assert_int_equal(json_array_size(json_object_get(answer, "gpus")), 1);
    assert_true(number_of(gpu, "gpu") == 0);
    assert_true(number_of(json_object_get(gpu, "schedule"), "quantum_seconds") == 30);
    json_decref(answer);
    refused_with("{\"request\":\"get\",\"gpu\":2}", "not_found", "there is no GPU 2");
    refused_unless_root("{\"request\":\"set\",\"gpu\":0,\"mode\":\"fair\"}");
    assert_int_equal(supervisor.parts, 0);
    if (!become_administrator())
        return;
    refused_with("{\"request\":\"set\",\"gpu\":2,\"mode\":\"fair\"}", "not_found", "\"status\"");
    static const char line[] =
        "{\"request\":\"set\",\"gpu\":0,\"mode\":\"fair\",\"lease\":\"50ms\","
        "\"precision\":\"2.5%\"}\n";
    int fd = connect_to();
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 5000 && !supervisor.scheduled; i++)
        turn();
    assert_int_equal(supervisor.parts, SCHEDULE_MODE | SCHEDULE_LEASE | SCHEDULE_PRECISION);
    supervisor.scheduled(supervisor.scheduled_context, 0, 0, "");
    answer = read_answer(fd);
    gpu = json_object_get(json_array_get(json_object_get(answer, "gpus"), 0), "schedule");
    assert_string_equal(json_string_value(json_object_get(gpu, "mode")), "fair");
    assert_true(number_of(gpu, "lease_seconds") == 0.05);
    assert_true(number_of(gpu, "precision_percent") == 2.5);
    assert_true(number_of(gpu, "plan_seconds") == 2);
    assert_true(json_is_true(json_object_get(gpu, "time_enforced")));
    json_decref(answer);
    /* A refusal comes through in the worker's words. */
    supervisor.scheduled = NULL;
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 5000 && !supervisor.scheduled; i++)
        turn();
    supervisor.scheduled(supervisor.scheduled_context, 0, PROTO_ERROR_INVALID_VALUE,
                         "60 % and 50 % are 110 %");
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "text")),
                        "GPU 0: 60 % and 50 % are 110 %");
    json_decref(answer);
    close(fd);
    answer = ask("{\"request\":\"set\",\"gpu\":1,\"quantum\":\"1s\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

/* As text, for it is the text that people see. */
static void numbers_have_no_tail(void **state)
{
    (void)state;
    add_client(1, true);
    supervisor.clients[0].asked.threads.limit = 3333;
    supervisor.clients[0].connected_ns = UINT64_C(12345678901234);
    int fd = connect_to();
    static const char line[] = "{\"request\":\"clients\"}\n";
    send_all(fd, line, strlen(line));
    char *text = read_line(fd);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"asked_percent\":33.33,"));
    assert_non_null(strstr(text, "\"connected_seconds\":12345.678,"));
    assert_non_null(strstr(text, "\"charged_seconds\":0.033333333,"));
    free(text);
    close(fd);
}

static void set_waits_for_every_worker(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, true);
    add_client(7, false);
    static const char line[] =
        "{\"request\":\"set\",\"user\":1000,\"threads\":{\"limit\":\"12.5%\"}}\n";
    int fd = connect_to();
    char byte;
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 100; i++)
        turn();
    assert_int_equal(supervisor.setting_count, 2);
    assert_int_equal(supervisor.change.threads.limit, 1250);
    assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), -1);
    workers_set(0);
    json_t *answer = read_answer(fd);
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 2);
    json_decref(answer);
    /* One failure is told; a peer that leaves is no trouble. */
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 100; i++)
        turn();
    workers_set(PROTO_ERROR_OUT_OF_MEMORY);
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "out_of_memory");
    assert_non_null(strstr(json_string_value(json_object_get(answer, "text")), "client 5: it was"));
    json_decref(answer);
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 100; i++)
        turn();
    assert_int_equal(supervisor.setting_count, 2);
    close(fd);
    for (int i = 0; i < 100; i++)
        turn();
    workers_set(0);
}

static void totals_of_users_and_groups_are_set_and_shown(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    json_t *answer = ask("{\"request\":\"set\",\"user\":770,\"total\":{\"memory\":{\"limit\":"
                         "\"25%\"},\"host_memory\":{\"limit\":\"1M\"}}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 0);
    json_t *total = json_object_get(answer, "total");
    json_t *memory = json_object_get(total, "memory"),
           *host = json_object_get(total, "host_memory");
    assert_true(number_of(total, "user") == 770);
    assert_int_equal(json_array_size(memory), 2);
    assert_true(json_is_null(json_object_get(json_array_get(memory, 0), "limit_bytes")));
    assert_true(number_of(json_array_get(memory, 0), "used_bytes") == 5);
    assert_true(number_of(json_array_get(memory, 1), "limit_bytes") == 4096);
    assert_true(number_of(json_array_get(memory, 1), "gpu") == 1);
    assert_true(number_of(host, "limit_bytes") == 512 && number_of(host, "used_bytes") == 64);
    assert_true(json_is_null(json_object_get(json_array_get(memory, 0), "limited_by")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(memory, 1), "limited_by")),
                        "configuration");
    assert_string_equal(json_string_value(json_object_get(host, "limited_by")), "administrator");
    json_decref(answer);
    assert_int_equal(supervisor.total.owner.kind, TOTAL_USER);
    assert_int_equal(supervisor.total.owner.id, 770);
    assert_int_equal(supervisor.total.change.parts,
                     RESOURCE_BIT(RESOURCE_MEMORY) | RESOURCE_BIT(RESOURCE_HOST_MEMORY));
    assert_true(supervisor.total.change.limits.memory.limit == PROTO_UNSET);
    assert_int_equal(supervisor.total.change.limits.part[RESOURCE_MEMORY].limit, 2500);
    assert_true(supervisor.total.change.limits.host_memory.limit == 1 << 20);
    answer = ask("{\"request\":\"set\",\"group\":9,\"total\":{\"memory\":{\"limit\":\"4G\"}}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_null(json_object_get(answer, "clients"));
    assert_true(number_of(json_object_get(answer, "total"), "group") == 9);
    json_decref(answer);
    assert_int_equal(supervisor.total.owner.kind, TOTAL_GROUP);
    assert_true(supervisor.total.change.limits.memory.limit == UINT64_C(4) << 30);
    assert_true(supervisor.total.change.limits.part[RESOURCE_MEMORY].limit == ALLOWANCE_UNSET);
    assert_int_equal(supervisor.total.change.parts, RESOURCE_BIT(RESOURCE_MEMORY));
    assert_true(supervisor.total.change.limits.host_memory.limit == PROTO_UNSET);
    answer = ask("{\"request\":\"set\",\"group\":9,\"total\":{\"host_memory\":{\"limit\":"
                 "\"default\"}}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_int_equal(supervisor.total.change.parts, RESOURCE_BIT(RESOURCE_HOST_MEMORY));
    assert_true(supervisor.total.change.limits.host_memory.limit == PROTO_UNSET);
    answer = ask("{\"request\":\"get\",\"group\":780}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    /* Limited in one way or the other, and nobody there. */
    for (int uid = 770; uid < 773; uid++) {
        char line[64];
        snprintf(line, sizeof line, "{\"request\":\"get\",\"user\":%d}", uid);
        answer = ask(line);
        assert_true(json_is_true(json_object_get(answer, "ok")));
        json_decref(answer);
    }
    refused_with("{\"request\":\"get\",\"user\":773}", "not_found", "uid 773");
    answer = ask("{\"request\":\"get\",\"user\":1000}");
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 1);
    assert_non_null(json_object_get(answer, "total"));
    json_decref(answer);
    assert_int_equal(supervisor.total.changes, 3);
    /* No client's own limits. */
    assert_true(supervisor.change.part[RESOURCE_MEMORY].limit == 0);
}

static void shares_of_control_groups_are_set_and_shown(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    json_t *answer = ask("{\"request\":\"set\",\"cgroup\":\"/a.slice/b\",\"total\":{\"time\":"
                         "{\"request\":\"20%\",\"limit\":\"50%\"}}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_null(json_object_get(answer, "clients"));
    json_t *total = json_object_get(answer, "total");
    assert_string_equal(json_string_value(json_object_get(total, "cgroup")), "/a.slice/b");
    assert_int_equal(json_object_size(total), 3);
    json_t *time = json_array_get(json_object_get(total, "time"), 0);
    assert_true(json_is_real(json_object_get(time, "one_client_at_a_time_seconds")));
    assert_null(json_object_get(json_array_get(json_object_get(total, "threads"), 0),
                                "one_client_at_a_time_seconds"));
    json_decref(answer);
    assert_int_equal(supervisor.total.owner.kind, TOTAL_CGROUP);
    assert_string_equal(supervisor.total.cgroup, "/a.slice/b");
    assert_int_equal(supervisor.total.change.parts, RESOURCE_BIT(RESOURCE_TIME));
    assert_int_equal(supervisor.total.change.request_parts, RESOURCE_BIT(RESOURCE_TIME));
    assert_int_equal(supervisor.total.change.limits.time.request, 2000);
    answer = ask("{\"request\":\"get\",\"cgroup\":\"/\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
#define CGROUP "{\"request\":\"set\",\"cgroup\":"
    refused_with(CGROUP "5}", "invalid_value", "the path of one control group");
    refused_with(CGROUP "\"a\"}", "invalid_value", "the path of one control group");
    refused_with(CGROUP "\"\"}", "invalid_value", "the path of one control group");
    refused_with(CGROUP "\"/a/\"}", "invalid_value", "the path of one control group");
    refused_with(CGROUP "\"/a/*\"}", "invalid_value", "the path of one control group");
    refused_with(CGROUP "\"/a\"}", "invalid_value", "needs \"total\"");
    refused_with(CGROUP "\"/a\",\"priority\":1}", "invalid_value",
                 "of a control group has no member \"priority\"");
    refused_with(CGROUP "\"/a\",\"total\":{\"memory\":{\"limit\":\"4G\"}}}", "invalid_value",
                 "\"threads\" and \"time\"");
    refused_with(CGROUP "\"/a\",\"user\":5}", "invalid_value", "only one of them");
    refused_with("{\"request\":\"kill\",\"cgroup\":\"/a\"}", "invalid_value", "no member");
#undef CGROUP
    char line[ACCOUNT_CGROUP_MAX + 60], longest[ACCOUNT_CGROUP_MAX + 2] = "/";
    memset(longest + 1, 'a', ACCOUNT_CGROUP_MAX - 1);
    snprintf(line, sizeof line, "{\"request\":\"get\",\"cgroup\":\"%s\"}", longest);
    answer = ask(line);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    longest[ACCOUNT_CGROUP_MAX] = 'a';
    snprintf(line, sizeof line, "{\"request\":\"get\",\"cgroup\":\"%s\"}", longest);
    refused_with(line, "invalid_value", "at most 255 bytes");
    assert_int_equal(supervisor.total.changes, 1);
}

static void totals_that_cannot_be_set_are_refused_in_words(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
#define TOTAL "{\"request\":\"set\",\"user\":1000,\"total\":"
    refused_with(TOTAL "{}}", "invalid_value", "at least one of them");
    refused_with(TOTAL "\"4G\"}", "invalid_value", "at least one of them");
    refused_with(TOTAL "{\"memory\":{}}}", "invalid_value", "{\"limit\": text}");
    refused_with(TOTAL "{\"memory\":{\"limit\":\"4G\",\"most\":\"5G\"}}}", "invalid_value",
                 "{\"limit\": text}");
    refused_with(TOTAL "{\"memory\":{\"limit\":4}}}", "invalid_value", "total.memory.limit");
    refused_with(TOTAL "{\"memory\":{\"limit\":\"4G\"},\"priority\":{\"limit\":\"5%\"}}}",
                 "invalid_value", "at least one of them");
    refused_with(TOTAL "{\"time\":{\"most\":\"5%\"}}}", "invalid_value", "of one or both");
    refused_with(TOTAL "{\"time\":{\"request\":5}}}", "invalid_value",
                 "total.time.request\" must be a text");
    refused_with(TOTAL "{\"time\":{\"request\":\"5G\"}}}", "invalid_value",
                 "total.time.request\": \"5G\" is not");
    refused_with(TOTAL "{\"memory\":{\"request\":\"4G\"}}}", "invalid_value",
                 "total.memory.request");
    refused_with(TOTAL "{\"host_memory\":{\"limit\":\"5%\"}}}", "invalid_value",
                 "total.host_memory.limit\": \"5%\" is not a size");
    refused_with(TOTAL "{\"memory\":{\"limit\":\"4G\"}},\"priority\":1}", "invalid_value",
                 "send two requests");
    refused_with("{\"request\":\"set\",\"group\":5}", "invalid_value", "needs \"total\"");
    refused_with("{\"request\":\"set\",\"group\":5,\"priority\":1}", "invalid_value",
                 "of a group has no member \"priority\"");
    refused_with("{\"request\":\"set\",\"client\":5,\"total\":{\"memory\":{\"limit\":\"4G\"}}}",
                 "invalid_value", "no member \"total\"");
    refused_with("{\"request\":\"kill\",\"group\":5}", "invalid_value", "no member \"group\"");
    assert_int_equal(supervisor.total.changes, 0);
    supervisor.total.refused = "not now";
    refused_with(TOTAL "{\"memory\":{\"limit\":\"4G\"}}}", "not_ready", "not now");
#undef TOTAL
}

static void impossible_changes_are_refused_in_words(void **state)
{
    (void)state;
#define SET "{\"request\":\"set\",\"client\":5,"
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, false);
    refused_with(SET "\"memory\":{\"limit\":\"2G\"}}", "invalid_value", "too much");
    char names[ALLOWANCE_NAMES], forms[ALLOWANCE_NAMES + 40];
    allowance_names(false, "\"", "\"", ", ", names);
    snprintf(forms, sizeof forms, "%s, \"priority\" or \"kernel_time_limit\"", names);
    refused_with("{\"request\":\"set\",\"client\":5}", "invalid_value", forms);
    refused_with(SET "\"memory\":{\"limit\":\"much\"}}", "invalid_value", "\"much\" is not a size");
    refused_with(SET "\"threads\":{\"limit\":\"101%\"}}", "invalid_value", "is not a share");
    refused_with(SET "\"threads\":{\"limit\":25}}", "invalid_value", "threads.limit");
    refused_with(SET "\"threads\":{}}", "invalid_value", "\"limit\": text}");
    refused_with(SET "\"threads\":\"25%\"}", "invalid_value", "\"limit\": text}");
    refused_with(SET "\"threads\":{\"request\":\"25%\",\"most\":\"30%\"}}", "invalid_value",
                 "\"limit\": text}");
    refused_with(SET "\"time\":{\"request\":\"25\"}}", "invalid_value", "or 0 for none");
    refused_with(SET "\"time\":{\"limit\":\"0\"}}", "invalid_value", "time.limit");
    refused_with(SET "\"host_memory\":{\"request\":\"25%\"}}", "invalid_value", "a size");
    refused_with(SET "\"mode\":\"fair\"}", "invalid_value", "no member \"mode\"");
    refused_with("{\"request\":\"set\",\"gpu\":0}", "invalid_value", "something to set");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"priority\":1}", "invalid_value",
                 "of a GPU has no member \"priority\"");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"lease\":50}", "invalid_value", "must be a text");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"lease\":\"4ms\"}", "invalid_value",
                 "lease: \"4ms\" is not a time from 5ms to 10s");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"client\":1,\"mode\":\"fair\"}", "invalid_value",
                 "only one of them");
    refused_with(SET "\"priority\":1001}", "invalid_value", "from 0");
    refused_with(SET "\"user\":1000,\"priority\":1}", "invalid_value", "only one of them");
    refused_with("{\"request\":\"get\"}", "invalid_value", "or \"user\"");
    refused_with("{\"request\":\"get\",\"client\":5,\"priority\":1}", "invalid_value",
                 "no member \"priority\"");
    refused_with("{\"request\":\"get\",\"client\":6}", "not_found", "no attached client 6");
    supervisor.clients[0].state = "leaving";
    refused_with("{\"request\":\"get\",\"client\":5}", "not_found",
                 "client 5 has left, and its limits");
    refused_with(SET "\"priority\":1}", "not_found", "gpusharectl kill 5 says what keeps it");
    supervisor.clients[0].state = "attached";
    refused_with("{\"request\":\"get\",\"user\":77}", "not_found", "uid 77");
    assert_int_equal(supervisor.setting_count, 0);
    json_t *answer = ask("{\"request\":\"get\",\"user\":1000}");
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 1);
    json_decref(answer);
#undef SET
}

static void limits_of_clients_to_come_are_read(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
#define SET "{\"request\":\"set\",\"gpu\":0,\"new_clients\":"
    json_t *answer = ask(SET "{\"threads\":{\"limit\":\"50%\"},\"memory\":{\"limit\":\"default\"},"
                             "\"priority\":3,\"kernel_time_limit\":\"configured\"}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_int_equal(supervisor.newcomers, 1);
    assert_int_equal(supervisor.change.threads.limit, 5000);
    assert_true(supervisor.change.threads.request == ALLOWANCE_UNSET);
    assert_int_equal(supervisor.change.priority, 3);
    assert_int_equal(supervisor.back_limits, RESOURCE_BIT(RESOURCE_MEMORY));
    assert_int_equal(supervisor.back_scalars, 1U << SCALAR_KERNEL_TIME);
    refused_with(SET "{\"threads\":{\"request\":\"50%\"}}}", "invalid_value", "no requests");
    refused_with(SET "{\"threads\":{\"limit\":\"50%\"}},\"mode\":\"fair\"}", "invalid_value",
                 "alone");
    refused_with(SET "{\"priority\":1},\"save\":true}", "invalid_value", "alone");
    refused_with(SET "{}}", "invalid_value", "object of limits");
    refused_with(SET "7}", "invalid_value", "object of limits");
    refused_with(SET "{\"priority\":1,\"wings\":2}}", "invalid_value", "object of limits");
    refused_with(SET "{\"threads\":\"50%\"}}", "invalid_value", "threads");
    refused_with(SET "{\"priority\":1001}}", "invalid_value", "from 0");
    refused_with("{\"request\":\"set\",\"gpu\":2,\"new_clients\":{\"priority\":1}}", "not_found",
                 "no GPU 2");
    refused_with("{\"request\":\"set\",\"user\":1000,\"new_clients\":{\"priority\":1}}",
                 "invalid_value", "new_clients");
    assert_int_equal(supervisor.newcomers, 1);
#undef SET
}

static void a_configuration_is_shown_when_all_gpus_are_known(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    refused_with("{\"request\":\"config\",\"gpu\":0}", "invalid_value", "no member \"gpu\"");
    refused_with("{\"request\":\"config\"}", "device_not_ready", "limits of device 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(set_reads_every_limit),
        CASE(set_waits_for_every_worker),
        CASE(set_for_a_user_is_all_or_nothing),
        CASE(what_is_granted_is_shown_while_nothing_can_be_changed),
        CASE(a_client_that_leaves_refuses_nothing_to_the_others),
        CASE(a_guarantee_without_room_gives_the_first_ones_back),
        CASE(a_gpus_schedule_is_set_and_shown),
        CASE(numbers_have_no_tail),
        CASE(totals_of_users_and_groups_are_set_and_shown),
        CASE(shares_of_control_groups_are_set_and_shown),
        CASE(totals_that_cannot_be_set_are_refused_in_words),
        CASE(impossible_changes_are_refused_in_words),
        CASE(limits_of_clients_to_come_are_read),
        CASE(a_configuration_is_shown_when_all_gpus_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
