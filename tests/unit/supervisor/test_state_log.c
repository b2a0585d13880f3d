/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A log is read after every single step of its writer, as a killed writer leaves it: a reader finds
 * what was committed last, which a model in plain memory says, and nothing else.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/supervisor/keep/state_log.h"

enum { KEYS = 24, BYTES_MAX = 3000, LAYOUT = 77 };

/* The record that is to be found. */
struct model {
    bool there;
    size_t bytes;
    uint8_t fill;
};

static uint32_t state = 5;

static uint32_t chance(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static const struct state_log_entry *find(const struct state_log_reader *reader, uint32_t key)
{
    for (size_t i = 0; i < reader->count; i++)
        if (reader->entries[i].name.key == key)
            return &reader->entries[i];
    return NULL;
}

static void expect(int fd, const struct model model[KEYS])
{
    struct state_log_reader reader;
    size_t there = 0;
    assert_int_equal(state_log_read(&reader, fd, LAYOUT), LOG_IS_WHOLE);
    for (uint32_t key = 0; key < KEYS; key++) {
        const struct state_log_entry *entry = find(&reader, key);
        there += model[key].there;
        assert_int_equal(entry != NULL, model[key].there);
        if (!entry)
            continue;
        assert_int_equal(entry->bytes, model[key].bytes);
        for (size_t i = 0; i < entry->bytes; i++)
            assert_int_equal(((const uint8_t *)entry->data)[i], model[key].fill);
    }
    assert_int_equal(reader.count, there);
    state_log_reader_close(&reader);
}

static void put(struct state_log *log, struct state_record *record, uint32_t key,
                struct model *model)
{
    uint8_t data[BYTES_MAX];
    *model = (struct model){true, chance(BYTES_MAX), (uint8_t)chance(256)};
    memset(data, model->fill, sizeof data);
    assert_int_equal(state_log_put(log, record, (struct state_name){1, key, 0}, data, model->bytes),
                     0);
}

/* Many times over the log's size, so that it changes its half in the middle of what is not
 * committed. */
static void each_step_leaves_the_last_commit(void **unused)
{
    struct state_log log;
    struct state_record records[KEYS] = {0};
    struct model committed[KEYS] = {0}, written[KEYS] = {0};
    unsigned turns = 0;
    (void)unused;
    assert_int_equal(state_log_create(&log, 3, LAYOUT, 0), 0);
    for (unsigned step = 0; step < 4000; step++) {
        uint32_t key = chance(KEYS), what = chance(8);
        uint64_t half = log.half;
        if (what == 0) {
            state_log_commit(&log);
            memcpy(committed, written, sizeof committed);
        } else if (what == 1) {
            assert_int_equal(state_log_remove(&log, &records[key]), 0);
            written[key] = (struct model){0};
        } else {
            put(&log, &records[key], key, &written[key]);
        }
        turns += half != log.half;
        expect(log.fd, committed);
    }
    assert_true(turns > 5);
    state_log_close(&log);
}

/* Any byte of what was committed that is not as it was written is found. */
static void a_changed_byte_is_found(void **unused)
{
    struct state_log log;
    struct state_record records[3] = {0};
    struct model model[KEYS] = {0};
    struct state_log_reader reader;
    (void)unused;
    assert_int_equal(state_log_create(&log, 1, LAYOUT, 0), 0);
    for (uint32_t key = 0; key < 3; key++) {
        model[key] = (struct model){true, 40, (uint8_t)(key + 1)};
        uint8_t data[40];
        memset(data, model[key].fill, sizeof data);
        assert_int_equal(
            state_log_put(&log, &records[key], (struct state_name){1, key, 0}, data, sizeof data),
            0);
    }
    state_log_commit(&log);
    expect(log.fd, model);
    for (uint64_t at = 4096; at < 4096 + log.tail; at++) {
        log.base[at] ^= 0x10;
        assert_int_equal(state_log_read(&reader, log.fd, LAYOUT), LOG_IS_DAMAGED);
        log.base[at] ^= 0x10;
    }
    expect(log.fd, model);
    state_log_close(&log);
}

static void others_are_told_apart(void **unused)
{
    struct state_log log;
    struct state_log_reader reader;
    (void)unused;
    assert_int_equal(state_log_create(&log, 1, LAYOUT, 0), 0);
    assert_int_equal(state_log_read(&reader, log.fd, LAYOUT), LOG_IS_WHOLE);
    assert_false(reader.begun);
    state_log_reader_close(&reader);
    assert_int_equal(state_log_read(&reader, log.fd, LAYOUT + 1), LOG_IS_OTHER);
    log.base[8]++; /* the format's number */
    assert_int_equal(state_log_read(&reader, log.fd, LAYOUT), LOG_IS_OTHER);
    log.base[8]--;
    log.base[0] = 'x';
    assert_int_equal(state_log_read(&reader, log.fd, LAYOUT), LOG_IS_STRANGE);
    state_log_close(&log);
    int empty = memfd_create("empty", MFD_CLOEXEC);
    assert_int_equal(state_log_read(&reader, empty, LAYOUT), LOG_IS_STRANGE);
    close(empty);
}

/* The old file has what was committed there, until the new one is committed. */
static void a_greater_log_counts_from_its_commit_on(void **unused)
{
    struct state_log small, great;
    struct state_record records[KEYS] = {0};
    struct model committed[KEYS] = {0}, written[KEYS];
    struct state_log_reader reader;
    (void)unused;
    assert_int_equal(state_log_create(&small, 1, LAYOUT, 0), 0);
    put(&small, &records[0], 0, &committed[0]);
    state_log_commit(&small);
    memcpy(written, committed, sizeof written);
    put(&small, &records[1], 1, &written[1]);
    assert_int_equal(state_log_create(&great, 2, LAYOUT, 1 << 20), 0);
    assert_int_equal(state_log_move(&small, &great), 0);
    expect(small.fd, committed);
    assert_int_equal(state_log_read(&reader, great.fd, LAYOUT), LOG_IS_WHOLE);
    assert_false(reader.begun);
    state_log_reader_close(&reader);
    state_log_commit(&great);
    expect(great.fd, written);
    expect(small.fd, committed);
    state_log_close(&small);
    state_log_close(&great);
}

static void a_full_log_says_so_and_stays(void **unused)
{
    struct state_log log;
    struct state_record first = {0}, second = {0};
    (void)unused;
    assert_int_equal(state_log_create(&log, 1, LAYOUT, 0), 0);
    size_t bytes = log.half_bytes / 3;
    uint8_t *data = calloc(1, log.half_bytes);
    assert_int_equal(state_log_put(&log, &first, (struct state_name){1, 1, 0}, data, bytes), 0);
    state_log_commit(&log);
    assert_int_equal(
        state_log_put(&log, &second, (struct state_name){1, 2, 0}, data, log.half_bytes), -28);
    assert_true(state_log_has(&log, &first, data, bytes));
    data[5] = 1;
    assert_false(state_log_has(&log, &first, data, bytes));
    free(data);
    state_log_close(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_leaves_the_last_commit),
        cmocka_unit_test(a_changed_byte_is_found),
        cmocka_unit_test(others_are_told_apart),
        cmocka_unit_test(a_greater_log_counts_from_its_commit_on),
        cmocka_unit_test(a_full_log_says_so_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
