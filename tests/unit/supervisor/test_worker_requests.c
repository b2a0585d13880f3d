/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* worker_requests: rows by serial, against a plain list of what is under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "server/supervisor/worker/worker_requests.h"

static uint64_t add(struct worker_requests *requests, uint32_t client)
{
    assert_int_equal(worker_requests_reserve(requests), 0);
    uint64_t serial = worker_requests_next(requests);
    worker_requests_add(requests, (struct worker_request_row){.client = client, .opcode = 7});
    return serial;
}

static void serials_grow_and_are_found_once(void **state)
{
    (void)state;
    struct worker_requests requests = {0};
    assert_int_equal(add(&requests, 1), 1);
    assert_int_equal(add(&requests, 2), 2);
    assert_null(worker_requests_find(&requests, 0));
    assert_null(worker_requests_find(&requests, 3));
    struct worker_request_row *row = worker_requests_find(&requests, 1);
    assert_non_null(row);
    assert_int_equal(row->client, 1);
    worker_requests_remove(&requests, row);
    assert_null(worker_requests_find(&requests, 1));
    worker_requests_remove(&requests, worker_requests_find(&requests, 2));
    assert_int_equal(requests.outstanding, 0);
    /* Empty, and yet no serial comes again. */
    assert_int_equal(add(&requests, 1), 3);
    worker_requests_close(&requests);
    assert_int_equal(worker_requests_next(&requests), 4);
}

static void cancelled_rows_wait_for_their_answer_or_the_last_word(void **state)
{
    (void)state;
    struct worker_requests requests = {0};
    uint64_t first = add(&requests, 1), second = add(&requests, 1), other = add(&requests, 2);
    worker_requests_cancel(&requests, worker_requests_find(&requests, first));
    worker_requests_cancel(&requests, worker_requests_find(&requests, second));
    worker_requests_cancel(&requests, worker_requests_find(&requests, second));
    assert_int_equal(requests.outstanding, 1);
    worker_requests_remove(&requests, worker_requests_find(&requests, first));
    assert_null(worker_requests_find(&requests, first));
    assert_non_null(worker_requests_find(&requests, second));
    worker_requests_forget(&requests, 1);
    assert_null(worker_requests_find(&requests, second));
    assert_non_null(worker_requests_find(&requests, other));
    assert_int_equal(requests.kept, 1);
    worker_requests_close(&requests);
}

/* The oldest is never answered; the others come and go in any order, in bounded memory. */
static void a_long_life_in_bounded_memory(void **state)
{
    (void)state;
    enum { UNDER_WAY = 50, ROUNDS = 100000 };
    struct worker_requests requests = {0};
    uint64_t live[UNDER_WAY];
    uint64_t oldest = add(&requests, 9);
    for (int i = 0; i < UNDER_WAY; i++)
        live[i] = add(&requests, 1);
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t *one = &live[rand() % UNDER_WAY];
        struct worker_request_row *row = worker_requests_find(&requests, *one);
        assert_non_null(row);
        assert_true(row->serial == *one);
        worker_requests_remove(&requests, row);
        assert_null(worker_requests_find(&requests, *one));
        *one = add(&requests, 1);
    }
    assert_int_equal(requests.outstanding, UNDER_WAY + 1);
    assert_true(requests.room <= 8 * UNDER_WAY);
    assert_true(worker_requests_after(&requests, 0)->serial == oldest);
    unsigned seen = 0;
    uint64_t before = 0;
    for (struct worker_request_row *row; (row = worker_requests_after(&requests, before)); seen++) {
        assert_true(row->serial > before);
        before = row->serial;
    }
    assert_int_equal(seen, UNDER_WAY + 1);
    worker_requests_close(&requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serials_grow_and_are_found_once),
        cmocka_unit_test(cancelled_rows_wait_for_their_answer_or_the_last_word),
        cmocka_unit_test(a_long_life_in_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
