/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The table of address ranges against a map of single bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "client/engine/range/allocation.h"

enum { SPACE = 400, STEPS = 20000, NOBODY = 0 };

/* Addresses begin high, so that a difference that wraps shows. */
static const uint64_t base = UINT64_MAX - 4096;

struct model {
    unsigned owner[SPACE]; /* which allocation holds each byte; NOBODY */
    unsigned names;
};

static bool model_free(const struct model *model, unsigned at, unsigned bytes)
{
    for (unsigned i = at; i < at + bytes; i++)
        if (model->owner[i] != NOBODY)
            return false;
    return true;
}

static bool model_begins(const struct model *model, unsigned at)
{
    return model->owner[at] != NOBODY && (at == 0 || model->owner[at - 1] != model->owner[at]);
}

static unsigned model_end(const struct model *model, unsigned at)
{
    unsigned end = at;
    while (end < SPACE && model->owner[end] == model->owner[at])
        end++;
    return end;
}

static void check(struct allocations *table, const struct model *model, unsigned at)
{
    struct allocation found;
    bool there = allocation_find(table, base + at, &found);
    assert_int_equal(there, model->owner[at] != NOBODY);
    if (there) {
        assert_true(model_begins(model, (unsigned)(found.address - base)));
        assert_int_equal(found.address - base + found.bytes, model_end(model, at));
    }
}

static unsigned draw(uint32_t *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void table_agrees_with_a_map_of_bytes(void **state)
{
    (void)state;
    struct allocations table;
    struct model model = {.names = 0};
    uint32_t seed = 12345;
    allocation_init(&table);
    for (int step = 0; step < STEPS; step++) {
        unsigned at = draw(&seed, SPACE), bytes = 1 + draw(&seed, 20);
        if (at + bytes > SPACE)
            continue;
        if (draw(&seed, 2)) {
            struct allocation one = {
                .address = base + at, .bytes = bytes, .kind = ALLOCATION_DEVICE};
            assert_int_equal(allocation_add(&table, &one), 0);
            if (model_free(&model, at, bytes)) {
                model.names++;
                for (unsigned i = at; i < at + bytes; i++)
                    model.owner[i] = model.names;
            }
        } else {
            struct allocation taken;
            bool expected = model_begins(&model, at);
            assert_false(allocation_take(&table, base + at, ALLOCATION_HOST, &taken));
            assert_int_equal(allocation_take(&table, base + at, ALLOCATION_DEVICE, &taken),
                             expected);
            if (expected) {
                unsigned end = model_end(&model, at);
                assert_int_equal(taken.bytes, end - at);
                memset(&model.owner[at], 0, (end - at) * sizeof model.owner[0]);
            }
        }
        check(&table, &model, draw(&seed, SPACE));
    }
    for (unsigned at = 0; at < SPACE; at++)
        check(&table, &model, at);
    allocation_destroy(&table, true);
}

static void variables_go_with_their_module(void **state)
{
    (void)state;
    struct allocations table;
    struct allocation found;
    int first, second;
    allocation_init(&table);
    for (uint64_t i = 0; i < 10; i++) {
        struct allocation one = {.address = i * 100,
                                 .bytes = 50,
                                 .kind = ALLOCATION_VARIABLE,
                                 .owner = i % 2 ? &first : &second};
        assert_int_equal(allocation_add(&table, &one), 0);
    }
    allocation_disown(&table, &first);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(allocation_find(&table, i * 100 + 49, &found), i % 2 == 0);
        assert_false(allocation_find(&table, i * 100 + 50, &found));
    }
    allocation_destroy(&table, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_agrees_with_a_map_of_bytes),
        cmocka_unit_test(variables_go_with_their_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
