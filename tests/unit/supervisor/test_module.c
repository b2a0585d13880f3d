/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Modules: images that clients share, the memory of variables, and nothing left behind. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

static void images_are_shared_by_content(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, NULL), two = fake_attach(&fake, 0, 0, NULL, NULL);
    uint32_t module = fake_load(&fake, one, "the same text");
    fake_load(&fake, two, "the same text");
    assert_int_equal(fake.supervisor->server.cache.images, 1);
    const struct image *shared =
        LIST_FIRST(&fake.supervisor->server.cache.list, struct image, in_cache);
    assert_true(shared && shared->references == 2);
    fake_load(&fake, two, "another text!");
    assert_int_equal(fake.supervisor->server.cache.images, 2);
    struct proto_module_unload body = {.module = module};
    fake_send(&fake, one, PROTO_MODULE_UNLOAD, &body);
    fake_expect(&fake, one, PROTO_DONE);
    assert_int_equal(fake.supervisor->server.cache.images, 2);
    fake_send(&fake, one, PROTO_MODULE_UNLOAD, &body);
    fake_expect_failed(&fake, one, PROTO_ERROR_INVALID_HANDLE, "module 1");
    close(two);
    FAKE_WAIT(&fake, fake.supervisor->server.cache.images == 0);
    close(one);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void images_that_lie_are_refused(void **state)
{
    (void)state;
    struct proto_module_load body = {.count = 5};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_send_image(&fake, fd, "shorter", 8);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_IMAGE, "shorter than");
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fake_send_fd(&fake, fd, PROTO_MODULE_LOAD, &body, &pipes[0], 1);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_IMAGE, "memfd");
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    fake_send_fd(&fake, fd, PROTO_MODULE_LOAD, &body, &file, 1);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_IMAGE, "memfd");
    close(pipes[0]);
    close(pipes[1]);
    close(file);
    assert_int_equal(fake.worker[0].inspected, 0);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void variables_are_charged_and_come_back(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].global_bytes = 5 * MIB;
    uint32_t module = fake_load(&fake, fd, "module with variables");
    assert_int_equal(fake_usage(&fake, fd).used, 6 * MIB);
    /* The variables' memory is not the client's to free. */
    struct proto_memory_free body = {.address = fake_first(&fake)->heap.first->address};
    fake_send(&fake, fd, PROTO_MEMORY_FREE, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "of this client");
    /* A second one does not fit: the worker is told to forget what it has inspected. */
    fake_send_image(&fake, fd, "another", 7);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY, "variables");
    FAKE_WAIT(&fake, fake.worker[0].unloads == 1);
    assert_int_equal(fake_first(&fake)->module_count, 1);
    struct proto_module_unload unload = {.module = module};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    FAKE_WAIT(&fake, fake_usage(&fake, fd).used == 0);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void memory_of_variables_is_like_any_other_after_the_unload(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].global_bytes = 4096;
    /* The slab stays, because of this. */
    fake_alloc(&fake, fd, 4096);
    struct proto_module_unload unload = {.module = fake_load(&fake, fd, "module with variables")};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    FAKE_WAIT(&fake, fake_first(&fake)->heap.retired_blocks == 0);
    uint64_t address = fake_alloc(&fake, fd, 4096);
    assert_int_equal(address, fake_first(&fake)->heap.first->address + 4096);
    fake_free(&fake, fd, address);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void variables_that_the_driver_places_are_charged_too(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].resident_bytes = 5 * MIB + 1;
    uint32_t module = fake_load(&fake, fd, "module with constants");
    assert_int_equal(fake_usage(&fake, fd).used, 5 * MIB + 1);
    fake_send_image(&fake, fd, "another", 7);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY,
                       "5 MiB of 8 MiB are in use and 5 MiB more");
    fake_alloc_refused(&fake, fd, 3 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    fake_alloc(&fake, fd, 2 * MIB);
    struct proto_module_unload unload = {.module = module};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    FAKE_WAIT(&fake, fake_usage(&fake, fd).used == 2 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void images_are_a_limit_of_their_own(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.supervisor->server.images.limit = 40; /* of which each client may have a quarter */
    int one = fake_attach(&fake, 0, 0, NULL, NULL), two = fake_attach(&fake, 0, 0, NULL, NULL);
    uint32_t module = fake_load(&fake, one, "sixofs");
    fake_send_image(&fake, one, "fiveB", 5);
    fake_expect_failed(&fake, one, PROTO_ERROR_OUT_OF_MEMORY, "module image memory of this client");
    fake_load(&fake, one, "four");
    assert_int_equal(fake.supervisor->server.images.used, 10);
    /* Each client pays for what it loaded, though the bytes are kept once. */
    fake_load(&fake, two, "sixofs");
    assert_int_equal(fake.supervisor->server.images.used, 16);
    assert_int_equal(fake.supervisor->server.cache.images, 2);
    struct proto_module_unload unload = {.module = module};
    fake_send(&fake, one, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, one, PROTO_DONE);
    fake_load(&fake, one, "fiveB");
    close(one);
    close(two);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_module_that_does_not_load_leaves_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].global_bytes = 1000;
    fake.worker[0].refuse_load = true;
    fake_send_image(&fake, fd, "text", 4);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_PTX, "line 3");
    FAKE_WAIT(&fake, fake.worker[0].unloads == 1 && fake_usage(&fake, fd).used == 0);
    assert_int_equal(fake_first(&fake)->module_count, 0);
    assert_int_equal(fake.supervisor->server.cache.images, 0);
    assert_int_equal(fake.supervisor->server.fds.used, 0);
    fake.worker[0].refuse_load = false;
    /* Each module is charged a descriptor, and a second one while it is loaded. */
    fake.supervisor->server.fds.limit = 4;
    fake_load(&fake, fd, "one"); /* with the slab of its variables: two */
    fake_load(&fake, fd, "two");
    fake_send_image(&fake, fd, "four", 4);
    fake_expect_failed(&fake, fd, PROTO_ERROR_SERVER_RESOURCES, "4 of 4");
    assert_int_equal(fake.supervisor->server.fds.used, 3);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void unknown_modules_do_not_reach_the_worker(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    struct proto_function_get body = {.module = 9};
    fake_send(&fake, fd, PROTO_FUNCTION_GET, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "module 9");
    fake_send(&fake, fd, PROTO_GLOBAL_GET, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "module 9");
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_shared_by_content),
        cmocka_unit_test(images_that_lie_are_refused),
        cmocka_unit_test(variables_are_charged_and_come_back),
        cmocka_unit_test(memory_of_variables_is_like_any_other_after_the_unload),
        cmocka_unit_test(variables_that_the_driver_places_are_charged_too),
        cmocka_unit_test(images_are_a_limit_of_their_own),
        cmocka_unit_test(a_module_that_does_not_load_leaves_nothing),
        cmocka_unit_test(unknown_modules_do_not_reach_the_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
