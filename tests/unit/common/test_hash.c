/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Hashes: the field's arithmetic against a slow oracle, keys that differ, and names chosen to
 * collide under the hash that stood here before, which don't. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

#define PRIME ((UINT64_C(1) << 61) - 1)

static uint64_t add_slowly(uint64_t a, uint64_t b)
{
    return a >= PRIME - b ? a - (PRIME - b) : a + b;
}

static uint64_t multiply_slowly(uint64_t a, uint64_t b)
{
    uint64_t out = 0;
    for (; b; b >>= 1, a = add_slowly(a, a))
        if (b & 1)
            out = add_slowly(out, a);
    return out;
}

static void hash_arithmetic_is_that_of_the_prime_field(void **state)
{
    (void)state;
    static const uint64_t some[] = {0,          1, 2, 3, PRIME - 1, PRIME - 2, UINT64_C(1) << 60,
                                    12345678901};
    enum { COUNT = sizeof some / sizeof *some };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            for (int k = 0; k < COUNT; k++) {
                struct hash_key key = {.point = some[i], .factor = some[k]};
                uint64_t expected = add_slowly(multiply_slowly(some[j], some[i]), some[k]);
                assert_int_equal(hash_add(&key, some[j], some[k]), expected);
                assert_int_equal(hash_end(&key, some[j]), multiply_slowly(some[j], some[k]));
            }
}

/* Long ones are hashed four pieces at a time. */
static void bytes_of_any_length_are_hashed_piece_by_piece(void **state)
{
    (void)state;
    enum { LONGEST = 300, PIECE = 7 };
    unsigned char text[LONGEST];
    struct hash_key key;
    assert_int_equal(hash_key_make(&key), 0);
    for (size_t i = 0; i < LONGEST; i++)
        text[i] = (unsigned char)rand();
    for (size_t length = 0; length <= LONGEST; length++) {
        uint64_t expected = 12345;
        for (size_t at = 0; at < length; at += PIECE) {
            uint64_t piece = 0;
            for (size_t i = 0; i < PIECE && at + i < length; i++)
                piece |= (uint64_t)text[at + i] << 8 * i;
            expected = add_slowly(multiply_slowly(expected, key.point), piece);
        }
        assert_int_equal(hash_add_bytes(&key, 12345, text, length), expected);
    }
}

static void bytes_count_each(void **state)
{
    (void)state;
    struct hash_key key;
    unsigned char text[40] = {0};
    assert_int_equal(hash_key_make(&key), 0);
    uint64_t plain = hash_add_bytes(&key, HASH_BEGIN, text, sizeof text);
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 1;
        assert_int_not_equal(hash_add_bytes(&key, HASH_BEGIN, text, sizeof text), plain);
        text[i] = 0;
    }
    assert_int_equal(hash_add_bytes(&key, HASH_BEGIN, text, sizeof text), plain);
}

static void keys_differ(void **state)
{
    (void)state;
    struct hash_key one, other;
    assert_int_equal(hash_key_make(&one), 0);
    assert_int_equal(hash_key_make(&other), 0);
    assert_int_not_equal(hash_add_bytes(&one, HASH_BEGIN, "name", 4),
                         hash_add_bytes(&other, HASH_BEGIN, "name", 4));
}

/* FNV-1a as the reader of PTX used it: 32 bits, no key, so collisions are found in seconds. */
static uint32_t hash_before(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h ^ h >> 15;
}

static void names_that_collide_under_one_key_are_spread(void **state)
{
    (void)state;
    enum { WANTED = 2000, BITS = 12 };
    uint8_t *used = calloc(1 << BITS, 1);
    struct hash_key key;
    char name[32];
    unsigned found = 0, places = 0;
    assert_non_null(used);
    assert_int_equal(hash_key_make(&key), 0);
    for (unsigned i = 0; found < WANTED; i++) {
        snprintf(name, sizeof name, "v%u", i);
        if (hash_before(name) & ((1 << BITS) - 1))
            continue;
        found++;
        uint64_t hash = hash_add(&key, HASH_BEGIN, strlen(name));
        hash = hash_end(&key, hash_add_bytes(&key, hash, name, strlen(name)));
        places += !used[hash & ((1 << BITS) - 1)]++;
    }
    /* 2,000 balls thrown into 4,096 places meet 1,580 of them, give or take 20. */
    print_message("%u names that had one place have %u\n", found, places);
    assert_true(places > 1200);
    free(used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_arithmetic_is_that_of_the_prime_field),
        cmocka_unit_test(bytes_of_any_length_are_hashed_piece_by_piece),
        cmocka_unit_test(bytes_count_each),
        cmocka_unit_test(keys_differ),
        cmocka_unit_test(names_that_collide_under_one_key_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
