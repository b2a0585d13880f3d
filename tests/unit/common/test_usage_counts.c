/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* usage_counts: written by one thread while another one reads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/ipc/usage_counts.h"

enum { TURNS = 400000 };

struct scene {
    struct usage_counts_table *table;
    uint64_t clients[2]; /* of one row, or only the first */
    atomic_bool done;
};

static void *write_counts(void *argument)
{
    struct scene *scene = argument;
    for (uint64_t i = 1; i <= TURNS; i++) {
        uint64_t client = scene->clients[scene->clients[1] ? i & 1 : 0];
        usage_counts_write(scene->table, &(struct usage_counts){.client = client,
                                                                .launches = i,
                                                                .copies = 2 * i,
                                                                .copied_bytes = 3 * i,
                                                                .gpu_ns = 4 * i});
    }
    atomic_store(&scene->done, true);
    return NULL;
}

static void read_while_written(uint64_t one, uint64_t other)
{
    struct scene scene = {calloc(1, sizeof *scene.table), {one, other}, false};
    struct usage_counts counts;
    pthread_t writer;
    uint64_t latest = 0, reads = 0;
    assert_non_null(scene.table);
    usage_counts_begin(scene.table);
    assert_int_equal(pthread_create(&writer, NULL, write_counts, &scene), 0);
    for (bool last = false; !last;) {
        last = atomic_load(&scene.done);
        bool read = usage_counts_read(scene.table, one, &counts);
        assert_true(read || !last || other);
        if (!read)
            continue;
        assert_int_equal(counts.client, one);
        assert_int_equal(counts.copies, 2 * counts.launches);
        assert_int_equal(counts.copied_bytes, 3 * counts.launches);
        assert_int_equal(counts.gpu_ns, 4 * counts.launches);
        assert_true(counts.launches >= latest);
        latest = counts.launches;
        reads++;
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_true(reads > 0 || other);
    assert_true(latest == TURNS || other);
    free(scene.table);
}

static void a_row_is_never_read_in_halves(void **state)
{
    (void)state;
    read_while_written(7, 0);
}

static void a_row_of_two_clients_is_one_of_them(void **state)
{
    (void)state;
    read_while_written(7, 7 + USAGE_COUNTS_ROWS);
}

static void a_client_without_a_row_has_none(void **state)
{
    (void)state;
    struct usage_counts_table *table = calloc(1, sizeof *table);
    struct usage_counts counts;
    assert_non_null(table);
    usage_counts_write(table, &(struct usage_counts){.client = 7, .launches = 1});
    assert_false(usage_counts_read(table, 7, &counts)); /* it has no form */
    usage_counts_begin(table);
    assert_true(usage_counts_read(table, 7, &counts));
    assert_int_equal(counts.launches, 1);
    assert_false(usage_counts_read(table, 8, &counts));
    assert_false(usage_counts_read(table, 7 + USAGE_COUNTS_ROWS, &counts));
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_never_read_in_halves),
        cmocka_unit_test(a_row_of_two_clients_is_one_of_them),
        cmocka_unit_test(a_client_without_a_row_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
