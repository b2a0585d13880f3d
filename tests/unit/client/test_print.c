/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The reader of what kernels print, for rings that no kernel of ours would write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cuda/driver/print/print_format.h"
#include "client/cuda/driver/print/print_ring.h"
#include "common/util.h"
#include "tests/support/seed.h"

enum { RING = 4096 };

struct memory {
    struct print_ring_head head;
    uint8_t records[RING];
};

static void begin(struct print_ring *ring, struct memory *memory)
{
    *memory = (struct memory){.head = {.written = 0}};
    assert_int_equal(print_ring_open(ring, memory, RING), 0);
    assert_int_equal(memory->head.mask, RING - 1);
    assert_int_equal(memory->head.nonce, ring->nonce);
}

/* Adds a record as a kernel does. Returns its place. */
static uint64_t add(struct memory *memory, const char *format, uint32_t number, bool whole)
{
    uint8_t bytes[256] = {0};
    uint64_t at = memory->head.written;
    size_t size = (sizeof(struct print_ring_record) + 8 + strlen(format) + 8) & ~(size_t)7;
    struct print_ring_record record = {
        .tag = whole ? at + memory->head.nonce : 0, .bytes = (uint32_t)size, .argument_bytes = 8};
    memcpy(bytes, &record, sizeof record);
    memcpy(bytes + sizeof record, &number, sizeof number);
    memcpy(bytes + sizeof record + 8, format, strlen(format) + 1);
    for (size_t i = 0; i < size; i++)
        memory->records[(at + i) % RING] = bytes[i];
    memory->head.written += size;
    return at;
}

static void assert_shows(struct print_ring *ring, bool all, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    print_ring_show(ring, all, to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void records_are_shown_once_and_in_order(void **state)
{
    (void)state;
    struct memory memory;
    struct print_ring ring;
    begin(&ring, &memory);
    assert_shows(&ring, true, "");
    add(&memory, "one %d\n", 1, true);
    add(&memory, "two %u\n", 2, true);
    assert_shows(&ring, false, "one 1\ntwo 2\n");
    assert_shows(&ring, true, "");
    print_ring_close(&ring);
}

static void a_record_that_is_not_whole_holds_the_rest_back_while_kernels_run(void **state)
{
    (void)state;
    struct memory memory;
    struct print_ring ring;
    begin(&ring, &memory);
    add(&memory, "one %d\n", 1, true);
    uint64_t half = add(&memory, "two %d\n", 2, false);
    add(&memory, "three %d\n", 3, true);
    assert_shows(&ring, false, "one 1\n");
    assert_shows(&ring, false, "");
    uint64_t tag = half + memory.head.nonce;
    memcpy(memory.records + half, &tag, sizeof tag);
    assert_shows(&ring, false, "two 2\nthree 3\n");
    add(&memory, "four %d\n", 4, false);
    add(&memory, "five %d\n", 5, true);
    assert_shows(&ring, true, "five 5\n");
    print_ring_close(&ring);
}

static void of_more_than_the_ring_holds_the_newest_whole_records_are_shown(void **state)
{
    (void)state;
    struct memory memory;
    struct print_ring ring;
    char expected[RING] = "";
    begin(&ring, &memory);
    add(&memory, "another size, %d\n", 0, true);
    uint32_t held = RING / 40;
    for (uint32_t i = 0; i < 500; i++)
        add(&memory, "number %d\n", i, true);
    for (uint32_t i = 500 - held; i < 500; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "number %u\n", i);
    assert_shows(&ring, false, expected);
    assert_shows(&ring, false, "");
    print_ring_close(&ring);
}

/* The server lends the memory to another process of the same user when this one is gone. */
static void records_of_another_process_are_not_shown(void **state)
{
    (void)state;
    struct memory memory;
    struct print_ring ring;
    begin(&ring, &memory);
    memory.head.nonce++;
    for (uint32_t i = 0; i < 30; i++)
        add(&memory, "another's %d\n", i, true);
    assert_shows(&ring, true, "");
    memory = (struct memory){.head = {.written = 0}};
    assert_shows(&ring, true, "");
    print_ring_close(&ring);
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 16;
}

/* Sizes, texts and arguments at random behind right tags: an address sanitizer sees what is read
 * beyond them. */
static void a_ring_of_noise_harms_nobody(void **state)
{
    (void)state;
    uint64_t seed = seed_draw();
    for (int round = 0; round < 200; round++) {
        struct memory memory;
        struct print_ring ring;
        char *text = NULL;
        size_t bytes = 0;
        begin(&ring, &memory);
        for (size_t i = 0; i < RING; i++)
            memory.records[i] = "%dsfc*.9hl\0"[draw(&seed) % 11];
        for (size_t at = 0; at < RING; at += 8 * (1 + draw(&seed) % 16)) {
            struct print_ring_record record = {.tag = at + ring.nonce,
                                               .bytes = (uint32_t)(8 * (draw(&seed) % 64)),
                                               .argument_bytes = (uint32_t)(draw(&seed) % 128)};
            memcpy(memory.records + at, &record, min(sizeof record, RING - at));
        }
        memory.head.written = 8 * (draw(&seed) % (RING / 4));
        if (round % 10 == 0)
            memory.head.written = UINT64_MAX - 7;
        FILE *to = open_memstream(&text, &bytes);
        assert_non_null(to);
        print_ring_show(&ring, true, to);
        assert_int_equal(fclose(to), 0);
        /* Each conversion has at most a width, or the longest number. */
        assert_true(bytes <= (size_t)RING * PRINT_WIDTH_MAX);
        free(text);
        print_ring_close(&ring);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_shown_once_and_in_order),
        cmocka_unit_test(a_record_that_is_not_whole_holds_the_rest_back_while_kernels_run),
        cmocka_unit_test(of_more_than_the_ring_holds_the_newest_whole_records_are_shown),
        cmocka_unit_test(records_of_another_process_are_not_shown),
        cmocka_unit_test(a_ring_of_noise_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
