/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Names of texts, and the index by them against a plain table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/worker/code/cache/code_name.h"
#include "tests/support/seed.h"

enum { THINGS = 1000, STEPS = 20000 };

static struct code_link things[THINGS];
static bool inside[THINGS];

/* Many share a bucket, and some differ in one number alone. */
static struct code_name name_of(unsigned number)
{
    return (struct code_name){.length = number % 3, .hashes = {number / 6, number / 3 % 2}};
}

static void an_index_finds_what_is_in_it(void **state)
{
    (void)state;
    struct code_index index;
    code_index_open(&index);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rand() % THINGS;
        const struct code_name name = name_of(i);
        assert_ptr_equal(code_index_find(&index, &name), inside[i] ? &things[i] : NULL);
        if (inside[i]) {
            code_index_remove(&index, &things[i]);
        } else {
            things[i].name = name;
            code_index_add(&index, &things[i]);
        }
        inside[i] = !inside[i];
    }
    size_t count = 0;
    for (unsigned i = 0; i < THINGS; i++) {
        const struct code_name name = name_of(i);
        assert_ptr_equal(code_index_find(&index, &name), inside[i] ? &things[i] : NULL);
        count += inside[i];
    }
    assert_int_equal(index.count, count);
    assert_true(index.room >= count);
    code_index_close(&index);
    const struct code_name name = name_of(1);
    assert_null(code_index_find(&index, &name));
    code_index_close(&index);
}

static void a_name_depends_on_bytes_keys_and_kind(void **state)
{
    (void)state;
    struct hash_key keys[2], others[2];
    char text[100] = "a text";
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(hash_key_make(&keys[i]), 0);
        assert_int_equal(hash_key_make(&others[i]), 0);
    }
    const struct code_name name = code_name_make(keys, CODE_KIND_TEXT, text, sizeof text);
    struct code_name other = code_name_make(keys, CODE_KIND_TEXT, text, sizeof text);
    assert_true(code_name_equal(&name, &other));
    other = code_name_make(keys, CODE_KIND_IMAGE, text, sizeof text);
    assert_false(code_name_equal(&name, &other));
    other = code_name_make(others, CODE_KIND_TEXT, text, sizeof text);
    assert_false(code_name_equal(&name, &other));
    other = code_name_make(keys, CODE_KIND_TEXT, text, sizeof text - 1);
    assert_false(code_name_equal(&name, &other));
    for (unsigned i = 0; i < sizeof text; i++) {
        text[i] ^= 1;
        other = code_name_make(keys, CODE_KIND_TEXT, text, sizeof text);
        assert_true(name.hashes[0] != other.hashes[0] && name.hashes[1] != other.hashes[1]);
        text[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_finds_what_is_in_it),
        cmocka_unit_test(a_name_depends_on_bytes_keys_and_kind),
    };
    srand(seed_draw());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
