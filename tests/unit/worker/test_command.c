/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Descriptors that an honest library can't have written end their client, and nobody else. */
#include "tests/unit/worker/harness.h"

#include "common/error.h"

enum { GRANULE = FAKE_GRANULE };

static struct peer *good, *bad;
static uint32_t function;
static uint64_t device, host;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    good = peer_attach(1);
    bad = peer_attach(2);
    peer_load_text(bad, 1, harness_ptx, 0);
    function = peer_function(bad, 1, "kernel");
    device = peer_map(bad, 0, GRANULE);
    host = peer_host_map(bad, 0, 4096);
    return 0;
}

static int teardown(void **state)
{
    peer_detach(good);
    peer_detach(bad);
    return harness_stop(state);
}

/* The bad client pushes this; it is ended with the error and a sentence that names the field. */
static void expect(const void *command, uint32_t error, const char *names)
{
    uint32_t calls = fake_count(FAKE_LAUNCH) + fake_count(FAKE_COPY) + fake_count(FAKE_FILL);
    peer_push(bad, 0, command);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    assert_int_equal(harness.message.header.client, 2);
    const struct proto_worker_misbehaved *said = harness.message.body;
    assert_string_equal(error_name(said->error), error_name(error));
    if (!strstr(said->text, names))
        print_message("said: %s\n", said->text);
    assert_non_null(strstr(said->text, names));
    assert_non_null(strstr(said->text, "client 2, stream 0, command 1"));
    assert_int_equal(fake_count(FAKE_LAUNCH) + fake_count(FAKE_COPY) + fake_count(FAKE_FILL),
                     calls);
    /* Its rings are no longer read; the other client's are. */
    peer_push_nop(bad, 0);
    assert_int_equal(peer_wait(good, 0, peer_push_nop(good, 0)), 0);
    assert_int_equal(peer_completed(bad, 0), 0);
    assert_false(harness_has_message(20));
}

static void unknown_command(void **state)
{
    (void)state;
    struct proto_command_nop nop = {.opcode = 77};
    expect(&nop, PROTO_ERROR_PROTOCOL_VIOLATION, "unknown command");
}

static void reserved_command(void **state)
{
    (void)state;
    struct proto_command_nop nop = {.opcode = PROTO_COMMAND_LIBRARY_CALL};
    expect(&nop, PROTO_ERROR_PROTOCOL_VIOLATION, "library_call is reserved");
}

static void reserved_field(void **state)
{
    (void)state;
    struct proto_command_nop nop = {.opcode = PROTO_COMMAND_NOP, .flags = 1};
    expect(&nop, PROTO_ERROR_PROTOCOL_VIOLATION, "flags");
}

static void unknown_function(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function + 1000000);
    expect(&launch, PROTO_ERROR_INVALID_HANDLE, "launch.function");
}

static void function_zero(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(0);
    expect(&launch, PROTO_ERROR_INVALID_HANDLE, "launch.function");
}

static void too_many_threads(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function);
    launch.block[0] = 257;
    launch.block[1] = launch.block[2] = 1;
    expect(&launch, PROTO_ERROR_INVALID_VALUE, "launch.block: 257");
}

static void thread_product_does_not_overflow(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function);
    launch.block[0] = launch.block[1] = launch.block[2] = 1024;
    expect(&launch, PROTO_ERROR_INVALID_VALUE, "launch.block: 1073741824");
}

static void wrong_parameter_bytes(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function);
    launch.parameter_bytes = 17;
    expect(&launch, PROTO_ERROR_INVALID_VALUE, "launch.parameter_bytes: 17");
}

static void too_much_shared_memory(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(function);
    launch.shared_bytes = 4097;
    expect(&launch, PROTO_ERROR_INVALID_VALUE, "launch.shared_bytes: 4097");
}

static void parameters_outside_the_arena(void **state)
{
    (void)state;
    pthread_mutex_lock(&fake.lock);
    fake.param_count = 1;
    fake.param_size[0] = 64;
    pthread_mutex_unlock(&fake.lock);
    peer_load_text(bad, 2, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(bad, 2, "kernel_long"));
    launch.parameter_bytes = 64;
    launch.parameter_offset = PROTO_RING_ARENA_BYTES - 63;
    expect(&launch, PROTO_ERROR_INVALID_VALUE, "launch.parameter_offset");
}

static struct proto_command_copy copy_of(uint64_t destination, uint64_t source, uint64_t count)
{
    return (struct proto_command_copy){
        .opcode = PROTO_COMMAND_COPY, .destination = destination, .source = source, .count = count};
}

static void copy_past_the_end(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(device + GRANULE - 4095, host, 4096);
    expect(&copy, PROTO_ERROR_INVALID_HANDLE, "copy.destination");
}

static void copy_from_before_the_start(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(device, host - 1, 16);
    expect(&copy, PROTO_ERROR_INVALID_HANDLE, "copy.source");
}

static void copy_sum_does_not_overflow(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(device + 16, host, UINT64_MAX - 8);
    expect(&copy, PROTO_ERROR_INVALID_HANDLE, "copy.destination");
}

static void copy_from_another_client(void **state)
{
    (void)state;
    uint64_t theirs = peer_map(good, 0, GRANULE);
    struct proto_command_copy copy = copy_of(device, theirs, 16);
    expect(&copy, PROTO_ERROR_INVALID_HANDLE, "copy.source");
}

static void copy_to_the_worker_itself(void **state)
{
    (void)state;
    static uint64_t precious = 42;
    struct proto_command_copy copy = copy_of((uint64_t)(uintptr_t)&precious, host, 8);
    expect(&copy, PROTO_ERROR_INVALID_HANDLE, "copy.destination");
    assert_int_equal(precious, 42);
}

/* A piece of memory that lies on both sides of a multiple of PROTO_SLICE_BYTES. */
static uint64_t map_over_edge(void)
{
    uint64_t edge = PROTO_SLICE_BYTES - bad->device_base % PROTO_SLICE_BYTES;
    return peer_map(bad, edge - GRANULE, 2 * GRANULE);
}

static void copy_to_both_sides_of_an_edge(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(map_over_edge() + GRANULE - 1, device, 2);
    expect(&copy, PROTO_ERROR_PROTOCOL_VIOLATION, "copy.destination");
}

static void copy_from_both_sides_of_an_edge(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(device, map_over_edge() + GRANULE - 4095, 4096);
    expect(&copy, PROTO_ERROR_PROTOCOL_VIOLATION, "copy.source");
}

static void fill_of_both_sides_of_an_edge(void **state)
{
    (void)state;
    struct proto_command_fill fill = {.opcode = PROTO_COMMAND_FILL,
                                      .destination = map_over_edge() + GRANULE - 4,
                                      .count = 2,
                                      .width = 4};
    expect(&fill, PROTO_ERROR_PROTOCOL_VIOLATION, "fill.destination");
}

static void copy_from_both_sides_of_a_registrations_edge(void **state)
{
    (void)state;
    uint64_t edge = PROTO_REGISTRATION_BYTES - bad->host_base % PROTO_REGISTRATION_BYTES;
    uint64_t there = peer_host_map(bad, edge - 4096, 8192);
    struct proto_command_copy copy = copy_of(device, there + 4095, 2);
    expect(&copy, PROTO_ERROR_PROTOCOL_VIOLATION, "copy.source");
}

static void overlapping_copy(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(device + 8, device, 16);
    expect(&copy, PROTO_ERROR_INVALID_VALUE, "overlap");
}

static struct proto_command_fill fill_of(uint64_t destination, uint64_t count, uint32_t width)
{
    return (struct proto_command_fill){
        .opcode = PROTO_COMMAND_FILL, .destination = destination, .count = count, .width = width};
}

static void fill_width(void **state)
{
    (void)state;
    struct proto_command_fill fill = fill_of(device, 1, 3);
    expect(&fill, PROTO_ERROR_INVALID_VALUE, "fill.width: 3");
}

static void fill_alignment(void **state)
{
    (void)state;
    struct proto_command_fill fill = fill_of(device + 2, 1, 4);
    expect(&fill, PROTO_ERROR_INVALID_VALUE, "fill.destination");
}

static void fill_product_does_not_overflow(void **state)
{
    (void)state;
    struct proto_command_fill fill = fill_of(device, (UINT64_C(1) << 62) + 1, 4);
    expect(&fill, PROTO_ERROR_INVALID_HANDLE, "fill.destination");
}

static void fill_past_the_end(void **state)
{
    (void)state;
    struct proto_command_fill fill = fill_of(device, GRANULE / 4 + 1, 4);
    expect(&fill, PROTO_ERROR_INVALID_HANDLE, "fill.destination");
}

static void unknown_event(void **state)
{
    (void)state;
    struct proto_command_event_record record = {.opcode = PROTO_COMMAND_EVENT_RECORD, .event = 9};
    expect(&record, PROTO_ERROR_INVALID_HANDLE, "event_record.event");
}

static struct proto_command_wait wait_on(uint32_t stream, uint32_t link, uint64_t value)
{
    return (struct proto_command_wait){.opcode = PROTO_COMMAND_WAIT,
                                       .count = 1,
                                       .on[0].stream = stream,
                                       .on[0].link = link,
                                       .on[0].value = value};
}

static void wait_on_unknown_stream(void **state)
{
    (void)state;
    struct proto_command_wait wait = wait_on(STREAMS, 0, 1);
    expect(&wait, PROTO_ERROR_INVALID_HANDLE, "wait.stream0");
}

static void wait_on_unknown_link(void **state)
{
    (void)state;
    struct proto_command_wait wait = wait_on(0, 1, 1);
    expect(&wait, PROTO_ERROR_INVALID_HANDLE, "wait.link0");
}

static void wait_on_a_stream_that_never_was(void **state)
{
    (void)state;
    struct proto_command_wait wait = wait_on(3, 0, 1);
    expect(&wait, PROTO_ERROR_INVALID_HANDLE, "never reach");
}

static void wait_on_oneself(void **state)
{
    (void)state;
    struct proto_command_wait wait = wait_on(0, 0, 1);
    expect(&wait, PROTO_ERROR_DEPENDENCY_CIRCLE, "its own value");
}

static void wait_count(void **state)
{
    (void)state;
    struct proto_command_wait wait = wait_on(0, 0, 0);
    wait.count = 4;
    expect(&wait, PROTO_ERROR_PROTOCOL_VIOLATION, "wait.count");
}

static void tail_that_jumps_ahead(void **state)
{
    (void)state;
    uint32_t *tail = &bad->producers[0].ring.header->tail;
    __atomic_store_n(tail, PROTO_RING_ENTRIES + 1, __ATOMIC_SEQ_CST);
    doorbell_ring(ring_client_header(bad->rings.base), 0, bad->doorbell);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    const struct proto_worker_misbehaved *said = harness.message.body;
    assert_non_null(strstr(said->text, "ring_header.tail"));
    assert_int_equal(peer_wait(good, 0, peer_push_nop(good, 0)), 0);
}

static void command_to_freed_memory(void **state)
{
    (void)state;
    struct proto_worker_unmap unmap = {.address = device, .count = GRANULE};
    harness_ask(PROTO_WORKER_UNMAP, 2, &unmap, PROTO_DONE);
    struct proto_command_fill fill = fill_of(device, 1, 4);
    expect(&fill, PROTO_ERROR_INVALID_HANDLE, "fill.destination");
}

static void launch_of_an_unloaded_module(void **state)
{
    (void)state;
    struct proto_module_unload unload = {.module = 1};
    harness_ask(PROTO_MODULE_UNLOAD, 2, &unload, PROTO_DONE);
    struct proto_command_launch launch = peer_launch(function);
    expect(&launch, PROTO_ERROR_INVALID_HANDLE, "launch.function");
}

static void borders_are_allowed(void **state)
{
    (void)state;
    struct proto_command_copy copy = copy_of(device + GRANULE - 4096, host, 4096);
    peer_push(bad, 0, &copy);
    struct proto_command_copy touching = copy_of(device + 16, device, 16);
    peer_push(bad, 0, &touching);
    struct proto_command_copy nothing = copy_of(0, 0, 0);
    peer_push(bad, 0, &nothing);
    struct proto_command_fill fill = fill_of(device, GRANULE / 2, 2);
    peer_push(bad, 0, &fill);
    struct proto_command_launch launch = peer_launch(function);
    launch.block[0] = 256;
    launch.block[1] = launch.block[2] = 1;
    launch.shared_bytes = 4096;
    peer_push(bad, 0, &launch);
    struct proto_function_set set = {.function = function, .attribute = 1, .value = 8192};
    harness_ask(PROTO_FUNCTION_SET, 2, &set, PROTO_DONE);
    launch.shared_bytes = 8192;
    uint64_t value = peer_push(bad, 0, &launch);
    assert_int_equal(peer_wait(bad, 0, value), 0);
    assert_int_equal(bad->producers[0].ring.status->error_count, 0);
    assert_false(harness_has_message(0));
}

/* The call takes the context's lock, so a client must not cause one with each request. */
static void the_driver_is_told_of_dynamic_shared_memory_once(void **state)
{
    (void)state;
    struct proto_function_set set = {.function = function, .attribute = 1, .value = 8192};
    harness_ask(PROTO_FUNCTION_SET, 2, &set, PROTO_DONE);
    set.value = 65536;
    harness_ask(PROTO_FUNCTION_SET, 2, &set, PROTO_DONE);
    set.value = 16384;
    harness_ask(PROTO_FUNCTION_SET, 2, &set, PROTO_DONE);
    assert_int_equal(fake_count(FAKE_ATTRIBUTE), 1);
    assert_int_equal(fake_call(FAKE_ATTRIBUTE, 0).a, 65536);
    set.value = 65537;
    harness_ask(PROTO_FUNCTION_SET, 2, &set, PROTO_FAILED);
    /* The latest value of the client's holds. */
    struct proto_command_launch launch = peer_launch(function);
    launch.shared_bytes = 16385;
    expect(&launch, PROTO_ERROR_INVALID_VALUE, "16385");
}

static void variables_outside_the_window_are_the_loaders_alone(void **state)
{
    (void)state;
    struct proto_global_get get = {.module = 1};
    harness_send(PROTO_GLOBAL_GET, 2, &get, "outside", 7, NULL, 0);
    assert_int_equal(harness_receive(), PROTO_GLOBAL_INFO);
    struct proto_global_info info = *(const struct proto_global_info *)harness.message.body;
    struct proto_command_copy copy = copy_of(info.address, host, info.count);
    assert_int_equal(peer_wait(bad, 0, peer_push(bad, 0, &copy)), 0);
    assert_int_equal(fake_count(FAKE_COPY), 1);
    peer_push(good, 0, &copy);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    assert_int_equal(harness.message.header.client, 1);
    assert_int_equal(fake_count(FAKE_COPY), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(unknown_command),
        T(reserved_command),
        T(reserved_field),
        T(unknown_function),
        T(function_zero),
        T(too_many_threads),
        T(thread_product_does_not_overflow),
        T(wrong_parameter_bytes),
        T(too_much_shared_memory),
        T(parameters_outside_the_arena),
        T(copy_past_the_end),
        T(copy_from_before_the_start),
        T(copy_sum_does_not_overflow),
        T(copy_from_another_client),
        T(copy_to_the_worker_itself),
        T(overlapping_copy),
        T(copy_to_both_sides_of_an_edge),
        T(copy_from_both_sides_of_an_edge),
        T(copy_from_both_sides_of_a_registrations_edge),
        T(fill_of_both_sides_of_an_edge),
        T(fill_width),
        T(fill_alignment),
        T(fill_product_does_not_overflow),
        T(fill_past_the_end),
        T(unknown_event),
        T(wait_on_unknown_stream),
        T(wait_on_unknown_link),
        T(wait_on_a_stream_that_never_was),
        T(wait_on_oneself),
        T(wait_count),
        T(tail_that_jumps_ahead),
        T(command_to_freed_memory),
        T(launch_of_an_unloaded_module),
        T(borders_are_allowed),
        T(the_driver_is_told_of_dynamic_shared_memory_once),
        T(variables_outside_the_window_are_the_loaders_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
