/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Traces read from memory and written as trace events; the JSON is read back by jansson. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/tools/trace/perfetto.h"
#include "client/tools/trace/recording.h"
#include "client/tools/tracing.h"
#include "common/ipc/shm.h"

#define START UINT64_C(5000000000000)
enum { ROOM = 20 };

static struct shm memory;
static struct proto_trace_header *header;
static struct proto_trace_record *records;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(shm_create(&memory, "trace", 128 + ROOM * 64), 0);
    header = memory.base;
    records = (void *)(header + 1);
    *header = (struct proto_trace_header){.version = 1,
                                          .record_bytes = 64,
                                          .capacity = ROOM,
                                          .started = START,
                                          .ended = START + 1000000,
                                          .mode = 2,
                                          .sm_groups = 5,
                                          .sm_group_multiprocessors = 8,
                                          .remainder = 4};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shm_release(&memory);
    return 0;
}

static struct proto_trace_record *add(uint32_t kind, uint32_t client, uint32_t value, uint64_t from,
                                      uint64_t to)
{
    struct proto_trace_record *record = &records[header->next++];
    *record = (struct proto_trace_record){
        .kind = kind, .client = client, .value = value, .from = START + from, .to = START + to};
    return record;
}

static void add_span(uint32_t client, uint32_t stream, uint64_t from, uint64_t to,
                     uint64_t sm_groups)
{
    struct proto_trace_record *record = add(RECORDING_SPAN, client, 3, from, to);
    record->stream = stream;
    record->sm_groups[0] = sm_groups;
}

static struct recording read_memory(void)
{
    struct recording recording;
    struct error why = {0};
    if (recording_read(&recording, memory.fd, &why))
        fail_msg("%s", why.text);
    return recording;
}

static void refused(const char *word)
{
    struct recording recording;
    struct error why = {0};
    assert_true(recording_read(&recording, memory.fd, &why));
    if (!strstr(why.text, word))
        fail_msg("no \"%s\" in: %s", word, why.text);
}

/* ---- reading ---- */

static void records_come_in_order_of_time(void **state)
{
    (void)state;
    add_span(7, 0, 500, 600, 1);
    add_span(8, 0, 100, 700, 1);
    add(RECORDING_LEASE, 8, 0, 300, 400);
    struct recording recording = read_memory();
    assert_int_equal(recording.count, 3);
    assert_int_equal(recording.records[0].client, 8);
    assert_int_equal(recording.records[1].kind, RECORDING_LEASE);
    assert_int_equal(recording.records[2].client, 7);
    assert_int_equal(recording.lost + recording.damaged, 0);
    assert_int_equal(recording.ended, START + 1000000);
    recording_free(&recording);
}

static void records_without_room_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < ROOM; i++)
        add_span(7, 0, 100, 200, 1);
    header->next = ROOM + 11;
    struct recording recording = read_memory();
    assert_int_equal(recording.count, ROOM);
    assert_int_equal(recording.lost, 11);
    recording_free(&recording);
    header->capacity = UINT64_MAX; /* more than the memory has */
    header->next = UINT64_MAX;
    recording = read_memory();
    assert_int_equal(recording.count, ROOM);
    recording_free(&recording);
}

static void impossible_records_are_left_out_and_counted(void **state)
{
    (void)state;
    add_span(7, 0, 100, 200, 1);
    add(0, 7, 0, 100, 200);                 /* begun, not finished */
    add(7, 7, 0, 100, 200);                 /* no such kind */
    add(RECORDING_SPAN, 0, 0, 100, 200);    /* nobody's */
    add(RECORDING_LEASE, 7, 0, 200, 100);   /* backwards */
    add(RECORDING_LEASE, 7, 256, 100, 200); /* no such lease group */
    add(RECORDING_HOLD, 7, 4, 100, 200);    /* no such reason */
    add(RECORDING_MODE, 0, 4, 100, 100);    /* no such mode */
    add(RECORDING_LEASE, 7, 0, 0, 0)->from = START - 1;
    add(RECORDING_LEASE, 7, 0, 0, 0)->to = UINT64_MAX;
    add_span(7, PROTO_STREAMS_MAX, 100, 200, 1);
    struct recording recording = read_memory();
    assert_int_equal(recording.count, 1);
    assert_int_equal(recording.damaged, 10);
    recording_free(&recording);
}

static void a_trace_that_was_not_ended_ends_with_its_last_record(void **state)
{
    (void)state;
    add_span(7, 0, 100, 900, 1);
    add_span(7, 0, 900, 950, 1);
    header->ended = 0;
    struct recording recording = read_memory();
    assert_int_equal(recording.ended, START + 950);
    recording_free(&recording);
    header->next = 0;
    recording = read_memory();
    assert_int_equal(recording.ended, START);
    recording_free(&recording);
}

static void memory_of_another_form_is_refused_in_words(void **state)
{
    (void)state;
    struct recording recording;
    struct error why;
    header->version = 0;
    refused("had not begun");
    header->version = 2;
    refused("another version");
    header->version = 1;
    header->record_bytes = 72;
    refused("another version");
    header->record_bytes = 64;
    header->mode = 4;
    refused("another version");
    header->mode = 0;
    header->ended = START - 1;
    refused("another version");
    int fd = memfd_create("small", MFD_CLOEXEC);
    assert_int_equal(recording_read(&recording, fd, &why), error_from_errno(-EBADF));
    assert_int_equal(ftruncate(fd, 8192), 0);
    assert_int_equal(recording_read(&recording, fd, &why), error_from_errno(-EBADF));
    assert_non_null(strstr(why.text, "sealed"));
    close(fd);
    assert_int_equal(recording_read(&recording, -1, &why), error_from_errno(-EBADF));
}

/* ---- writing ---- */

static json_t *written(const char *answer_text)
{
    struct recording recording = read_memory();
    json_t *answer = json_loads(answer_text, 0, NULL);
    char *text = NULL;
    size_t bytes = 0;
    assert_non_null(answer);
    FILE *file = open_memstream(&text, &bytes);
    assert_int_equal(perfetto_write(file, &recording, answer), 0);
    fclose(file);
    json_error_t error;
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("%s at %d: %s", error.text, error.position, text);
    free(text);
    json_decref(answer);
    recording_free(&recording);
    return json;
}

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text ? text : "";
}

/* The n-th event of a phase whose name begins so, in this process; NULL: there is none. */
static const json_t *find(const json_t *json, const char *phase, int pid, const char *name, int n)
{
    const json_t *events = json_object_get(json, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), phase) == 0 &&
            json_integer_value(json_object_get(event, "pid")) == pid &&
            strncmp(text_of(event, "name"), name, strlen(name)) == 0 && n-- == 0)
            return event;
    }
    return NULL;
}

static void at(const json_t *event, double ts, double duration)
{
    assert_non_null(event);
    assert_true(json_number_value(json_object_get(event, "ts")) == ts);
    assert_true(json_number_value(json_object_get(event, "dur")) == duration);
}

static const char *argument_name(const json_t *event)
{
    return text_of(json_object_get(event, "args"), "name");
}

#define NO_CLIENTS "{\"gpu\":0,\"name\":\"G\",\"trouble\":null,\"clients\":[]}"

static void an_empty_trace_is_a_trace(void **state)
{
    (void)state;
    json_t *json = written(NO_CLIENTS);
    const json_t *other = json_object_get(json, "otherData");
    assert_string_equal(text_of(other, "mode"), "fair");
    assert_true(json_number_value(json_object_get(other, "seconds")) == 0.001);
    assert_string_equal(argument_name(find(json, "M", 1, "process_name", 0)), "GPU 0: G");
    assert_null(find(json, "X", 1, "", 0));
    json_decref(json);
}

static void names_are_escaped(void **state)
{
    (void)state;
    add_span(3, 0, 0, 10, 1);
    json_t *json =
        written("{\"gpu\":1,\"name\":\"G \\\"1\\\"\",\"trouble\":\"\\u0007 \\\\\",\"clients\":"
                "[{\"client\":3,\"name\":\"a\\\"b\\\\\\n\\u0001 \\u00fc\",\"pid\":77,"
                "\"uid\":5}]}");
    assert_string_equal(argument_name(find(json, "M", 4, "process_name", 0)),
                        "a\"b\\\n\x01 \xc3\xbc (client 3, pid 77, uid 5)");
    assert_string_equal(argument_name(find(json, "M", 1, "process_name", 0)), "GPU 1: G \"1\"");
    assert_string_equal(text_of(json_object_get(json, "otherData"), "trouble"), "\a \\");
    assert_string_equal(text_of(find(json, "X", 1, "", 0), "name"), "a\"b\\\n\x01 \xc3\xbc");
    json_decref(json);
}

static void long_names_stay_whole(void **state)
{
    (void)state;
    char name[601] = "", answer[1000];
    for (int i = 0; i < 300; i++)
        memcpy(name + i * 2, "\xc3\xbc", 3);
    snprintf(answer, sizeof answer,
             "{\"gpu\":0,\"name\":\"G\",\"clients\":[{\"client\":3,\"name\":\"%s\"}]}", name);
    add_span(3, 0, 0, 10, 1);
    json_t *json = written(answer);
    assert_string_equal(text_of(find(json, "X", 1, "", 0), "name"), name);
    json_decref(json);
}

static void spans_stand_on_their_streams_with_their_multiprocessors(void **state)
{
    (void)state;
    add_span(3, 0, 1000, 2500, 0x1f);
    add_span(3, 4, 2001, 2002, 0x0d);
    json_t *json = written(NO_CLIENTS);
    const json_t *first = find(json, "X", 4, "batch", 0), *second = find(json, "X", 4, "batch", 1);
    at(first, 1.0, 1.5);
    at(second, 2.001, 0.001);
    assert_int_equal(json_integer_value(json_object_get(first, "tid")), 1);
    assert_int_equal(json_integer_value(json_object_get(second, "tid")), 5);
    const json_t *arguments = json_object_get(second, "args");
    assert_string_equal(text_of(arguments, "sm_groups"), "0, 2-3");
    assert_string_equal(text_of(arguments, "atoms"), "0, 2-3");
    assert_int_equal(json_integer_value(json_object_get(arguments, "multiprocessors")), 24);
    assert_int_equal(json_integer_value(json_object_get(arguments, "commands")), 3);
    arguments = json_object_get(first, "args");
    assert_int_equal(json_integer_value(json_object_get(arguments, "multiprocessors")), 36);
    assert_string_equal(argument_name(find(json, "M", 4, "process_name", 0)), "client 3");
    assert_string_equal(argument_name(find(json, "M", 4, "thread_name", 1)), "stream 4");
    json_decref(json);
}

static void recoveries_stand_in_the_process_of_whom_they_concern(void **state)
{
    (void)state;
    add_span(3, 0, 0, 1000, 1);
    *add(RECORDING_SPAN, 3, 0, 0, 0) = (struct proto_trace_record){0}; /* its writer was lost */
    add(RECORDING_RECOVERY, 0, 0, 2000, 5000);
    add(RECORDING_RECOVERY, 3, 0, 2000, 6000);
    json_t *json = written(NO_CLIENTS);
    const json_t *device = find(json, "X", 1, "recovers", 0);
    const json_t *client = find(json, "X", 4, "recovers", 0);
    at(device, 2, 3);
    at(client, 2, 4);
    assert_string_equal(text_of(device, "cat"), "recovery");
    assert_string_equal(text_of(client, "cat"), "recovery");
    assert_string_equal(argument_name(find(json, "M", 1, "thread_name", 0)), "recovery");
    assert_string_equal(argument_name(find(json, "M", 4, "thread_name", 1)), "recovery");
    json_decref(json);
}

static void clients_are_shown_on_their_sets_of_multiprocessors(void **state)
{
    (void)state;
    add_span(3, 0, 0, 4000, 1);
    add_span(3, 1, 1000, 2000, 1); /* the same client: nothing changes */
    add_span(9, 0, 3000, 5000, 1);
    add_span(9, 0, 6000, 7000, 1);
    add_span(3, 0, 7000, 8000, 1); /* as the other ends: not beside it */
    add_span(9, 0, 0, 1000, 2);
    json_t *json = written(NO_CLIENTS);
    at(find(json, "X", 1, "client 3", 0), 0, 3);
    at(find(json, "X", 1, "client 3 + client 9", 0), 3, 1);
    at(find(json, "X", 1, "client 9", 1), 4, 1);
    at(find(json, "X", 1, "client 9", 2), 6, 1);
    at(find(json, "X", 1, "client 3", 2), 7, 1); /* the second is the one with 9 */
    at(find(json, "X", 1, "client 9", 0), 0, 1);
    assert_null(find(json, "X", 1, "client 9", 3));
    static const double counted[][2] = {{0, 0}, {0, 2}, {1, 1}, {3, 2},
                                        {4, 1}, {5, 0}, {6, 1}, {8, 0}};
    for (int i = 0; i < 8; i++) {
        const json_t *counter = find(json, "C", 1, "clients in flight", i);
        assert_non_null(counter);
        assert_true(json_number_value(json_object_get(counter, "ts")) == counted[i][0]);
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(counter, "args"), "value")),
            counted[i][1]);
    }
    assert_null(find(json, "C", 1, "clients in flight", 8));
    json_decref(json);
}

static void leases_holds_shares_and_modes(void **state)
{
    (void)state;
    add(RECORDING_LEASE, 3, 0, 1000, 3000);
    add(RECORDING_LEASE, 9, 2, 2000, 4000);
    add(RECORDING_HOLD, 3, 1, 3000, 3500);
    add(RECORDING_MODE, 0, 1, 4000, 4000);
    add(RECORDING_SM_GROUPS, 9, 12, 4500, 4500)->sm_groups[0] = 0x11;
    add(RECORDING_SM_GROUPS, 9, 0, 4600, 4600);
    json_t *json = written("{\"gpu\":0,\"name\":\"G\",\"trouble\":null,\"clients\":"
                           "[{\"client\":9,\"name\":\"n\",\"pid\":null,\"uid\":5}]}");
    const json_t *lease = find(json, "X", 1, "client 3", 0),
                 *other = find(json, "X", 1, "n (client 9)", 0);
    at(lease, 1, 2);
    at(other, 2, 2);
    assert_int_equal(json_integer_value(json_object_get(other, "tid")) -
                         json_integer_value(json_object_get(lease, "tid")),
                     2);
    assert_string_equal(argument_name(find(json, "M", 1, "thread_name", 1)),
                        "leases, lease group 2");
    at(find(json, "X", 4, "duty", 0), 3, 0.5);
    assert_string_equal(argument_name(find(json, "M", 4, "thread_name", 0)), "held: duty");
    const json_t *mode = find(json, "i", 1, "mode strict", 0);
    assert_true(json_number_value(json_object_get(mode, "ts")) == 4);
    assert_non_null(find(json, "i", 10, "SM groups 0, 4", 0));
    assert_non_null(find(json, "i", 10, "SM groups none", 0));
    const json_t *counter = find(json, "C", 10, "multiprocessors", 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(counter, "args"), "value")),
                     12);
    json_decref(json);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < ROOM; i++)
        add_span(3, 0, i, i + 1, 1);
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    struct recording recording = read_memory();
    json_t *answer = json_loads(NO_CLIENTS, 0, NULL);
    assert_int_equal(perfetto_write(full, &recording, answer), -EIO);
    fclose(full);
    json_decref(answer);
    recording_free(&recording);
}

static void a_trace_lasts_for_seconds_or_a_time(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "-1",  "0",  "0.0009", "601", "600.1", "1e2",
                                      "inf", "nan", "5m", "1.2.3",  ".",   "0x10",  " 5"};
    double seconds = 0;
    assert_int_equal(tracing_parse_seconds("2.5", &seconds), 0);
    assert_true(seconds == 2.5);
    assert_int_equal(tracing_parse_seconds("1.5s", &seconds), 0);
    assert_true(seconds == 1.5);
    assert_int_equal(tracing_parse_seconds("10min", &seconds), 0);
    assert_true(seconds == 600);
    assert_int_equal(tracing_parse_seconds("600", &seconds), 0);
    assert_int_equal(tracing_parse_seconds("0.001", &seconds), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tracing_parse_seconds(bad[i], &seconds) != -EINVAL)
            fail_msg("\"%s\" was taken", bad[i]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(records_come_in_order_of_time),
        T(records_without_room_are_counted),
        T(impossible_records_are_left_out_and_counted),
        T(a_trace_that_was_not_ended_ends_with_its_last_record),
        T(memory_of_another_form_is_refused_in_words),
        T(an_empty_trace_is_a_trace),
        T(names_are_escaped),
        T(long_names_stay_whole),
        T(spans_stand_on_their_streams_with_their_multiprocessors),
        T(recoveries_stand_in_the_process_of_whom_they_concern),
        T(clients_are_shown_on_their_sets_of_multiprocessors),
        T(leases_holds_shares_and_modes),
        T(a_full_disk_is_an_error),
        T(a_trace_lasts_for_seconds_or_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
