/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* keeper: what a service manager that fails leaves to the next server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/supervisor/keep/keeper.h"

enum { LAYOUT = 7, KIND = 1 };

static bool dry; /* arrays can't grow */

/* A sanitizer allocates before it can be called. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_DROUGHT skip()
#else
#define NO_DROUGHT (void)0

void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t whole;
    if (!dry && !__builtin_mul_overflow(count, bytes, &whole))
        return realloc(block, whole);
    errno = ENOMEM;
    return NULL;
}
#endif

struct scene {
    int manager;
    struct notify notify;
    struct keeper keeper;
    struct kept kept;
    int fd; /* that is kept */
    uint32_t number;
};

static void scene_open(struct scene *scene)
{
    struct state_log_reader reader;
    struct error why;
    int pair[2];
    *scene = (struct scene){.fd = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    scene->manager = pair[0];
    scene->notify.fd = pair[1];
    assert_int_equal(keeper_open(&scene->keeper, &scene->notify, NULL, 0, LAYOUT, &reader, &why),
                     KEEPER_NOTHING);
    assert_int_equal(keeper_begin(&scene->keeper, 0), 0);
    scene->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(scene->fd >= 0);
}

static void scene_close(struct scene *scene)
{
    keeper_remove(&scene->keeper, &scene->kept);
    keeper_close(&scene->keeper);
    notify_close(&scene->notify);
    close(scene->fd);
}

/* A socket takes ten messages that nobody has read. */
static void manager_reads(const struct scene *scene)
{
    char byte;
    while (recv(scene->manager, &byte, 1, 0) > 0)
        ;
}

static void put_and_commit(struct scene *scene)
{
    pack_begin(&scene->keeper.pack);
    keeper_pack_fd(&scene->keeper, &scene->keeper.pack, KEEPER_DATA, scene->fd, &scene->number);
    keeper_put(&scene->keeper, &scene->kept, (struct state_name){KIND, 1, 0}, &scene->keeper.pack);
    keeper_commit(&scene->keeper);
}

static void the_name_of_a_descriptor_that_was_not_dropped_is_taken(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    put_and_commit(&scene);
    const uint32_t number = scene.number;
    close(scene.manager);
    keeper_remove(&scene.keeper, &scene.kept);
    keeper_commit(&scene.keeper);
    assert_true(keeper_has(&scene.keeper, number, KEEPER_DATA));
    scene_close(&scene);
}

static void the_name_of_one_that_was_dropped_is_free(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    put_and_commit(&scene);
    const uint32_t number = scene.number;
    keeper_remove(&scene.keeper, &scene.kept);
    keeper_commit(&scene.keeper);
    assert_false(keeper_has(&scene.keeper, number, KEEPER_DATA));
    close(scene.manager);
    scene_close(&scene);
}

static void one_that_is_dropped_without_memory_is_free_too(void **state)
{
    struct scene scene;
    (void)state;
    NO_DROUGHT;
    scene_open(&scene);
    put_and_commit(&scene);
    const uint32_t number = scene.number;
    dry = true;
    keeper_remove(&scene.keeper, &scene.kept);
    keeper_commit(&scene.keeper);
    dry = false;
    assert_true(scene.keeper.on);
    assert_false(keeper_has(&scene.keeper, number, KEEPER_DATA));
    close(scene.manager);
    scene_close(&scene);
}

/* Between two commits a number is dropped, named again and dropped again. */
static void one_that_comes_and_goes_is_looked_at_once(void **state)
{
    enum { OTHERS = 2 };
    struct kept others[OTHERS] = {0};
    uint32_t numbers[OTHERS] = {0};
    struct scene scene;
    (void)state;
    scene_open(&scene);
    put_and_commit(&scene);
    const uint32_t number = scene.number;
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < OTHERS; i++) {
            pack_begin(&scene.keeper.pack);
            keeper_pack_fd(&scene.keeper, &scene.keeper.pack, KEEPER_DATA, scene.fd, &numbers[i]);
            keeper_put(&scene.keeper, &others[i], (struct state_name){KIND, 2 + i, 0},
                       &scene.keeper.pack);
            keeper_remove(&scene.keeper, &others[i]);
        }
    keeper_remove(&scene.keeper, &scene.kept);
    keeper_commit(&scene.keeper);
    assert_true(scene.keeper.on);
    assert_false(keeper_has(&scene.keeper, number, KEEPER_DATA));
    for (uint32_t i = 0; i < OTHERS; i++)
        assert_false(keeper_has(&scene.keeper, numbers[i], KEEPER_DATA));
    manager_reads(&scene);
    /* A number that is free again is dropped as any other. */
    scene.number = 0;
    put_and_commit(&scene);
    assert_true(keeper_has(&scene.keeper, scene.number, KEEPER_DATA));
    keeper_remove(&scene.keeper, &scene.kept);
    keeper_commit(&scene.keeper);
    assert_false(keeper_has(&scene.keeper, scene.number, KEEPER_DATA));
    close(scene.manager);
    scene_close(&scene);
}

/* Nobody can be told to drop the log, and it says what is true no more. */
static void the_log_of_a_keeper_that_gave_up_says_nothing(void **state)
{
    struct state_log_reader reader;
    struct scene scene;
    uint32_t other = 0;
    (void)state;
    scene_open(&scene);
    put_and_commit(&scene);
    int log = dup(scene.keeper.log->fd);
    assert_int_equal(state_log_read(&reader, log, LAYOUT), LOG_IS_WHOLE);
    assert_true(reader.begun);
    state_log_reader_close(&reader);
    close(scene.manager);
    keeper_store(&scene.keeper, KEEPER_DATA, scene.fd, &other);
    assert_false(scene.keeper.on);
    assert_int_equal(state_log_read(&reader, log, LAYOUT), LOG_IS_WHOLE);
    assert_false(reader.begun);
    state_log_reader_close(&reader);
    close(log);
    scene_close(&scene);
}

/* As a server finds that takes over from one whose descriptor the service manager lost. */
static void a_number_that_was_never_passed_is_not_named(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene);
    scene.number = 900;
    put_and_commit(&scene);
    assert_int_not_equal(scene.number, 900);
    assert_true(keeper_has(&scene.keeper, scene.number, KEEPER_DATA));
    close(scene.manager);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_of_a_descriptor_that_was_not_dropped_is_taken),
        cmocka_unit_test(the_name_of_one_that_was_dropped_is_free),
        cmocka_unit_test(one_that_is_dropped_without_memory_is_free_too),
        cmocka_unit_test(one_that_comes_and_goes_is_looked_at_once),
        cmocka_unit_test(the_log_of_a_keeper_that_gave_up_says_nothing),
        cmocka_unit_test(a_number_that_was_never_passed_is_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
