/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A table of things that change at random: what is kept at each commit is what they are then, and a
 * change writes as much of a hundred thousand things as of a hundred.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/supervisor/keep/kept_table.h"

enum { LAYOUT = 7, KIND = 3, KEY = 9, THINGS = 300 };

struct thing {
    uint32_t row;
    uint32_t number, value;
};

struct scene {
    int manager;
    struct notify notify;
    struct keeper keeper;
    struct kept_table table;
};

static uint32_t state = 11;

static uint32_t chance(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static void scene_open(struct scene *scene)
{
    struct state_log_reader reader;
    struct error why;
    int pair[2];
    *scene = (struct scene){.manager = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    scene->manager = pair[0];
    scene->notify.fd = pair[1];
    assert_int_equal(keeper_open(&scene->keeper, &scene->notify, NULL, 0, LAYOUT, &reader, &why),
                     KEEPER_NOTHING);
    assert_int_equal(keeper_begin(&scene->keeper, 0), 0);
}

static void scene_close(struct scene *scene)
{
    kept_table_clear(&scene->table, &scene->keeper);
    keeper_close(&scene->keeper);
    notify_close(&scene->notify);
    close(scene->manager);
}

static void thing_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    const struct thing *thing = item;
    (void)context;
    if (!thing)
        return;
    assert_int_equal(thing->row, row);
    pack_number(pack, thing->number);
    pack_number(pack, thing->value);
}

static void put(struct scene *scene)
{
    kept_table_put(&scene->table, &scene->keeper, KIND, KEY, thing_pack, NULL);
}

static void commit(struct scene *scene)
{
    put(scene);
    keeper_commit(&scene->keeper);
    assert_true(kept_table_is_current(&scene->table, &scene->keeper, thing_pack, NULL));
}

/* Values by number - 1, as the next server finds them; 0: there is no such thing. */
static void read_back(const struct scene *scene, uint32_t values[THINGS])
{
    struct state_log_reader reader;
    size_t count;
    memset(values, 0, THINGS * sizeof *values);
    assert_int_equal(state_log_read(&reader, scene->keeper.log->fd, LAYOUT), LOG_IS_WHOLE);
    const struct state_log_entry *entry = state_log_find(&reader, KIND, KEY, &count);
    for (size_t i = 0; i < count; i++) {
        struct unpack unpack = unpack_begin(entry[i].data, entry[i].bytes);
        while (!unpack_is_whole(&unpack)) {
            uint64_t number = unpack_number(&unpack);
            assert_in_range(number, 1, THINGS);
            assert_int_equal(values[number - 1], 0);
            values[number - 1] = (uint32_t)unpack_number(&unpack);
            assert_false(unpack.failed);
        }
    }
    state_log_reader_close(&reader);
}

static void thing_change(struct scene *scene, struct thing *thing)
{
    if (!thing->row) {
        thing->value = 1 + chance(1000);
        kept_table_add(&scene->table, thing, &thing->row);
        assert_int_not_equal(thing->row, 0);
    } else if (chance(2)) {
        thing->value = 1 + chance(1000);
        kept_table_mark(&scene->table, thing->row);
    } else {
        thing->value = 0;
        kept_table_remove(&scene->table, &thing->row);
        assert_int_equal(thing->row, 0);
    }
}

static void change_at_random(uint32_t page_rows)
{
    struct thing things[THINGS] = {{.row = 0}};
    uint32_t committed[THINGS] = {0}, found[THINGS];
    struct scene scene;
    scene_open(&scene);
    scene.table.page_rows = page_rows;
    for (uint32_t i = 0; i < THINGS; i++)
        things[i].number = i + 1;
    for (unsigned step = 0; step < 6000; step++) {
        thing_change(&scene, &things[chance(THINGS)]);
        if (chance(8) == 0)
            put(&scene);
        if (chance(16) == 0) {
            commit(&scene);
            for (uint32_t i = 0; i < THINGS; i++)
                committed[i] = things[i].value;
        }
        if (chance(16) == 0) {
            read_back(&scene, found);
            assert_memory_equal(found, committed, sizeof found);
        }
    }
    for (uint32_t i = 0; i < THINGS; i++)
        kept_table_remove(&scene.table, &things[i].row);
    commit(&scene);
    assert_int_equal(scene.keeper.log->living, 0);
    /* Rows are used again. */
    assert_true(scene.table.page_count <= THINGS / (page_rows ? page_rows : KEPT_PAGE_ROWS) + 1);
    scene_close(&scene);
}

static void what_is_kept_is_what_was_at_the_latest_commit(void **unused)
{
    (void)unused;
    change_at_random(0);
    change_at_random(4);
}

/* Bytes that one thing's change adds to the log. */
static uint64_t cost_of_a_change(struct scene *scene, struct thing *thing)
{
    /* A half that is full is left in the middle. */
    for (unsigned i = 0; i < 2; i++) {
        const struct state_log *log = scene->keeper.log;
        const uint64_t before = log->tail, half = log->half;
        thing->value++;
        kept_table_mark(&scene->table, thing->row);
        commit(scene);
        if (log == scene->keeper.log && log->half == half)
            return scene->keeper.log->tail - before;
    }
    fail_msg("each change fills the log");
    return 0;
}

static void a_change_costs_the_same_however_many_there_are(void **unused)
{
    enum { FEW = 128, MANY = 100000 };
    struct thing *things = calloc(MANY, sizeof *things);
    struct scene scene;
    uint64_t of_few = 0;
    (void)unused;
    assert_non_null(things);
    scene_open(&scene);
    for (uint32_t i = 0; i < MANY; i++) {
        things[i].number = i + 1;
        kept_table_add(&scene.table, &things[i], &things[i].row);
        if (i + 1 != FEW)
            continue;
        commit(&scene);
        of_few = cost_of_a_change(&scene, &things[FEW / 2]);
    }
    commit(&scene);
    assert_int_not_equal(of_few, 0);
    assert_int_equal(cost_of_a_change(&scene, &things[MANY / 2]), of_few);
    /* Nothing was marked: nothing is written. */
    const uint64_t tail = scene.keeper.log->tail;
    commit(&scene);
    assert_int_equal(scene.keeper.log->tail, tail);
    scene_close(&scene);
    free(things);
}

/* Rows whose numbers are the caller's. */
struct numbered {
    uint32_t values[THINGS];
};

static void numbered_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    const struct numbered *numbered = context;
    assert_null(item);
    if (row > THINGS || !numbered->values[row - 1])
        return;
    pack_number(pack, row);
    pack_number(pack, numbered->values[row - 1]);
}

static void numbers_of_the_caller_may_come_in_any_order(void **unused)
{
    struct numbered numbered = {{0}};
    uint32_t found[THINGS];
    struct scene scene;
    (void)unused;
    scene_open(&scene);
    for (unsigned step = 0; step < 1000; step++) {
        uint32_t row = 1 + chance(THINGS);
        numbered.values[row - 1] = chance(4);
        kept_table_mark(&scene.table, row);
        kept_table_put(&scene.table, &scene.keeper, KIND, KEY, numbered_pack, &numbered);
        keeper_commit(&scene.keeper);
        if (step % 64)
            continue;
        read_back(&scene, found);
        assert_memory_equal(found, numbered.values, sizeof found);
    }
    scene_close(&scene);
}

static void a_change_that_is_not_marked_is_seen_by_the_check(void **unused)
{
    struct thing thing = {.number = 1, .value = 1};
    struct scene scene;
    (void)unused;
    scene_open(&scene);
    kept_table_add(&scene.table, &thing, &thing.row);
    commit(&scene);
    thing.value++;
    assert_false(kept_table_is_current(&scene.table, &scene.keeper, thing_pack, NULL));
    scene_close(&scene);
}

/* The table can't say which change is missing, so the server must keep nothing. */
static void a_change_that_memory_was_missing_for_ends_the_keeping(void **unused)
{
    struct scene scene;
    (void)unused;
    scene_open(&scene);
    scene.table.failed = true;
    put(&scene);
    assert_false(scene.keeper.on);
    scene_close(&scene);
}

static void without_a_table_nothing_is_kept(void **unused)
{
    struct thing thing = {.row = 5};
    (void)unused;
    kept_table_add(NULL, &thing, &thing.row);
    assert_int_equal(thing.row, 0);
    kept_table_mark(NULL, 1);
    kept_table_remove(NULL, &thing.row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_what_was_at_the_latest_commit),
        cmocka_unit_test(a_change_costs_the_same_however_many_there_are),
        cmocka_unit_test(numbers_of_the_caller_may_come_in_any_order),
        cmocka_unit_test(a_change_that_is_not_marked_is_seen_by_the_check),
        cmocka_unit_test(a_change_that_memory_was_missing_for_ends_the_keeping),
        cmocka_unit_test(without_a_table_nothing_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
