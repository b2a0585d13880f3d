/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin: requests and answers, who may ask, peers that misbehave, the socket file. */
#include "tests/unit/supervisor/fake_admin.h"

#include "common/error.h"
#include "server/supervisor/admin/peer.h"
#include "server/supervisor/admin/socket.h"

static void the_socket_file_is_for_owner_and_group(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0660);
    assert_true(S_ISSOCK(status.st_mode));
}

static void ping_and_version(void **state)
{
    (void)state;
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    answer = ask("{\"request\":\"version\"}");
    assert_string_equal(json_string_value(json_object_get(answer, "server_version")),
                        GPUSHARE_VERSION);
    char version[32];
    snprintf(version, sizeof version, "%d.%d", PROTO_MAJOR, PROTO_MINOR);
    assert_string_equal(json_string_value(json_object_get(answer, "protocol_version")), version);
    json_decref(answer);
}

static void several_requests_of_one_connection_are_answered_in_order(void **state)
{
    (void)state;
    static const char lines[] = "{\"request\":\"ping\"}\n{\"request\":\"version\"}\n"
                                "{\"request\":\"status\"}\r\n{\"request\":\"nonsense\"}\n"
                                "{\"request\":\"clients\"}\n";
    static const char *const names[] = {"ping", "version", "status", NULL, "clients"};
    int fd = connect_to();
    send_all(fd, lines, sizeof lines - 1);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 5; i++) {
        json_t *answer = read_answer(fd);
        const char *name = json_string_value(json_object_get(answer, "request"));
        if (names[i])
            assert_string_equal(name, names[i]);
        else
            assert_null(name);
        json_decref(answer);
    }
    assert_null(read_line(fd));
    close(fd);
}

static void a_request_in_single_bytes(void **state)
{
    (void)state;
    static const char line[] = "{ \"request\" : \"ping\" }\n";
    int fd = connect_to();
    for (size_t i = 0; i < sizeof line - 1; i++) {
        send_all(fd, line + i, 1);
        turn();
    }
    json_t *answer = read_answer(fd);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    close(fd);
}

static void malformed_requests_are_refused_in_words(void **state)
{
    (void)state;
    refused_with("", "invalid_value", "one JSON object");
    refused_with("hello", "invalid_value", "one JSON object");
    refused_with("[]", "invalid_value", "\"request\"");
    refused_with("{}", "invalid_value", "\"request\"");
    refused_with("{\"request\":5}", "invalid_value", "\"request\"");
    refused_with("{\"request\":\"ping\"} {}", "invalid_value", "one JSON object");
    refused_with("{\"request\":\"ping\",\"request\":\"kill\"}", "invalid_value", "one JSON object");
    refused_with("{\"request\":\"ping\",\"extra\":1}", "invalid_value", "no member \"extra\"");
    refused_with("{\"request\":\"ping\",\"client\":1}", "invalid_value", "no member \"client\"");
    refused_with("{\"request\":\"reboot\"}", "not_supported", "there is no request \"reboot\"");
    refused_with("{\"request\":\"\xff\"}", "invalid_value", "one JSON object");
    refused_with("{\"request\":[[[[[[[[\"ping\"]]]]]]]]}", "invalid_value", "8 deep");
    refused_with("{\"request\":\"kill\"}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":\"1\"}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":-1}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":1.0}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":4294967296}", "invalid_value",
                 "needs \"client\"");
}

static void nesting_beyond_any_stack(void **state)
{
    (void)state;
    static char line[ADMIN_LINE_MAX - 1];
    memset(line, '[', sizeof line);
    line[sizeof line - 1] = '\0';
    refused_with(line, "invalid_value", "8 deep");
}

static void a_line_at_its_longest(void **state)
{
    (void)state;
    static char line[ADMIN_LINE_MAX + 1];
    memset(line, ' ', sizeof line);
    static const char request[] = "{\"request\":\"ping\"}";
    memcpy(line, request, sizeof request - 1);
    line[ADMIN_LINE_MAX - 1] = '\0'; /* with its newline as long as a line may be */
    json_t *answer = ask(line);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    /* One more, without an end: refused, and the connection closed. */
    line[ADMIN_LINE_MAX - 1] = ' ';
    int fd = connect_to();
    send_all(fd, line, ADMIN_LINE_MAX);
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "invalid_value");
    json_decref(answer);
    assert_null(read_line(fd));
    close(fd);
}

static void status_shows_the_state_of_devices(void **state)
{
    (void)state;
    add_client(1, true);
    add_client(2, true);
    add_client(3, false);
    json_t *answer = ask("{\"request\":\"status\"}");
    assert_true(number_of(answer, "uptime_seconds") == 1.5);
    assert_true(number_of(answer, "process_uptime_seconds") == 0.25);
    assert_true(number_of(answer, "clients") == 3);
    assert_string_equal(json_string_value(json_object_get(answer, "kernel_isolation")), "none");
    json_t *devices = json_object_get(answer, "devices");
    assert_int_equal(json_array_size(devices), 2);
    json_t *first = json_array_get(devices, 0), *second = json_array_get(devices, 1);
    assert_string_equal(json_string_value(json_object_get(first, "uuid")),
                        "GPU-ab000000-0000-0000-0000-000000000000");
    assert_string_equal(json_string_value(json_object_get(first, "cuda_version")), "13.1");
    assert_true(number_of(first, "memory_bytes") == 85899345920.0);
    assert_true(number_of(first, "shared_queues") == 2);
    json_t *schedule = json_object_get(first, "schedule");
    assert_string_equal(json_string_value(json_object_get(schedule, "mode")), "concurrent");
    assert_true(number_of(schedule, "lease_seconds") == 0.25);
    assert_true(number_of(schedule, "plan_seconds") == 5);
    assert_true(json_is_false(json_object_get(schedule, "time_enforced")));
    assert_string_equal(json_string_value(json_object_get(first, "threads_enforced_by")),
                        "partitions");
    assert_true(json_is_null(json_object_get(second, "threads_enforced_by")));
    assert_true(json_is_null(json_object_get(first, "trouble")));
    assert_true(json_is_null(json_object_get(second, "name")));
    assert_true(json_is_null(json_object_get(second, "worker_pid")));
    assert_non_null(json_string_value(json_object_get(second, "trouble")));
    json_decref(answer);
}

static void clients_show_asked_and_granted(void **state)
{
    (void)state;
    add_client(1, true);
    add_client(2, false);
    add_client(13, true); /* its worker ends just now */
    strcpy(supervisor.clients[1].name, "\xff\xfe");
    json_t *answer = ask("{\"request\":\"clients\"}");
    json_t *clients = json_object_get(answer, "clients");
    assert_int_equal(json_array_size(clients), 3);
    json_t *client = json_array_get(clients, 0);
    assert_string_equal(json_string_value(json_object_get(client, "name")), "job 1");
    json_t *memory = json_object_get(client, "memory"), *limit = json_object_get(memory, "limit");
    json_t *threads = json_object_get(client, "threads");
    assert_true(json_is_null(json_object_get(limit, "asked_bytes")));
    assert_true(number_of(limit, "granted_bytes") == 1073741824);
    assert_true(number_of(memory, "used_bytes") == 2097152);
    limit = json_object_get(threads, "limit");
    assert_true(number_of(limit, "asked_percent") == 12.5);
    assert_true(number_of(limit, "granted_percent") == 12.5);
    json_t *request = json_object_get(threads, "request");
    assert_true(json_is_null(json_object_get(request, "asked_percent")));
    assert_true(number_of(request, "granted_percent") == 0);
    assert_true(json_is_true(json_object_get(threads, "partitioned")));
    assert_true(number_of(threads, "multiprocessors") == 16);
    assert_true(number_of(json_object_get(json_object_get(client, "time"), "limit"),
                          "granted_percent") == 100);
    assert_true(number_of(client, "multiprocessors_now") == 24);
    assert_true(number_of(client, "gpu_time_seconds") == 2.5);
    assert_true(number_of(client, "charged_seconds") == 0.033333333);
    assert_true(number_of(client, "leases") == 7);
    assert_true(number_of(client, "launches") == 10);
    json_t *throttled = json_object_get(client, "throttled_seconds");
    assert_true(number_of(throttled, "lease") == 0.001);
    assert_true(number_of(throttled, "duty") == 0);
    assert_true(number_of(throttled, "threads") == 0.002);
    json_t *waits = json_object_get(client, "waits");
    assert_int_equal(json_array_size(waits), 32);
    assert_int_equal(json_integer_value(json_array_get(waits, 0)), 1);
    assert_int_equal(json_integer_value(json_array_get(waits, 5)), 40);
    assert_int_equal(json_integer_value(json_array_get(waits, 31)), 2);
    client = json_array_get(clients, 1);
    assert_string_equal(json_string_value(json_object_get(client, "name")), "?"
                                                                            "?");
    assert_true(json_is_null(json_object_get(client, "memory")));
    client = json_array_get(clients, 2);
    assert_true(json_is_null(json_object_get(client, "gpu_time_seconds")));
    assert_true(json_is_null(json_object_get(client, "waits")));
    assert_true(number_of(json_object_get(client, "memory"), "used_bytes") == 2097152);
    json_decref(answer);
}

static void a_worker_that_does_not_answer_is_not_waited_for(void **state)
{
    (void)state;
    add_client(1, true);
    supervisor.workers_answer = false;
    json_t *answer = ask("{\"request\":\"clients\"}");
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    assert_true(json_is_null(json_object_get(client, "launches")));
    json_decref(answer);
    assert_int_equal(supervisor.asked_count, 1); /* its answer comes at the very end */
    answer = ask("{\"request\":\"status\"}");
    assert_true(json_is_null(
        json_object_get(json_array_get(json_object_get(answer, "devices"), 0), "shared_queues")));
    json_decref(answer);
}

static void a_peer_that_leaves_while_workers_are_asked(void **state)
{
    (void)state;
    add_client(1, true);
    add_client(2, true);
    supervisor.workers_answer = false;
    int fd = connect_to();
    send_all(fd, "{\"request\":\"clients\"}\n", 22);
    for (int i = 0; i < 1000 && supervisor.asked_count < 2; i++)
        turn();
    assert_int_equal(supervisor.asked_count, 2);
    close(fd);
    for (int i = 0; i < 20; i++)
        turn();
    workers_answer(false);
    supervisor.workers_answer = true;
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

static void an_end_while_workers_are_asked(void **state)
{
    (void)state;
    add_client(1, true);
    supervisor.workers_answer = false;
    int fd = connect_to();
    send_all(fd, "{\"request\":\"status\"}\n", 21);
    for (int i = 0; i < 1000 && supervisor.asked_count < 1; i++)
        turn();
    assert_int_equal(supervisor.asked_count, 1);
    admin_close(&admin);
    assert_null(admin);
    assert_null(read_line(fd));
    close(fd);
}

static void a_thousand_clients_in_one_answer(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 1000; i++)
        add_client(i + 100, true);
    json_t *answer = ask("{\"request\":\"clients\"}");
    json_t *clients = json_object_get(answer, "clients");
    assert_int_equal(json_array_size(clients), 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_true(number_of(json_array_get(clients, i), "launches") == (double)(i + 101) * 10);
    json_decref(answer);
}

static void kill_is_for_root_and_those_named(void **state)
{
    (void)state;
    add_client(7, true);
    refused_unless_root("{\"request\":\"kill\",\"client\":7}");
    assert_int_equal(supervisor.killed, 0);
    if (!become_administrator())
        return;
    refused_with("{\"request\":\"kill\",\"client\":8}", "not_found", "no client 8");
    json_t *answer = ask("{\"request\":\"kill\",\"client\":7}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_true(json_is_null(json_object_get(answer, "worker_replaced")));
    assert_int_equal(json_array_size(json_object_get(answer, "ended_with_worker")), 0);
    json_decref(answer);
    assert_int_equal(supervisor.killed, 7);
    assert_non_null(strstr(supervisor.killed_by, "uid "));
    refused_with("{\"request\":\"kill\",\"client\":77}", "not_ready", "kill --force 77");
    assert_true(supervisor.kill_knew_usage);
    refused_with("{\"request\":\"kill\",\"client\":77,\"force\":false}", "not_ready", "has left");
    refused_with("{\"request\":\"kill\",\"client\":77,\"force\":1}", "invalid_value",
                 "true or false");
    refused_with("{\"request\":\"get\",\"client\":7,\"force\":true}", "invalid_value", "force");
    assert_int_equal(supervisor.killed, 7);
    add_client(77, true);
    answer = ask("{\"request\":\"kill\",\"client\":77,\"force\":true}");
    assert_int_equal(supervisor.killed, 77);
    assert_int_equal(json_integer_value(json_object_get(answer, "worker_replaced")), 0);
    const json_t *others = json_object_get(answer, "ended_with_worker");
    assert_int_equal(json_array_size(others), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(others, 0), "client")), 7);
    json_decref(answer);
}

static void a_users_clients_are_killed_and_nobody_elses(void **state)
{
    (void)state;
    add_client(5, true);
    add_client(6, false);
    add_client(7, true);
    add_client(77, true); /* the fake's that has left */
    supervisor.clients[2].uid = 1001;
    supervisor.clients[3].state = "leaving";
    refused_unless_root("{\"request\":\"kill\",\"user\":1000}");
    assert_int_equal(supervisor.kills, 0);
    if (!become_administrator())
        return;
    refused_with("{\"request\":\"kill\",\"user\":1002}", "not_found", "uid 1002");
    refused_with("{\"request\":\"kill\",\"user\":1000,\"client\":5}", "invalid_value",
                 "one of them");
    refused_with("{\"request\":\"kill\",\"user\":1000,\"force\":true}", "invalid_value",
                 "for one client");
    assert_int_equal(supervisor.kills, 0);
    json_t *answer = ask("{\"request\":\"kill\",\"user\":1000}");
    const json_t *clients = json_object_get(answer, "clients");
    assert_int_equal(json_array_size(clients), 2);
    for (int i = 0; i < 2; i++) {
        const json_t *row = json_array_get(clients, (size_t)i);
        assert_int_equal(json_integer_value(json_object_get(row, "client")), 5 + i);
        assert_int_equal(json_integer_value(json_object_get(row, "uid")), 1000);
    }
    assert_true(json_is_null(json_object_get(answer, "client")));
    assert_int_equal(json_integer_value(json_object_get(answer, "uid")), 1000);
    json_decref(answer);
    assert_int_equal(supervisor.kills, 2);
    assert_non_null(strstr(supervisor.killed_by, "uid "));
}

static void all_clients_are_killed_by_one_request(void **state)
{
    (void)state;
    refused_unless_root("{\"request\":\"kill\",\"all\":true}");
    if (!become_administrator())
        return;
    json_t *answer = ask("{\"request\":\"kill\",\"all\":true}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    add_client(5, true);
    add_client(7, true);
    supervisor.clients[1].uid = 1001;
    refused_with("{\"request\":\"kill\",\"all\":false}", "invalid_value", "one of them");
    refused_with("{\"request\":\"kill\",\"all\":true,\"client\":5}", "invalid_value",
                 "one of them");
    refused_with("{\"request\":\"kill\",\"all\":false,\"client\":5}", "invalid_value",
                 "one of them");
    refused_with("{\"request\":\"kill\",\"all\":true,\"force\":true}", "invalid_value",
                 "for one client");
    assert_int_equal(supervisor.kills, 0);
    answer = ask("{\"request\":\"kill\",\"all\":true}");
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 2);
    assert_true(json_is_null(json_object_get(answer, "uid")));
    json_decref(answer);
    assert_int_equal(supervisor.kills, 2);
}

static void one_gpu_is_drained_or_all_are(void **state)
{
    (void)state;
    refused_unless_root("{\"request\":\"drain\"}");
    refused_unless_root("{\"request\":\"resume\",\"gpu\":0}");
    if (!become_administrator())
        return;
    refused_with("{\"request\":\"drain\",\"gpu\":2}", "not_found", "no GPU 2");
    refused_with("{\"request\":\"drain\",\"gpu\":\"0\"}", "invalid_value", "for all devices");
    refused_with("{\"request\":\"resume\",\"client\":1}", "invalid_value", "client");
    assert_false(supervisor.drained[0] || supervisor.drained[1]);
    json_t *answer = ask("{\"request\":\"drain\",\"gpu\":1}");
    const json_t *gpus = json_object_get(answer, "gpus");
    assert_int_equal(json_array_size(gpus), 1);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(gpus, 0), "gpu")), 1);
    assert_true(json_is_true(json_object_get(json_array_get(gpus, 0), "drained")));
    assert_true(json_is_false(json_object_get(answer, "saved"))); /* there is no folder */
    json_decref(answer);
    assert_true(!supervisor.drained[0] && supervisor.drained[1]);
    answer = ask("{\"request\":\"drain\"}");
    assert_int_equal(json_array_size(json_object_get(answer, "gpus")), 2);
    json_decref(answer);
    assert_true(supervisor.drained[0] && supervisor.drained[1]);
    json_decref(ask("{\"request\":\"resume\"}"));
    assert_false(supervisor.drained[0] || supervisor.drained[1]);
}

/* Connects as another user: the kernel remembers who connected. By a relative name, for the folders
 * above may be closed to that user. */
static int connect_as(uid_t uid)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chmod(folder, 0711), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(seteuid(uid), 0);
    int fd = connect_by("admin.sock");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    return fd;
}

static void reload_is_for_root_and_says_why_not(void **state)
{
    (void)state;
    refused_with("{\"request\":\"reload\",\"file\":\"/x\"}", "invalid_value", "no member");
    refused_unless_root("{\"request\":\"reload\"}");
    assert_int_equal(supervisor.reloads, 0);
    if (!become_administrator())
        return;
    json_t *answer = ask("{\"request\":\"reload\"}");
    assert_true(json_is_null(json_object_get(answer, "file")));
    json_decref(answer);
    answer = ask("{\"request\":\"reload\"}");
    assert_string_equal(json_string_value(json_object_get(answer, "file")), "/etc/x.yaml");
    assert_int_equal(json_integer_value(json_object_get(answer, "rules")), 3);
    assert_int_equal(json_integer_value(json_object_get(answer, "changed_clients")), 4);
    assert_int_equal(json_integer_value(json_object_get(answer, "changed_settings")), 5);
    json_decref(answer);
    supervisor.broken = true;
    refused_with("{\"request\":\"reload\"}", "invalid_value",
                 "stays as it was: file:3: unknown key");
    assert_int_equal(supervisor.reloads, 3);
    supervisor.broken = false;
}

/* Workers are asked: the answer is what they say. */
static void a_reload_under_way_is_answered_when_it_is_over(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    supervisor.reload_later = true;
    for (int refused = 0; refused < 2; refused++) {
        int fd = connect_to();
        unsigned before = supervisor.reloads;
        send_all(fd, "{\"request\":\"reload\"}\n", strlen("{\"request\":\"reload\"}\n"));
        while (supervisor.reloads == before)
            turn();
        supervisor.reload_done(supervisor.reload_context, refused ? PROTO_ERROR_INVALID_VALUE : 0,
                               refused ? "60 + 50" : "");
        json_t *answer = read_answer(fd);
        assert_int_equal(json_is_true(json_object_get(answer, "ok")), !refused);
        if (refused)
            assert_string_equal(json_string_value(json_object_get(answer, "text")),
                                "the configuration stays as it was: 60 + 50");
        json_decref(answer);
        close(fd);
    }
    supervisor.reload_later = false;
}

static void others_may_look_but_not_kill(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip();
    add_client(7, true);
    supervisor.settings.admins[supervisor.settings.admin_count++] = 4711;
    static const struct {
        uid_t uid;
        const char *words; /* NULL: allowed */
    } rows[] = {{4711, NULL}, {4712, "--admin-uid 4712"}, {65534, "does not know"}};
    for (int i = 0; i < 3; i++) {
        int fd = connect_as(rows[i].uid);
        supervisor.killed = 0;
        json_t *answer = ask_on(fd, "{\"request\":\"clients\"}");
        assert_true(json_is_true(json_object_get(answer, "ok")));
        json_decref(answer);
        answer = ask_on(fd, "{\"request\":\"kill\",\"client\":7}");
        assert_int_equal(json_is_true(json_object_get(answer, "ok")), !rows[i].words);
        assert_int_equal(supervisor.killed, rows[i].words ? 0 : 7);
        const char *text = json_string_value(json_object_get(answer, "text"));
        if (rows[i].words && !strstr(text, rows[i].words))
            fail_msg("\"%s\" lacks \"%s\"", text, rows[i].words);
        json_decref(answer);
        close(fd);
    }
    /* Named or not: who stands for everybody is nobody in particular. */
    supervisor.settings.admins[supervisor.settings.admin_count++] = 65534;
    int fd = connect_as(65534);
    json_t *answer = ask_on(fd, "{\"request\":\"kill\",\"client\":7}");
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "not_permitted");
    json_decref(answer);
    close(fd);
}

static void connections_are_limited(void **state)
{
    (void)state;
    enum { USER = ADMIN_USER_CONNECTIONS_MAX };
    const int most = getuid() == 0 ? ADMIN_CONNECTIONS_MAX : USER;
    int fds[ADMIN_CONNECTIONS_MAX];
    for (int i = 0; i < most; i++) {
        fds[i] = connect_to();
        json_decref(ask_on(fds[i], "{\"request\":\"ping\"}"));
    }
    int extra = connect_to();
    json_t *answer = read_answer(extra);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "server_resources");
    json_decref(answer);
    assert_null(read_line(extra));
    close(extra);
    close(fds[0]);
    for (int i = 0; i < 10; i++)
        turn();
    answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    for (int i = 1; i < most; i++)
        close(fds[i]);
}

static void assert_refused(int fd, const char *words)
{
    json_t *answer = read_answer(fd);
    const char *text = json_string_value(json_object_get(answer, "text"));
    if (!text || !strstr(text, words))
        fail_msg("\"%s\" lacks \"%s\"", text ? text : "", words);
    json_decref(answer);
    close(fd);
}

/* A descriptor on the admin socket, where the kernel can refuse one. */
static void descriptors_are_refused_to_the_sender(void **state)
{
    (void)state;
    int pair[2], passes = 0;
    socklen_t bytes = sizeof passes;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int known = getsockopt(pair[0], SOL_SOCKET, 83 /* SO_PASSRIGHTS */, &passes, &bytes);
    int fd = connect_to();
    ssize_t sent = admin_socket_pass(fd, "x", 1, pair[1]);
    close(fd);
    close(pair[0]);
    close(pair[1]);
    if (known < 0)
        skip();
    assert_int_equal(sent, -EPERM);
}

/* Silent connections of users who may only look. */
static void users_leave_places_for_root(void **state)
{
    (void)state;
    enum { USER = ADMIN_USER_CONNECTIONS_MAX };
    if (getuid() != 0)
        skip();
    int fds[ADMIN_CONNECTIONS_MAX];
    for (int i = 0; i < ADMIN_CONNECTIONS_MAX; i++) {
        if (i == USER)
            assert_refused(connect_as(4712), "uid 4712 has 8 connections");
        fds[i] = connect_as(4712 + (unsigned)i / USER);
        turn();
    }
    assert_refused(connect_as(4799), "as many as it may have");
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    supervisor.settings.admins[supervisor.settings.admin_count++] = 4711;
    int named = connect_as(4711);
    answer = ask_on(named, "{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    close(named);
    for (int i = 0; i < ADMIN_CONNECTIONS_MAX; i++)
        close(fds[i]);
}

/* Users who may change things have shares of their own, which none can take from another. */
static void administrators_leave_places_for_each_other(void **state)
{
    (void)state;
    enum { USER = ADMIN_USER_CONNECTIONS_MAX, ADMINS = 5 };
    if (getuid() != 0)
        skip();
    int fds[ADMINS * USER];
    for (unsigned i = 0; i < ADMINS; i++)
        supervisor.settings.admins[supervisor.settings.admin_count++] = 4711 + i;
    for (unsigned i = 0; i < ADMINS * USER; i++) {
        fds[i] = connect_as(4711 + i / USER);
        json_t *pong = ask_on(fds[i], "{\"request\":\"ping\"}");
        assert_true(json_is_true(json_object_get(pong, "ok")));
        json_decref(pong);
    }
    assert_refused(connect_as(4711), "uid 4711 has 8 connections");
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    int looks = connect_as(4799);
    answer = ask_on(looks, "{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    close(looks);
    for (unsigned i = 0; i < ADMINS * USER; i++)
        close(fds[i]);
}

/* When the one peer that there is will lose its place. */
static uint64_t peer_due(void)
{
    const struct admin_peer *peer = LIST_FIRST(&admin->peer_list, struct admin_peer, link);
    assert_non_null(peer);
    return uv_now(&supervisor.loop) + uv_timer_get_due_in(&peer->timer);
}

/* Sends a part of a line, after so long that a clock that began again would show. */
static void send_part(int fd, const char *part)
{
    usleep(5000);
    assert_int_equal(send(fd, part, strlen(part), MSG_NOSIGNAL), (ssize_t)strlen(part));
    for (int i = 0; i < 10; i++)
        turn();
}

static void a_line_has_its_time_from_its_first_byte(void **state)
{
    (void)state;
    int fd = connect_to();
    json_decref(ask_on(fd, "{\"request\":\"ping\"}"));
    uint64_t idle = peer_due();
    send_part(fd, "{\"request\"");
    uint64_t line = peer_due();
    assert_true(line > idle);
    for (int i = 0; i < 3; i++) {
        send_part(fd, " ");
        assert_int_equal(peer_due(), line);
    }
    /* The next line has the whole time again, also one that came with the end of this. */
    send_part(fd, ":\"ping\"}\n{");
    json_decref(read_answer(fd));
    uint64_t next = peer_due();
    assert_true(next > line);
    send_part(fd, " ");
    assert_int_equal(peer_due(), next);
    close(fd);
}

static void a_peer_that_never_reads_is_not_read_from(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 500; i++)
        add_client(i, true);
    int fd = connect_to();
    /* Far more answers than a socket buffers; the server must stop taking requests. */
    size_t sent = 0;
    int idle = 0;
    while (idle < 200 && sent < (8u << 20)) {
        ssize_t now = send(fd, "{\"request\":\"clients\"}\n", 22, MSG_NOSIGNAL);
        idle = now > 0 ? 0 : idle + 1;
        sent += now > 0 ? (size_t)now : 0;
        turn();
    }
    assert_true(sent < (2u << 20));
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    close(fd);
}

struct due {
    uv_timer_t *timer;
    uint64_t ms;
};

static void find_due(uv_handle_t *handle, void *context)
{
    struct due *due = context;
    if (handle->type == UV_TIMER && uv_is_active(handle)) {
        assert_null(due->timer);
        due->timer = (uv_timer_t *)handle;
        due->ms = uv_timer_get_due_in(due->timer);
    }
}

/* The minute is not waited for: the one timer that runs is due in so long, and is made due now. */
static void a_peer_that_is_silent_for_a_minute_is_closed(void **state)
{
    (void)state;
    int fd = connect_to();
    json_decref(ask_on(fd, "{\"request\":\"ping\"}"));
    for (int i = 0; i < 10; i++)
        turn();
    struct due due = {0};
    uv_walk(&supervisor.loop, find_due, &due);
    assert_non_null(due.timer);
    assert_in_range(due.ms, 50000, 60000);
    uv_timer_set_repeat(due.timer, 1);
    assert_int_equal(uv_timer_again(due.timer), 0);
    assert_null(read_line(fd));
    close(fd);
}

static void a_living_servers_socket_is_not_taken(void **state)
{
    (void)state;
    struct admin *second;
    struct error why = {0};
    assert_int_equal(admin_open(&second, &supervisor, &why), error_from_errno(-EADDRINUSE));
    assert_null(second);
    assert_non_null(strstr(why.text, path));
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

static void a_dead_servers_socket_is_replaced_and_a_file_is_not(void **state)
{
    (void)state;
    struct admin *second;
    char other[128];
    struct error why = {0};
    snprintf(other, sizeof other, "%s/other", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, other);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    strcpy(supervisor.settings.admin_socket, other);
    assert_int_equal(admin_open(&second, &supervisor, &why), 0);
    admin_close(&second);
    assert_int_equal(access(other, F_OK), -1);
    FILE *file = fopen(other, "we");
    fclose(file);
    assert_int_equal(admin_open(&second, &supervisor, &why), error_from_errno(-EADDRINUSE));
    assert_int_equal(access(other, F_OK), 0);
    unlink(other);
    memset(supervisor.settings.admin_socket, 'x', 200);
    assert_int_equal(admin_open(&second, &supervisor, &why), error_from_errno(-ENAMETOOLONG));
}

static void another_servers_socket_is_left_at_the_end(void **state)
{
    (void)state;
    /* Somebody removed ours and listens there now. */
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    admin_close(&admin);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_socket_file_is_for_owner_and_group),
        CASE(ping_and_version),
        CASE(several_requests_of_one_connection_are_answered_in_order),
        CASE(a_request_in_single_bytes),
        CASE(malformed_requests_are_refused_in_words),
        CASE(nesting_beyond_any_stack),
        CASE(a_line_at_its_longest),
        CASE(status_shows_the_state_of_devices),
        CASE(clients_show_asked_and_granted),
        CASE(a_worker_that_does_not_answer_is_not_waited_for),
        CASE(a_peer_that_leaves_while_workers_are_asked),
        CASE(an_end_while_workers_are_asked),
        CASE(a_thousand_clients_in_one_answer),
        CASE(kill_is_for_root_and_those_named),
        CASE(a_users_clients_are_killed_and_nobody_elses),
        CASE(all_clients_are_killed_by_one_request),
        CASE(one_gpu_is_drained_or_all_are),
        CASE(reload_is_for_root_and_says_why_not),
        CASE(a_reload_under_way_is_answered_when_it_is_over),
        CASE(others_may_look_but_not_kill),
        CASE(connections_are_limited),
        CASE(users_leave_places_for_root),
        CASE(administrators_leave_places_for_each_other),
        CASE(a_line_has_its_time_from_its_first_byte),
        CASE(descriptors_are_refused_to_the_sender),
        CASE(a_peer_that_never_reads_is_not_read_from),
        CASE(a_peer_that_is_silent_for_a_minute_is_closed),
        CASE(a_living_servers_socket_is_not_taken),
        CASE(a_dead_servers_socket_is_replaced_and_a_file_is_not),
        CASE(another_servers_socket_is_left_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
