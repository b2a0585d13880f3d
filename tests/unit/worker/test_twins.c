/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The parts of twins that a range touches. The oracle is a walk byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/worker/client/client.h"
#include "server/worker/client/twins.h"
#include "tests/support/seed.h"

enum { SPAN = 64, BASE = 1000 };

static const struct client_module *module_at(uintptr_t number)
{
    return (const struct client_module *)number;
}

/* The byte of a constant that this byte stands for, or 0. */
static uint64_t stands_for(const struct twin *twins, size_t count, uint64_t address)
{
    for (size_t i = 0; i < count; i++)
        if (address >= twins[i].address && address < twins[i].address + twins[i].bytes)
            return twins[i].constant + (address - twins[i].address);
    return 0;
}

static void agrees(const struct client *client, const struct twin *twins, size_t count,
                   uint64_t from, uint64_t bytes)
{
    uint64_t seen[SPAN] = {0}, before = 0;
    struct twin found[SPAN];
    size_t parts = twins_find(client, from, bytes, found, SPAN);
    for (size_t i = 0; i < parts; i++) {
        assert_true(found[i].bytes > 0 && found[i].address >= before);
        before = found[i].address + found[i].bytes;
        for (uint64_t b = 0; b < found[i].bytes; b++)
            seen[found[i].address + b - BASE] = found[i].constant + b;
    }
    for (uint64_t at = 0; at < SPAN; at++) {
        bool inside = BASE + at >= from && BASE + at < from + bytes;
        assert_int_equal(seen[at], inside ? stands_for(twins, count, BASE + at) : 0);
    }
    assert_int_equal(twins_find(client, from, bytes, found, 1), parts);
}

static void every_range_finds_what_it_touches(void **state)
{
    (void)state;
    unsigned random_state = seed_draw();
    for (int round = 0; round < 40; round++) {
        struct client client = {.number = 1};
        struct twin twins[SPAN];
        size_t count = 0;
        for (uint64_t at = 0; at < SPAN;) {
            uint64_t bytes = 1 + (uint64_t)rand_r(&random_state) % 9;
            if (at + bytes > SPAN)
                break;
            if (rand_r(&random_state) % 3)
                twins[count++] = (struct twin){.address = BASE + at,
                                               .bytes = bytes,
                                               .constant = 100000 + 1000 * at,
                                               .module = module_at(8)};
            at += bytes;
        }
        /* In any order. */
        for (size_t i = 0; i < count; i++)
            assert_int_equal(twins_add(&client, &twins[count % 7 ? i * 7 % count : i]), 0);
        for (uint64_t from = 0; from < SPAN; from++)
            for (uint64_t bytes = 1; from + bytes <= SPAN; bytes++)
                agrees(&client, twins, count, BASE + from, bytes);
        free(client.objects.twins);
    }
}

static void the_twins_of_a_module_go_with_it(void **state)
{
    (void)state;
    struct client client = {.number = 1};
    struct twin found[2];
    for (uintptr_t i = 0; i < 10; i++)
        assert_int_equal(twins_add(&client, &(struct twin){.address = BASE + 4 * i,
                                                           .bytes = 4,
                                                           .constant = 5000 + 4 * i,
                                                           .module = module_at(8 + i % 2)}),
                         0);
    assert_int_equal(twins_find(&client, BASE, 40, found, 2), 10);
    twins_remove(&client, module_at(9));
    assert_int_equal(twins_find(&client, BASE, 40, found, 2), 5);
    assert_int_equal(found[1].address, BASE + 8);
    twins_remove(&client, module_at(8));
    assert_int_equal(twins_find(&client, BASE, 40, found, 2), 0);
    free(client.objects.twins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_finds_what_it_touches),
        cmocka_unit_test(the_twins_of_a_module_go_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
