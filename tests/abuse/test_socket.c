/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: another client's hello takes less than a second beside a close that lasts */
/*
 * Peers that misuse the socket: versions, lengths, descriptors, order, silence, numbers.
 * Beside each an honest neighbour computes, and nothing of it may be lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/neighbour.h"
#include "tests/support/patience.h"
#include "tests/support/raw.h"

static struct server *server;
static struct neighbour *neighbour;
static size_t fds_before;

static size_t settled_fds(size_t want)
{
    size_t count = 0;
    for (int i = 0; i < 500 && (count = server_fd_count(server_pid(server))) > want; i++)
        usleep(10000);
    return count;
}

static int start(void **state)
{
    (void)state;
    const char *args[] = {"--hello-timeout", "2", NULL};
    server = server_start(args, NULL);
    neighbour = neighbour_start(server);
    fds_before = server_fd_count(server_pid(server));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    /* The neighbour holds some of its own from round to round; what the culprits had must be gone.
     */
    size_t fds_after = settled_fds(fds_before + 4);
    assert_true(fds_after <= fds_before + 4);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
    return 0;
}

static void another_major_version_is_told_in_words(void **state)
{
    (void)state;
    struct raw raw;
    struct proto_hello hello = {.major = PROTO_MAJOR + 1, .minor = 0};
    raw_connect(&raw, server);
    assert_int_equal(raw_ask(&raw, PROTO_HELLO, &hello, NULL, 0, -1), PROTO_ERROR_PROTOCOL_VERSION);
    const struct proto_failed *failed = raw.reply.body;
    char versions[32];
    snprintf(versions, sizeof versions, "%d.", PROTO_MAJOR);
    assert_non_null(strstr(failed->text, versions));
    assert_true(raw_wait_end(&raw));
    raw_close(&raw);
}

static void every_truncation_of_a_message_ends_only_its_sender(void **state)
{
    (void)state;
    struct {
        struct proto_message_header header;
        struct proto_hello hello;
    } packet = {{.bytes = sizeof packet, .opcode = PROTO_HELLO, .serial = 1},
                {PROTO_MAJOR, PROTO_MINOR, 0}};
    for (size_t length = 1; length < sizeof packet; length++) {
        struct raw raw;
        raw_connect(&raw, server);
        raw_send(&raw, &packet, length, NULL, 0);
        assert_true(raw_wait_end(&raw));
        raw_close(&raw);
    }
}

static void oversized_messages_and_lying_lengths_end_their_sender(void **state)
{
    (void)state;
    static uint8_t big[PROTO_MESSAGE_MAX + 4096];
    const uint32_t claims[] = {0, 15, 16, sizeof big, UINT32_MAX};
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        struct raw raw;
        struct proto_message_header header = {
            .bytes = claims[i], .opcode = PROTO_HELLO, .serial = 1};
        memset(big, 0x41, sizeof big);
        memcpy(big, &header, sizeof header);
        raw_connect(&raw, server);
        raw_send(&raw, big, sizeof big, NULL, 0);
        assert_true(raw_wait_end(&raw));
        raw_close(&raw);
    }
}

static void unknown_and_misdirected_messages_end_their_sender(void **state)
{
    (void)state;
    const uint16_t opcodes[] = {
        0, 9, 999, 65535, PROTO_ATTACHED, PROTO_WORKER_ATTACH, PROTO_WORKER_FAULT, PROTO_ENDED};
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        struct raw raw;
        struct proto_message_header header = {
            .bytes = sizeof header, .opcode = opcodes[i], .serial = 1};
        raw_connect(&raw, server);
        raw_send(&raw, &header, sizeof header, NULL, 0);
        assert_true(raw_wait_end(&raw));
        raw_close(&raw);
    }
}

static void requests_before_attach_are_refused(void **state)
{
    (void)state;
    struct raw raw;
    struct proto_hello hello = {PROTO_MAJOR, PROTO_MINOR, 0};
    struct proto_memory_alloc alloc = {.count = 4096};
    raw_connect(&raw, server);
    assert_int_not_equal(raw_ask(&raw, PROTO_MEMORY_ALLOC, &alloc, NULL, 0, -1), 0);
    raw_close(&raw);
    raw_connect(&raw, server);
    assert_int_equal(raw_ask(&raw, PROTO_HELLO, &hello, NULL, 0, -1), 0);
    assert_int_not_equal(raw_ask(&raw, PROTO_MEMORY_ALLOC, &alloc, NULL, 0, -1), 0);
    raw_close(&raw);
}

static void descriptors_where_none_belong_are_closed(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 64; count *= 2) {
        struct raw raw;
        struct {
            struct proto_message_header header;
            struct proto_hello hello;
        } packet = {{.bytes = sizeof packet, .opcode = PROTO_HELLO, .serial = 1},
                    {PROTO_MAJOR, PROTO_MINOR, 0}};
        int fds[64];
        for (unsigned i = 0; i < count; i++)
            fds[i] = eventfd(0, EFD_CLOEXEC);
        raw_connect(&raw, server);
        raw_send(&raw, &packet, sizeof packet, fds, count);
        for (unsigned i = 0; i < count; i++)
            close(fds[i]);
        assert_true(raw_wait_end(&raw));
        raw_close(&raw);
    }
}

static void an_image_that_is_no_file_is_refused(void **state)
{
    (void)state;
    struct raw raw;
    struct proto_module_load load = {.count = 4096};
    int wrong[] = {eventfd(0, EFD_CLOEXEC), -1, raw_memfd("short", 5)};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    wrong[1] = ends[0];
    raw_attach(&raw, server, PROTO_UNSET);
    for (size_t i = 0; i < 3; i++) {
        uint32_t error = raw_ask(&raw, PROTO_MODULE_LOAD, &load, NULL, 0, wrong[i]);
        assert_int_not_equal(error, 0);
        assert_int_not_equal(error, PROTO_ERROR_CONNECTION_LOST);
        close(wrong[i]);
    }
    close(ends[1]);
    raw_close(&raw);
}

static struct proto_memory_info memory_of(struct raw *raw)
{
    struct proto_memory_query query;
    memset(&query, 0, sizeof query);
    assert_int_equal(raw_ask(raw, PROTO_MEMORY_QUERY, &query, NULL, 0, -1), 0);
    return *(const struct proto_memory_info *)raw->reply.body;
}

/* `used` is the client's own only where the device has more than its limit left: the neighbour's
 * memory is not free either. */
static void ask_for_too_much(uint64_t limit)
{
    struct raw raw;
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 4095, UINT64_C(1) << 63, UINT64_C(1) << 48,
                              (UINT64_C(1) << 44) + 1};
    raw_attach(&raw, server, limit);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct proto_memory_alloc device = {.count = sizes[i]};
        struct proto_host_alloc host = {.count = sizes[i]};
        assert_int_equal(raw_ask(&raw, PROTO_MEMORY_ALLOC, &device, NULL, 0, -1),
                         PROTO_ERROR_OUT_OF_MEMORY);
        assert_int_equal(raw_ask(&raw, PROTO_HOST_ALLOC, &host, NULL, 0, -1),
                         PROTO_ERROR_OUT_OF_MEMORY);
    }
    const struct proto_memory_info info = memory_of(&raw);
    if (limit != PROTO_UNSET)
        assert_int_equal(info.used, 0);
    assert_int_equal(info.host_used, 0);
    raw_close(&raw);
}

static void sizes_that_overflow_are_refused_by_name(void **state)
{
    (void)state;
    ask_for_too_much(PROTO_UNSET);
    ask_for_too_much(UINT64_C(64) << 20);
}

static void the_limit_holds_to_the_granule(void **state)
{
    (void)state;
    enum { MIB = 1 << 20 };
    struct raw raw;
    raw_attach(&raw, server, 64 * MIB);
    assert_int_equal(raw.attached.grant.allowance.memory.limit, 64 * MIB);
    assert_true(raw_alloc(&raw, 64 * MIB) != 0);
    assert_true(raw_alloc(&raw, 1) == 0);
    assert_int_equal(((const struct proto_failed *)raw.reply.body)->error,
                     PROTO_ERROR_OUT_OF_MEMORY);
    raw_close(&raw);
    raw_attach(&raw, server, 64 * MIB);
    assert_true(raw_alloc(&raw, 64 * MIB + 1) == 0);
    assert_true(raw_alloc(&raw, 62 * MIB) != 0);
    assert_true(raw_alloc(&raw, 2 * MIB) != 0);
    assert_true(raw_alloc(&raw, 1) == 0);
    raw_close(&raw);
}

static void unknown_handles_and_addresses_are_refused(void **state)
{
    (void)state;
    struct raw raw, other;
    raw_attach(&raw, server, PROTO_UNSET);
    raw_attach(&other, server, PROTO_UNSET);
    uint64_t theirs = raw_alloc(&other, 1 << 20);
    assert_true(theirs != 0);
    const uint64_t addresses[] = {
        0, 1, theirs, raw.attached.device_base, UINT64_MAX, raw.attached.host_base};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct proto_memory_free device = {.address = addresses[i]};
        struct proto_host_free host = {.address = addresses[i]};
        assert_int_equal(raw_ask(&raw, PROTO_MEMORY_FREE, &device, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_HOST_FREE, &host, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
    }
    const uint32_t handles[] = {1, 2, 77, 4096, UINT32_MAX};
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
        uint32_t h = handles[i];
        struct proto_module_unload unload = {.module = h};
        struct proto_function_get function = {.module = h};
        struct proto_global_get global = {.module = h};
        struct proto_function_set set = {.function = h, .attribute = 1, .value = 0};
        struct proto_occupancy_get occupancy = {.function = h, .block_threads = 32};
        struct proto_stream_destroy stream = {.stream = h};
        struct proto_event_destroy event = {.event = h};
        struct proto_event_elapsed elapsed = {.start = h, .end = h};
        struct proto_host_import share = {.client = h, .address = theirs};
        struct proto_link link = {.client = h};
        assert_int_equal(raw_ask(&raw, PROTO_MODULE_UNLOAD, &unload, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_FUNCTION_GET, &function, "f", 1, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_GLOBAL_GET, &global, "g", 1, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_FUNCTION_SET, &set, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_OCCUPANCY_GET, &occupancy, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_STREAM_DESTROY, &stream, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_EVENT_DESTROY, &event, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_equal(raw_ask(&raw, PROTO_EVENT_ELAPSED, &elapsed, NULL, 0, -1),
                         PROTO_ERROR_INVALID_HANDLE);
        assert_int_not_equal(raw_ask(&raw, PROTO_HOST_IMPORT, &share, NULL, 0, -1), 0);
        assert_int_not_equal(raw_ask(&raw, PROTO_LINK, &link, NULL, 0, -1), 0);
    }
    /* The other's are still there, and still its own. */
    struct proto_memory_free free_theirs = {.address = theirs};
    assert_int_equal(raw_ask(&other, PROTO_MEMORY_FREE, &free_theirs, NULL, 0, -1), 0);
    raw_close(&raw);
    raw_close(&other);
}

static void corrupt_images_get_a_clear_error(void **state)
{
    (void)state;
    static const char *const images[] = {
        "",
        "\x7f"
        "ELF and then nothing of the kind",
        "P\xed\x55\xba\x01\x00\x10\x00\xff\xff\xff\xff\xff\xff\xff\x7f",
        ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n  frobnicate.u32 "
        "%r1;\n}\n",
        ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k(",
        "no PTX at all",
    };
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        size_t length = i == 2 ? 16 : strlen(images[i]) + 1;
        struct proto_module_load load = {.count = length};
        int fd = raw_memfd(images[i], length);
        uint32_t error = raw_ask(&raw, PROTO_MODULE_LOAD, &load, NULL, 0, fd);
        close(fd);
        if (error != PROTO_ERROR_INVALID_IMAGE && error != PROTO_ERROR_INVALID_PTX &&
            error != PROTO_ERROR_NO_BINARY_FOR_GPU)
            fail_msg("image %zu gave error %u", i, error);
        if (i == 3)
            assert_non_null(
                strstr(((const struct proto_failed *)raw.reply.body)->text, "frobnicate"));
    }
    raw_close(&raw);
}

static void mutated_ptx_never_harms_the_server(void **state)
{
    (void)state;
    FILE *file = fopen("examples/kernels/kmeans.ptx", "re");
    assert_non_null(file);
    static char original[65536], text[65536];
    size_t length = fread(original, 1, sizeof original - 1, file);
    fclose(file);
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    unsigned seed = 20241121;
    for (int round = 0; round < 60; round++) {
        memcpy(text, original, length);
        for (int i = 0; i < 1 + round % 8; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[(seed >> 8) % length] = (char)(seed >> 24);
        }
        size_t cut = round % 3 ? length : (seed >> 4) % length + 1;
        struct proto_module_load load = {.count = cut};
        int fd = raw_memfd(text, cut);
        uint32_t error = raw_ask(&raw, PROTO_MODULE_LOAD, &load, NULL, 0, fd);
        close(fd);
        assert_int_not_equal(error, PROTO_ERROR_CONNECTION_LOST);
        if (!error) {
            struct proto_module_unload unload = {
                .module = ((const struct proto_module_loaded *)raw.reply.body)->module};
            assert_int_equal(raw_ask(&raw, PROTO_MODULE_UNLOAD, &unload, NULL, 0, -1), 0);
        }
    }
    raw_close(&raw);
}

static void a_silent_client_is_disconnected(void **state)
{
    (void)state;
    struct raw silent[8];
    for (int i = 0; i < 8; i++)
        raw_connect(&silent[i], server);
    for (int i = 0; i < 8; i++) {
        assert_true(raw_wait_end(&silent[i]));
        raw_close(&silent[i]);
    }
}

static void a_client_that_never_reads_its_answers_loses_its_connection_alone(void **state)
{
    (void)state;
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    struct proto_message_header header = {
        .bytes = sizeof header, .opcode = PROTO_MEMORY_QUERY, .serial = 1000};
    bool lost = false;
    for (int left = (int)(patience_seconds(20) * 10000); left > 0 && !lost; left--) {
        header.serial++;
        ssize_t sent = send(raw.fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT);
        lost = sent < 0 && errno != EAGAIN;
        if (sent < 0)
            usleep(100);
    }
    assert_true(lost);
    assert_true(server_log_wait(server, "the client asks and does not read the answers"));
    raw_close(&raw);
}

/* A socket with unsent data, whose last close sleeps for so many seconds in the kernel, or until
 * its peer is closed. */
static int lingering_socket(int seconds, int *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger linger = {.l_onoff = 1, .l_linger = seconds};
    static const char bytes[65536];
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    *peer = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC);
    assert_true(*peer >= 0);
    close(listener);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    return fd;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* How long another client's hello takes. */
static double hello_seconds(void)
{
    struct raw other;
    struct proto_hello hello = {PROTO_MAJOR, PROTO_MINOR, 0};
    double begin = seconds_now();
    raw_connect(&other, server);
    assert_int_equal(raw_ask(&other, PROTO_HELLO, &hello, NULL, 0, -1), 0);
    double took = seconds_now() - begin;
    raw_close(&other);
    return took;
}

/* Other clients are served while the kernel sleeps in the close of a descriptor that one sent. */
static void a_descriptor_that_closes_slowly_delays_nobody(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        bool attached;
        unsigned junk, empty; /* packets before the one with the descriptors */
        unsigned count;       /* copies of the descriptor */
    } cases[] = {
        {"in a message that its state forbids", false, 0, 0, 1},
        {"more than any message has", false, 0, 0, 40},
        {"more than any message has, after attaching", true, 0, 0, 250},
        {"unread when the connection ends", false, 1, 0, 1},
        {"unread behind an empty packet", false, 1, 1, 1},
        {"as a module's image", true, 0, 0, 1},
    };
    enum { LINGER_SECONDS = 5 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct raw raw;
        struct {
            struct proto_message_header header;
            struct proto_module_load load;
        } packet = {{.bytes = sizeof packet, .opcode = PROTO_MODULE_LOAD, .serial = 1000},
                    {.count = 4096}};
        int fds[250], peer;
        fds[0] = lingering_socket(LINGER_SECONDS, &peer);
        for (unsigned n = 1; n < cases[i].count; n++)
            fds[n] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        if (cases[i].attached)
            raw_attach(&raw, server, PROTO_UNSET);
        else
            raw_connect(&raw, server);
        /* The server stands still meanwhile, so that it finds all packets at once. */
        kill(server_pid(server), SIGSTOP);
        for (unsigned n = 0; n < cases[i].junk; n++)
            raw_send(&raw, "junk", 4, NULL, 0);
        for (unsigned n = 0; n < cases[i].empty; n++)
            raw_send(&raw, "", 0, NULL, 0);
        raw_send(&raw, &packet, sizeof packet, fds, cases[i].count);
        for (unsigned n = 0; n < cases[i].count; n++)
            close(fds[n]);
        kill(server_pid(server), SIGCONT);
        struct pollfd answered = {.fd = raw.fd, .events = POLLIN};
        double slowest = 0;
        bool over = false;
        for (double end = seconds_now() + LINGER_SECONDS; !over && seconds_now() < end;) {
            over = poll(&answered, 1, 10) > 0;
            double took = hello_seconds();
            slowest = took > slowest ? took : slowest;
        }
        if (!over || slowest >= 1)
            fail_msg("descriptor %s: answered: %d; another client's hello took %.2f s",
                     cases[i].what, over, slowest);
        close(peer);
        raw_close(&raw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_major_version_is_told_in_words),
        cmocka_unit_test(every_truncation_of_a_message_ends_only_its_sender),
        cmocka_unit_test(oversized_messages_and_lying_lengths_end_their_sender),
        cmocka_unit_test(unknown_and_misdirected_messages_end_their_sender),
        cmocka_unit_test(requests_before_attach_are_refused),
        cmocka_unit_test(descriptors_where_none_belong_are_closed),
        cmocka_unit_test(a_descriptor_that_closes_slowly_delays_nobody),
        cmocka_unit_test(an_image_that_is_no_file_is_refused),
        cmocka_unit_test(sizes_that_overflow_are_refused_by_name),
        cmocka_unit_test(the_limit_holds_to_the_granule),
        cmocka_unit_test(unknown_handles_and_addresses_are_refused),
        cmocka_unit_test(corrupt_images_get_a_clear_error),
        cmocka_unit_test(mutated_ptx_never_harms_the_server),
        cmocka_unit_test(a_silent_client_is_disconnected),
        cmocka_unit_test(a_client_that_never_reads_its_answers_loses_its_connection_alone),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
