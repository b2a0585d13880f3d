/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Compiled code by its text: what is found, what goes first, and who still holds it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/code/cache/code_cache.h"

enum { BYTES = 100, ROOM = 3 * BYTES };

static struct code_cache cache;

static int setup(void **state)
{
    (void)state;
    return code_cache_open(&cache, -1);
}

static int teardown(void **state)
{
    (void)state;
    code_cache_close(&cache);
    return 0;
}

static struct code_name name_of(const char *text)
{
    return code_cache_name(&cache, text, strlen(text));
}

/* Its code is the text itself. */
static struct compiled *put(const char *text, size_t bytes, uint64_t room)
{
    const struct code_name name = name_of(text);
    char *code = calloc(1, bytes);
    assert_non_null(code);
    strcpy(code, text);
    struct compiled *compiled = compiled_new(code, bytes);
    assert_non_null(compiled);
    code_cache_put(&cache, &name, compiled, room);
    return compiled;
}

static bool knows(const char *text)
{
    const struct code_name name = name_of(text);
    struct compiled *found = code_cache_find(&cache, &name, ROOM);
    if (found)
        assert_string_equal(compiled_code(found), text);
    compiled_release(found);
    return found != NULL;
}

static void texts_of_one_length_differ(void **state)
{
    (void)state;
    compiled_release(put("one", BYTES, ROOM));
    assert_true(knows("one"));
    assert_false(knows("two"));
    assert_false(knows("on"));
}

static void the_least_recently_used_goes_first(void **state)
{
    (void)state;
    compiled_release(put("a", BYTES, ROOM));
    compiled_release(put("b", BYTES, ROOM));
    compiled_release(put("c", BYTES, ROOM));
    assert_true(knows("a"));
    compiled_release(put("d", BYTES, ROOM));
    assert_false(knows("b"));
    assert_true(knows("a") && knows("c") && knows("d"));
    code_cache_trim(&cache, 2 * BYTES);
    assert_false(knows("a"));
    code_cache_trim(&cache, 2 * BYTES - 1);
    assert_true(!knows("c") && knows("d"));
}

static void code_larger_than_the_room_drives_nothing_out(void **state)
{
    (void)state;
    compiled_release(put("small", BYTES, ROOM));
    compiled_release(put("large", ROOM + 1, ROOM));
    assert_true(knows("small") && !knows("large"));
    compiled_release(put("fits", ROOM, ROOM));
    assert_true(!knows("small") && knows("fits"));
}

static void code_lives_as_long_as_somebody_holds_it(void **state)
{
    (void)state;
    struct compiled *held = put("held", BYTES, ROOM);
    code_cache_trim(&cache, 0);
    assert_false(knows("held"));
    assert_string_equal(compiled_code(held), "held");
    compiled_release(held);
    compiled_release(NULL);
}

static void a_text_stands_in_it_once(void **state)
{
    (void)state;
    compiled_release(put("same", BYTES, ROOM));
    compiled_release(put("same", BYTES, ROOM));
    assert_int_equal(cache.bytes, BYTES);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(texts_of_one_length_differ),
        T(the_least_recently_used_goes_first),
        T(code_larger_than_the_room_drives_nothing_out),
        T(code_lives_as_long_as_somebody_holds_it),
        T(a_text_stands_in_it_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
