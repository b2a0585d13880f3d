/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Known texts: to whom, at which place, and which goes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cuda/ptx.h"
#include "common/ipc/shm.h"
#include "server/worker/code/cache/known_image.h"
#include "server/worker/image/rewrite.h"
#include "server/worker/image/symbols.h"

static const char text_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 first = 5;\n.visible .global .align 8 .u64 second;\n"
    ".visible .entry both(.param .u32 n, .param .u64 at)\n{\n.reg .u64 %a, %b;\n"
    "mov.u64 %a, first;\nmov.u64 %b, second;\nret;\n}\n";
static const char resident_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .const .align 4 .u32 c = 5;\n"
    ".visible .entry none()\n{\nret;\n}\n";

static struct known_images images;

static int setup(void **state)
{
    (void)state;
    known_images_open(&images, 1 << 20);
    return images.open ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    known_images_close(&images);
    known_images_close(&images);
    return 0;
}

static struct rewrite *read_text(const char *text)
{
    const struct ptx_limits limits = {.bytes = 1 << 24};
    struct rewrite *rewrite;
    struct error why;
    assert_int_equal(rewrite_open(&rewrite, text, strlen(text), &limits, &why), 0);
    return rewrite;
}

static struct proto_worker_module_needs needs_of(const struct rewrite *rewrite)
{
    return (struct proto_worker_module_needs){.global_bytes = rewrite_global_bytes(rewrite),
                                              .resident_bytes = rewrite_resident_bytes(rewrite)};
}

/* Reads a text and, with a base, loads it. */
static struct known_image *learn(const char *text, uint64_t base)
{
    struct rewrite *rewrite = read_text(text);
    const struct proto_worker_module_needs needs = needs_of(rewrite);
    const struct code_name known_as = known_image_name(&images, text, strlen(text));
    struct known_image *image = known_image_add(&images, &known_as, rewrite, &needs);
    if (base) {
        const struct code_name name = {.length = 77, .hashes = {1, 2}};
        struct error why;
        char *placed;
        assert_int_equal(rewrite_place(rewrite, base, &placed, &why), 0);
        struct symbols *symbols = rewrite_symbols(rewrite);
        known_image_loaded(&images, image, &name, rewrite, symbols);
        symbols_free(symbols);
        free(placed);
    }
    rewrite_close(rewrite);
    return image;
}

static struct known_image *find(const char *text, struct proto_worker_module_needs *needs)
{
    const struct code_name name = known_image_name(&images, text, strlen(text));
    return known_image_find(&images, &name, needs);
}

static void the_next_module_of_a_text_is_not_read(void **state)
{
    (void)state;
    struct proto_worker_module_needs needs = {0};
    assert_null(find(text_ptx, &needs));
    struct known_image *first = learn(text_ptx, 0), *next = find(text_ptx, &needs);
    assert_non_null(first);
    assert_ptr_equal(first, next);
    assert_int_equal(needs.global_bytes, 16);
    assert_int_equal(needs.resident_bytes, 0);
    struct known_code code;
    assert_false(known_image_code(&images, next, 4096, &code));
    known_image_release(&images, first);
    known_image_release(&images, next);
    known_image_release(&images, NULL);
    /* One byte more, and one that differs. */
    const struct code_name longer = known_image_name(&images, text_ptx, sizeof text_ptx);
    assert_null(known_image_find(&images, &longer, &needs));
    char other[sizeof text_ptx];
    memcpy(other, text_ptx, sizeof other);
    other[20] ^= 1;
    assert_null(find(other, &needs));
}

static void its_variables_lie_where_each_module_has_them(void **state)
{
    (void)state;
    enum { BASE = 1 << 20 };
    struct known_image *image = learn(text_ptx, BASE);
    static const uint64_t places[] = {BASE, 8 * BASE, 512, UINT64_C(1) << 46};
    for (unsigned i = 0; i < 4; i++) {
        struct known_code code;
        uint64_t first, second, bytes;
        uint32_t pairs[16], count;
        assert_true(known_image_code(&images, image, places[i], &code));
        assert_int_equal(code.text.length, 77);
        assert_non_null(code.constant);
        assert_int_equal(code.global_bytes, 16);
        assert_true(symbols_variable(code.symbols, "first", &first, &bytes));
        assert_int_equal(bytes, 4);
        assert_true(symbols_variable(code.symbols, "second", &second, &bytes));
        assert_int_equal(bytes, 8);
        assert_true(first >= places[i] && first < places[i] + 16);
        assert_true(second >= places[i] && second < places[i] + 16 && first != second);
        assert_true(symbols_kernel(code.symbols, "both", pairs, &count, &bytes));
        assert_int_equal(count, 2);
        assert_int_equal(pairs[2], 8);
        symbols_free(code.symbols);
    }
    known_image_release(&images, image);
}

static void variables_that_stay_are_read_each_time(void **state)
{
    (void)state;
    struct proto_worker_module_needs needs;
    assert_null(learn(resident_ptx, 0));
    assert_null(find(resident_ptx, &needs));
}

/* A module that has an image keeps it, though it is not found any more. */
static void the_image_used_longest_ago_goes_first(void **state)
{
    (void)state;
    char text[sizeof text_ptx + 16];
    struct proto_worker_module_needs needs;
    snprintf(text, sizeof text, "%s// first\n", text_ptx);
    known_image_release(&images, learn(text, 0));
    const size_t one_bytes = images.bytes;
    struct known_image *held = learn(text_ptx, 4096);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%s// %u\n", text_ptx, i);
        known_image_release(&images, learn(text, i % 2 ? 4096 : 0));
        known_image_release(&images, find(text_ptx, &needs));
    }
    /* It was used until now, so others go before it. */
    images.max = images.bytes / 2;
    snprintf(text, sizeof text, "%s// more\n", text_ptx);
    known_image_release(&images, learn(text, 0));
    assert_true(images.bytes <= images.max);
    struct known_image *again = find(text_ptx, &needs);
    assert_non_null(again);
    known_image_release(&images, again);
    snprintf(text, sizeof text, "%s// %u\n", text_ptx, 0);
    assert_null(find(text, &needs));
    images.max = one_bytes;
    snprintf(text, sizeof text, "%s// last\n", text_ptx);
    known_image_release(&images, learn(text, 0));
    assert_null(find(text_ptx, &needs));
    images.max--;
    snprintf(text, sizeof text, "%s// greater\n", text_ptx);
    known_image_release(&images, learn(text, 0));
    assert_null(find(text, &needs));
    struct known_code code;
    assert_true(known_image_code(&images, held, 8192, &code));
    symbols_free(code.symbols);
    known_image_release(&images, held);
}

/* Two workers' caches on one memory. */
static struct shm memory;
static struct code_cache caches[2];

static int setup_store(void **state)
{
    if (shm_create(&memory, "store", 1 << 20) < 0 ||
        code_cache_open(&caches[0], dup(memory.fd)) < 0)
        return -1;
    if (setup(state))
        return -1;
    known_images_share(&images, &caches[0]);
    return 0;
}

static int teardown_store(void **state)
{
    teardown(state);
    for (unsigned i = 0; i < 2; i++)
        if (caches[i].by_use.ends.next)
            code_cache_close(&caches[i]);
    memset(caches, 0, sizeof caches);
    shm_release(&memory);
    return 0;
}

/* The next worker, on the same memory. */
static void begin_next(void)
{
    known_images_close(&images);
    code_cache_close(&caches[0]);
    memset(&caches[0], 0, sizeof caches[0]);
    assert_int_equal(code_cache_open(&caches[1], dup(memory.fd)), 0);
    known_images_open(&images, 1 << 20);
    known_images_share(&images, &caches[1]);
}

static void the_next_worker_knows_what_was_loaded(void **state)
{
    (void)state;
    enum { BASE = 1 << 20 };
    struct proto_worker_module_needs needs = {0};
    struct known_code code;
    uint64_t first, bytes, end;
    uint32_t pairs[16], count;
    char inspected[sizeof text_ptx + 16];
    snprintf(inspected, sizeof inspected, "%s// inspected\n", text_ptx);
    known_image_release(&images, learn(text_ptx, BASE));
    known_image_release(&images, learn(inspected, 0));
    begin_next();
    assert_null(find(inspected, &needs));
    struct known_image *image = find(text_ptx, &needs);
    assert_non_null(image);
    assert_int_equal(needs.global_bytes, 16);
    assert_true(known_image_code(&images, image, 4 * BASE, &code));
    assert_int_equal(code.text.length, 77);
    assert_int_equal(code.text.hashes[1], 2);
    assert_true(code.constant && code.constant[0]);
    assert_int_equal(code.global_bytes, 16);
    assert_true(code.tree_bytes > 0);
    assert_true(symbols_variable(code.symbols, "first", &first, &bytes));
    assert_true(first >= 4 * BASE && first < 4 * BASE + 16);
    assert_true(symbols_kernel(code.symbols, "both", pairs, &count, &end));
    assert_int_equal(count, 2);
    symbols_free(code.symbols);
    /* The second module of the text has the same one. */
    struct known_image *same = find(text_ptx, &needs);
    assert_ptr_equal(same, image);
    known_image_release(&images, same);
    known_image_release(&images, image);
}

/* A build whose structs differ may have noted it; a worker that went astray may have noted
 * anything. */
static void findings_in_another_form_are_not_used(void **state)
{
    (void)state;
    struct proto_worker_module_needs needs;
    size_t bytes;
    known_image_release(&images, learn(text_ptx, 4096));
    const struct code_name name = known_image_name(&images, text_ptx, strlen(text_ptx));
    uint8_t *noted = code_cache_recall(&caches[0], &name, &bytes);
    assert_non_null(noted);
    for (unsigned i = 0; i < 100; i++) {
        char other[sizeof text_ptx + 16];
        snprintf(other, sizeof other, "%s// %u\n", text_ptx, i);
        const struct code_name others = known_image_name(&images, other, strlen(other));
        uint8_t *changed = malloc(bytes);
        assert_non_null(changed);
        memcpy(changed, noted, bytes);
        /* The form is the first number. */
        if (i < 64)
            changed[i / 8] ^= (uint8_t)(1 << i % 8);
        code_cache_note(&caches[0], &others, changed, i < 64 ? bytes : i - 64 + bytes - 35);
        free(changed);
        if (i == 99) { /* unchanged, and whole: else nothing is shown above */
            struct known_image *image = find(other, &needs);
            assert_non_null(image);
            known_image_release(&images, image);
        } else {
            assert_null(find(other, &needs));
        }
    }
    free(noted);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define S(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown_store)
    const struct CMUnitTest tests[] = {
        T(the_next_module_of_a_text_is_not_read),  T(its_variables_lie_where_each_module_has_them),
        T(variables_that_stay_are_read_each_time), T(the_image_used_longest_ago_goes_first),
        S(the_next_worker_knows_what_was_loaded),  S(findings_in_another_form_are_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
