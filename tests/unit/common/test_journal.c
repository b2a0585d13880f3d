/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A journal, read as its writer leaves it at any instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ipc/journal.h"
#include "common/units.h"
#include "tests/support/halted.h"
#include "tests/support/seed.h"

enum { STREAMS = 5 };

static void *make_shadow(void)
{
    void *shadow = mmap(NULL, journal_shadow_bytes(STREAMS), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shadow, MAP_FAILED);
    return shadow;
}

/* Every byte of a command's descriptor tells its value. */
static void note(struct journal_entry *journal, uint32_t *next, uint64_t value)
{
    struct ring_descriptor descriptor;
    memset(descriptor.bytes, (int)(value & 0xff), sizeof descriptor.bytes);
    journal_note(journal, next, (uint32_t)(value % STREAMS), value, &descriptor);
}

static void entry_is_whole(const struct journal_entry *entry)
{
    assert_int_equal(entry->stream, entry->value % STREAMS);
    for (int i = 0; i < JOURNAL_COMMAND_WORDS; i++)
        assert_int_equal(entry->command[i], (entry->value & 0xff) * UINT64_C(0x0101010101010101));
}

static void the_latest_commands_stay_and_the_words_are_left_alone(void **state)
{
    (void)state;
    void *shadow = make_shadow();
    struct journal_entry *journal = journal_at(shadow, STREAMS);
    uint32_t next = 0;
    const uint64_t last = 3 * JOURNAL_ENTRIES + 17;
    for (uint64_t value = 1; value <= last; value++)
        note(journal, &next, value);
    uint64_t sum = 0;
    for (int i = 0; i < JOURNAL_ENTRIES; i++) {
        entry_is_whole(&journal[i]);
        assert_in_range(journal[i].value, last - JOURNAL_ENTRIES + 1, last);
        sum += journal[i].value;
    }
    assert_int_equal(sum, (2 * last - JOURNAL_ENTRIES + 1) * JOURNAL_ENTRIES / 2);
    for (uint32_t i = 0; i < STREAMS; i++) {
        assert_int_equal(*ring_shadow_reached(shadow, i), 0);
        assert_int_equal(*ring_shadow_lost_to(shadow, STREAMS, i), 0);
    }
    munmap(shadow, journal_shadow_bytes(STREAMS));
}

/* The writer is killed wherever it is. */
static void no_entry_is_half_of_one_command_and_half_of_another(void **state)
{
    (void)state;
    unsigned random = seed_draw();
    for (int round = 0; round < 100; round++) {
        void *shadow = make_shadow();
        struct journal_entry *journal = journal_at(shadow, STREAMS);
        uint32_t next = 0;
        int status;
        pid_t writer = fork();
        if (writer == 0)
            for (uint64_t value = 1;; value++)
                note(journal, &next, value);
        assert_true(writer > 0);
        usleep((useconds_t)(rand_r(&random) % 2000));
        kill(writer, SIGKILL);
        assert_int_equal(waitpid(writer, &status, 0), writer);
        unsigned none = 0;
        for (int i = 0; i < JOURNAL_ENTRIES; i++) {
            if (journal[i].value)
                entry_is_whole(&journal[i]);
            else
                none++;
        }
        assert_true(none <= 1 || journal[JOURNAL_ENTRIES - 1].value == 0);
        munmap(shadow, journal_shadow_bytes(STREAMS));
    }
}

enum { HALTS = 20000, ROUND = 251 };

/* Round by round, two streams have the same value in the same entry. */
static void *note_in_one_place(void *argument)
{
    struct ring_descriptor descriptor;
    for (uint64_t turn = 0; halted_turn(); turn++) {
        uint32_t next = 0;
        memset(descriptor.bytes, (int)(turn % ROUND), sizeof descriptor.bytes);
        journal_note(argument, &next, (uint32_t)(turn % ROUND), 1 + turn % 2, &descriptor);
    }
    return NULL;
}

static bool is_whole(const struct journal_entry *entry)
{
    bool whole = entry->value == 1 || entry->value == 2;
    for (int i = 0; i < JOURNAL_COMMAND_WORDS; i++)
        whole &= entry->command[i] == entry->stream * UINT64_C(0x0101010101010101);
    return whole;
}

static void an_entry_that_is_written_meanwhile_is_one_command_s(void **state)
{
    (void)state;
    void *shadow = make_shadow();
    struct journal_entry *journal = journal_at(shadow, STREAMS), entry;
    pthread_t writer;
    unsigned read = 0, torn = 0;
    assert_false(journal_read(journal, &entry));
    halted_begin();
    assert_int_equal(pthread_create(&writer, NULL, note_in_one_place, journal), 0);
    const uint64_t end = clock_now() + UNITS_SECOND;
    while (!read || (halted_count() < HALTS && clock_now() < end))
        if (journal_read(journal, &entry)) {
            read++;
            torn += !is_whole(&entry);
        }
    halted_end(writer);
    assert_int_equal(torn, 0);
    assert_true(journal_read(journal, &entry) && is_whole(&entry));
    munmap(shadow, journal_shadow_bytes(STREAMS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_commands_stay_and_the_words_are_left_alone),
        cmocka_unit_test(no_entry_is_half_of_one_command_and_half_of_another),
        cmocka_unit_test(an_entry_that_is_written_meanwhile_is_one_command_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
