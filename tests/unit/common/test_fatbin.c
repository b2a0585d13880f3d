/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The fatbin reader, on containers made here by the libraries that made the real
 * ones, and on damaged ones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/cuda/fatbin.h"

enum { SPACE = 1 << 16 };

static const char text[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n// aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";

struct builder {
    unsigned char bytes[SPACE];
    size_t size;
};

static void put(unsigned char *at, uint64_t value, unsigned width)
{
    memcpy(at, &value, width);
}

static void begin(struct builder *builder)
{
    memset(builder, 0, sizeof(*builder));
    put(builder->bytes, FATBIN_MAGIC, 4);
    put(builder->bytes + 4, 1, 2);
    put(builder->bytes + 6, 16, 2);
    builder->size = 16;
}

enum packing { PLAIN, ZSTD, LZ4 };

static void add(struct builder *builder, uint16_t kind, uint32_t arch, uint64_t flags,
                enum packing packing, const char *payload)
{
    unsigned char *entry = builder->bytes + builder->size;
    size_t length = strlen(payload) + 1, stored = length, padded;
    const uint32_t header = 72; /* with extras behind the fixed part */

    if (packing == PLAIN)
        memcpy(entry + header, payload, length);
    else if (packing == ZSTD)
        stored = ZSTD_compress(entry + header, SPACE / 4, payload, length, 3);
    else
        stored =
            (size_t)LZ4_compress_default(payload, (char *)entry + header, (int)length, SPACE / 4);
    padded = (stored + 7) / 8 * 8;
    put(entry, kind, 2);
    put(entry + 2, 0x101, 2);
    put(entry + 4, header, 4);
    put(entry + 8, padded, 8);
    put(entry + 28, arch, 4);
    put(entry + 40, flags | 0x11 | (packing == ZSTD ? 0x8000 : packing == LZ4 ? 0x2000 : 0), 8);
    if (packing != PLAIN) {
        put(entry + 16, stored, 4);
        put(entry + 56, length, 8);
    }
    builder->size += header + padded;
    put(builder->bytes + 8, builder->size - 16, 8);
}

static void every_packing_gives_the_text_back(void **state)
{
    static struct builder builder;
    struct fatbin fatbin;
    struct fatbin_entry entry;
    char *payload;
    size_t bytes;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_PTX, 70, 0, PLAIN, text);
    add(&builder, FATBIN_PTX, 80, 0, ZSTD, text);
    add(&builder, FATBIN_PTX, 90, 0, LZ4, text);
    assert_int_equal(fatbin_size(builder.bytes), builder.size);
    assert_int_equal(fatbin_open(&fatbin, builder.bytes, sizeof(builder.bytes)), 0);
    for (uint32_t arch = 70; arch <= 90; arch += 10) {
        assert_int_equal(fatbin_next(&fatbin, &entry), 1);
        assert_int_equal(entry.arch, arch);
        assert_int_equal(entry.kind, FATBIN_PTX);
        assert_int_equal(fatbin_payload(&entry, &payload, &bytes), 0);
        assert_int_equal(bytes, strlen(text));
        assert_string_equal(payload, text);
        free(payload);
    }
    assert_int_equal(fatbin_next(&fatbin, &entry), 0);
    assert_int_equal(fatbin_next(&fatbin, &entry), 0);
}

static void the_best_ptx_is_chosen(void **state)
{
    static struct builder builder;
    struct fatbin_entry entry;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_PTX, 75, 0, PLAIN, text);
    add(&builder, FATBIN_CUBIN, 90, 0, PLAIN, "cubin");
    add(&builder, FATBIN_PTX, 90, FATBIN_FLAG_ARCH_SPECIFIC, PLAIN, text);
    add(&builder, FATBIN_PTX, 80, 0, PLAIN, text);
    add(&builder, FATBIN_PTX, 100, 0, PLAIN, text);
    assert_int_equal(fatbin_select_ptx(builder.bytes, builder.size, 90, &entry), 1);
    assert_int_equal(entry.arch, 80);
    assert_int_equal(fatbin_select_ptx(builder.bytes, builder.size, 120, &entry), 1);
    assert_int_equal(entry.arch, 100);
    assert_int_equal(fatbin_select_ptx(builder.bytes, builder.size, 75, &entry), 1);
    assert_int_equal(entry.arch, 75);
    assert_int_equal(fatbin_select_ptx(builder.bytes, builder.size, 70, &entry), 0);
}

static void machine_code_is_chosen_where_no_ptx_fits(void **state)
{
    static struct builder builder;
    struct fatbin_entry entry, alone;
    uint8_t container[FATBIN_HEADER_BYTES + SPACE];
    struct fatbin fatbin;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_CUBIN, 80, 0, PLAIN, "of another generation");
    add(&builder, FATBIN_CUBIN, 86, 0, ZSTD, "later minor version");
    add(&builder, FATBIN_CUBIN, 90, FATBIN_FLAG_ARCH_SPECIFIC, PLAIN, "for 9.0 alone");
    assert_int_equal(fatbin_select(builder.bytes, builder.size, 90, &entry), 1);
    assert_int_equal(entry.arch, 90);
    assert_int_equal(fatbin_select(builder.bytes, builder.size, 87, &entry), 1);
    assert_int_equal(entry.arch, 86);
    assert_int_equal(fatbin_select(builder.bytes, builder.size, 75, &entry), 0);
    add(&builder, FATBIN_PTX, 75, 0, ZSTD, text);
    assert_int_equal(fatbin_select(builder.bytes, builder.size, 87, &entry), 1);
    assert_int_equal(entry.kind, FATBIN_PTX);
    /* A container of this entry alone is read as the whole was. */
    fatbin_head(container, &entry);
    memcpy(container + FATBIN_HEADER_BYTES, entry.whole, entry.whole_bytes);
    assert_int_equal(fatbin_size(container), FATBIN_HEADER_BYTES + entry.whole_bytes);
    assert_int_equal(fatbin_open(&fatbin, container, fatbin_size(container)), 0);
    assert_int_equal(fatbin_next(&fatbin, &alone), 1);
    assert_int_equal(alone.stored_bytes, entry.stored_bytes);
    assert_memory_equal(alone.stored, entry.stored, entry.stored_bytes);
    assert_int_equal(fatbin_next(&fatbin, &alone), 0);
    assert_int_equal(fatbin_select(builder.bytes, builder.size - 1, 75, &entry), -EINVAL);
}

static void the_text_of_an_image_is_found(void **state)
{
    static struct builder builder;
    static const char cubin[] = {0x7f, 'E', 'L', 'F', 0};
    struct fatbin_text found;

    (void)state;
    assert_int_equal(fatbin_text_open(&found, text, sizeof text, 90), 1);
    assert_ptr_equal(found.text, text);
    assert_int_equal(found.length, strlen(text));
    fatbin_text_close(&found);
    assert_int_equal(fatbin_text_open(&found, cubin, sizeof cubin, 90), 0);
    fatbin_text_close(&found);
    begin(&builder);
    add(&builder, FATBIN_PTX, 80, 0, LZ4, text);
    assert_int_equal(fatbin_text_open(&found, builder.bytes, builder.size, 90), 1);
    assert_string_equal(found.text, text);
    fatbin_text_close(&found);
    assert_int_equal(fatbin_text_open(&found, builder.bytes, builder.size, 75), 0);
    fatbin_text_close(&found);
}

/* In memory of exactly that size, so that a step too far is seen by the sanitizer. */
static int read_all(const unsigned char *bytes, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    struct fatbin fatbin;
    struct fatbin_entry entry;
    int result;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    result = fatbin_open(&fatbin, copy, size);
    while (result == 0 && (result = fatbin_next(&fatbin, &entry)) == 1) {
        char *payload;
        size_t length;

        result = fatbin_payload(&entry, &payload, &length);
        if (result == 0)
            free(payload);
    }
    free(copy);
    return result;
}

static void every_truncation_is_an_error(void **state)
{
    static struct builder builder;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_PTX, 80, 0, ZSTD, text);
    add(&builder, FATBIN_PTX, 90, 0, LZ4, text);
    assert_int_equal(read_all(builder.bytes, builder.size), 0);
    for (size_t size = 0; size < builder.size; size++)
        assert_int_equal(read_all(builder.bytes, size), -EINVAL);
}

static void damaged_fatbins_are_refused_or_read_right(void **state)
{
    static struct builder builder, damaged;
    uint64_t random = 1;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_PTX, 70, 0, PLAIN, text);
    add(&builder, FATBIN_PTX, 80, 0, ZSTD, text);
    add(&builder, FATBIN_PTX, 90, 0, LZ4, text);
    for (int round = 0; round < 20000; round++) {
        damaged = builder;
        for (int i = 0; i < 1 + round % 4; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            damaged.bytes[(random >> 33) % builder.size] = (unsigned char)(random >> 20);
        }
        read_all(damaged.bytes, builder.size); /* any answer, no crash, nothing read outside */
    }
}

static void impossible_sizes_in_headers_are_refused(void **state)
{
    static struct builder builder;
    struct fatbin fatbin;
    struct fatbin_entry entry;
    char *payload;
    size_t bytes;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_PTX, 80, 0, ZSTD, text);
    put(builder.bytes + 16 + 56, UINT64_C(1) << 40, 8);
    assert_int_equal(fatbin_open(&fatbin, builder.bytes, builder.size), 0);
    assert_int_equal(fatbin_next(&fatbin, &entry), 1);
    assert_int_equal(fatbin_payload(&entry, &payload, &bytes), -E2BIG);
    put(builder.bytes + 16 + 56, UINT64_MAX, 8);
    assert_int_equal(fatbin_open(&fatbin, builder.bytes, builder.size), 0);
    assert_int_equal(fatbin_next(&fatbin, &entry), -EINVAL);
    put(builder.bytes + 16 + 8, UINT64_MAX - 7, 8);
    assert_int_equal(fatbin_open(&fatbin, builder.bytes, builder.size), 0);
    assert_int_equal(fatbin_next(&fatbin, &entry), -EINVAL);
    put(builder.bytes + 8, UINT64_MAX - 15, 8);
    assert_int_equal(fatbin_size(builder.bytes), 0);
    assert_int_equal(fatbin_open(&fatbin, builder.bytes, builder.size), -EINVAL);
}

static void an_unknown_compression_is_not_taken_for_text(void **state)
{
    static struct builder builder;
    struct fatbin_entry entry;
    char *payload;
    size_t bytes;

    (void)state;
    begin(&builder);
    add(&builder, FATBIN_PTX, 80, 0, ZSTD, text);
    put(builder.bytes + 16 + 40, 0x11, 8); /* the flag that names the method is gone */
    assert_int_equal(fatbin_select_ptx(builder.bytes, builder.size, 90, &entry), 1);
    assert_int_equal(fatbin_payload(&entry, &payload, &bytes), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packing_gives_the_text_back),
        cmocka_unit_test(the_best_ptx_is_chosen),
        cmocka_unit_test(machine_code_is_chosen_where_no_ptx_fits),
        cmocka_unit_test(the_text_of_an_image_is_found),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(damaged_fatbins_are_refused_or_read_right),
        cmocka_unit_test(impossible_sizes_in_headers_are_refused),
        cmocka_unit_test(an_unknown_compression_is_not_taken_for_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
