/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The part of an image that reaches the server. The fake's device has compute capability 9.0. */
#include "common/cuda/fatbin.h"
#include "tests/unit/client/fixture.h"

enum { ENTRY_HEADER = 64, ROOM = 4096 };

struct container {
    uint8_t bytes[ROOM];
    size_t count;
};

static void put(struct container *container, size_t at, uint64_t value, unsigned width)
{
    memcpy(container->bytes + at, &value, width);
}

static void begin(struct container *container)
{
    *container = (struct container){.count = FATBIN_HEADER_BYTES};
    put(container, 0, FATBIN_MAGIC, 4);
    put(container, 4, 1, 2);
    put(container, 6, FATBIN_HEADER_BYTES, 2);
}

static void add(struct container *container, enum fatbin_kind kind, uint32_t arch, size_t payload)
{
    size_t at = container->count;
    put(container, at, kind, 2);
    put(container, at + 4, ENTRY_HEADER, 4);
    put(container, at + 8, payload, 8);
    put(container, at + 28, arch, 4);
    memset(container->bytes + at + ENTRY_HEADER, ' ', payload);
    container->count += ENTRY_HEADER + payload;
    put(container, 8, container->count - FATBIN_HEADER_BYTES, 8);
}

static uint64_t load(const struct fixture *f, const void *image, size_t bytes)
{
    gpushare_module *module;
    OK(gpushare_module_load(f->gpu, image, bytes, &module));
    OK(gpushare_module_unload(module));
    return fake_image_bytes(f->server);
}

static void one_entry_of_a_fatbin_arrives(void **state)
{
    static struct container container;
    struct fixture f;
    (void)state;
    fixture_start(&f, NULL);
    assert_int_equal(fake_image_bytes(f.server), strlen("ptx text"));
    begin(&container);
    add(&container, FATBIN_CUBIN, 90, 1000);
    add(&container, FATBIN_PTX, 75, 200);
    add(&container, FATBIN_PTX, 80, 320);
    add(&container, FATBIN_PTX, 100, 408);
    assert_int_equal(load(&f, container.bytes, container.count),
                     FATBIN_HEADER_BYTES + ENTRY_HEADER + 320);
    /* Without PTX for the device, its machine code. */
    begin(&container);
    add(&container, FATBIN_CUBIN, 80, 504);
    add(&container, FATBIN_PTX, 100, 408);
    add(&container, FATBIN_CUBIN, 90, 1000);
    assert_int_equal(load(&f, container.bytes, container.count),
                     FATBIN_HEADER_BYTES + ENTRY_HEADER + 1000);
    fixture_stop(&f);
}

static void what_the_server_refuses_arrives_whole(void **state)
{
    static struct container container;
    struct fixture f;
    (void)state;
    fixture_start(&f, NULL);
    begin(&container);
    add(&container, FATBIN_CUBIN, 80, 504);
    add(&container, FATBIN_PTX, 100, 408);
    assert_int_equal(load(&f, container.bytes, container.count), container.count);
    add(&container, FATBIN_PTX, 75, 200);
    assert_int_equal(load(&f, container.bytes, container.count - 8), container.count - 8);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_entry_of_a_fatbin_arrives),
        cmocka_unit_test(what_the_server_refuses_arrives_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
