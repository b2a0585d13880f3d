/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Shared words: what each access does, and that of two sides that announce and look one sees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "common/ipc/shared_word.h"

static void each_access_does_what_it_says(void **state)
{
    (void)state;
    uint32_t word = 5;
    uint64_t bits = 0x10;
    assert_int_equal(shared_word_look(&word), 5);
    assert_int_equal(shared_word_hint(&word), 5);
    shared_word_set(&word, 6);
    assert_int_equal(word, 6);
    shared_word_announce(&word, 7);
    assert_int_equal(word, 7);
    assert_int_equal(shared_word_take(&word, 0), 7);
    assert_int_equal(word, 0);
    shared_word_add(&word, 3);
    shared_word_subtract(&word, 1);
    assert_int_equal(word, 2);
    shared_word_set_bits(&bits, UINT64_C(1) << 40);
    assert_true(bits == (0x10 | UINT64_C(1) << 40));
    shared_word_clear_bits(&bits, UINT64_C(0x10));
    assert_true(bits == UINT64_C(1) << 40);
}

static void the_first_reason_stays(void **state)
{
    (void)state;
    uint32_t word = 0;
    assert_true(shared_word_set_first(&word, 4));
    assert_false(shared_word_set_first(&word, 5));
    assert_int_equal(word, 4);
}

enum { ROUNDS = 20000 };

static struct side {
    _Alignas(64) uint32_t mine;
    uint32_t *other;
    uint32_t saw[ROUNDS];
} sides[2];
static pthread_barrier_t barrier;

static void *announce_and_look(void *given)
{
    struct side *side = given;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        shared_word_announce(&side->mine, round + 1);
        side->saw[round] = shared_word_look(side->other);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void of_two_threads_that_announce_and_look_one_sees_the_other(void **state)
{
    (void)state;
    pthread_t threads[2];
    sides[0].other = &sides[1].mine;
    sides[1].other = &sides[0].mine;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, announce_and_look, &sides[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t round = 0; round < ROUNDS; round++)
        assert_true(sides[0].saw[round] == round + 1 || sides[1].saw[round] == round + 1);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_access_does_what_it_says),
        cmocka_unit_test(the_first_reason_stays),
        cmocka_unit_test(of_two_threads_that_announce_and_look_one_sees_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
