/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Ring memory: a ring keeps its place while its memory comes, and only sealed memory does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/served_rings.h"

enum { STREAMS = 70 };

static void segments_come_where_their_rings_are(void **state)
{
    (void)state;
    struct served_rings made;
    struct ring_memory other;
    uint8_t status[8192] = {0};
    assert_int_equal(served_rings_make(&made, STREAMS), 0);
    assert_int_equal(ring_memory_open(&other, STREAMS, made.fd), 0);
    /* The header is shared from the start. A ring without memory is empty, and nobody's. */
    ring_client_header(made.base)->asleep = 7;
    assert_int_equal(ring_client_header(other.base)->asleep, 7);
    struct ring theirs = ring_at(made.base, status, 64), ours = ring_at(other.base, status, 64);
    theirs.header->tail = 5;
    assert_false(ring_memory_has(&other, 64));
    assert_int_equal(ours.header->tail, 0);
    ours.header->tail = 3;
    assert_int_equal(theirs.header->tail, 5);
    assert_int_equal(ring_memory_add(&other, 0, STREAMS, made.segment_fd), 0);
    for (uint32_t i = 0; i < STREAMS; i++)
        assert_true(ring_memory_has(&other, i));
    assert_int_equal(ours.header->tail, 5);
    /* The last byte of the last ring is there. */
    uint8_t *end = (uint8_t *)other.base + ring_memory_bytes(STREAMS) - 1;
    *end = 9;
    assert_int_equal(((uint8_t *)made.base)[ring_memory_bytes(STREAMS) - 1], 9);
    ring_memory_close(&other);
    ring_memory_close(&other);
    served_rings_release(&made);
}

static void what_came_stays(void **state)
{
    (void)state;
    struct served_rings made;
    struct shm segment;
    uint8_t status[8192] = {0};
    assert_int_equal(served_rings_make(&made, STREAMS), 0);
    ring_at(made.base, status, 2).header->tail = 4;
    assert_int_equal(shm_create(&segment, "again", 2 * PROTO_RING_STRIDE), 0);
    assert_int_equal(ring_memory_add(&made.memory, 2, 2, segment.fd), 0);
    assert_int_equal(ring_at(made.base, status, 2).header->tail, 4);
    shm_release(&segment);
    served_rings_release(&made);
}

static void other_memory_is_refused(void **state)
{
    (void)state;
    struct shm header, segment;
    struct ring_memory memory;
    int open_end = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(open_end, 4 * PROTO_RING_STRIDE), 0);
    assert_int_equal(ring_memory_open(&memory, STREAMS, open_end), -EBADF);
    assert_null(memory.base);
    assert_int_equal(shm_create(&header, "header", PROTO_RING_FIRST), 0);
    assert_int_equal(shm_create(&segment, "rings", 2 * PROTO_RING_STRIDE), 0);
    assert_int_equal(ring_memory_open(&memory, STREAMS, header.fd), 0);
    assert_int_equal(ring_memory_add(&memory, 0, 1, open_end), -EBADF);
    assert_int_equal(ring_memory_add(&memory, 0, 3, segment.fd), -EBADF);
    assert_int_equal(ring_memory_add(&memory, STREAMS - 1, 2, segment.fd), -EINVAL);
    assert_int_equal(ring_memory_add(&memory, STREAMS, 1, segment.fd), -EINVAL);
    assert_int_equal(ring_memory_add(&memory, 1, UINT32_MAX, segment.fd), -EINVAL);
    assert_int_equal(ring_memory_add(&memory, 0, 0, segment.fd), -EINVAL);
    for (uint32_t i = 0; i < STREAMS; i++)
        assert_false(ring_memory_has(&memory, i));
    assert_int_equal(ring_memory_add(&memory, STREAMS - 2, 2, segment.fd), 0);
    assert_true(ring_memory_has(&memory, STREAMS - 1));
    ring_memory_close(&memory);
    shm_release(&header);
    shm_release(&segment);
    close(open_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_come_where_their_rings_are),
        cmocka_unit_test(what_came_stays),
        cmocka_unit_test(other_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
