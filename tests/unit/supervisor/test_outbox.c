/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* outbox: each line is in the file once, whatever the last server knew of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/supervisor/keep/line_file.h"
#include "server/supervisor/keep/outbox.h"

enum { LAYOUT = 7, KIND = 104 };

struct scene {
    char folder[64], path[96];
    uv_loop_t loop;
    int manager;
    struct notify notify;
    struct keeper keeper;
    struct outbox outbox;
};

static void scene_open(struct scene *scene, const char *folder)
{
    struct state_log_reader reader;
    struct error why;
    int pair[2];
    *scene = (struct scene){.manager = -1};
    snprintf(scene->folder, sizeof scene->folder, "%s", folder ? folder : "/tmp/outbox-XXXXXX");
    if (!folder)
        assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->path, sizeof scene->path, "%s/lines", scene->folder);
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    scene->manager = pair[0];
    scene->notify.fd = pair[1];
    assert_int_equal(keeper_open(&scene->keeper, &scene->notify, NULL, 0, LAYOUT, &reader, &why),
                     KEEPER_NOTHING);
    assert_int_equal(keeper_begin(&scene->keeper, 0), 0);
    outbox_open(&scene->outbox, &scene->loop);
    outbox_keep(&scene->outbox, &scene->keeper);
}

/* A turn of the server's loop. */
static void turn(struct scene *scene)
{
    outbox_put(&scene->outbox, KIND);
    keeper_commit(&scene->keeper);
    outbox_go(&scene->outbox);
}

static void scene_run(struct scene *scene)
{
    while (scene->outbox.write)
        uv_run(&scene->loop, UV_RUN_ONCE);
}

/* The process is gone: what it had in hand is nowhere. */
static void scene_close(struct scene *scene, bool well)
{
    while (!outbox_end(&scene->outbox))
        uv_run(&scene->loop, UV_RUN_ONCE);
    uv_run(&scene->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene->loop), 0);
    keeper_close(&scene->keeper);
    notify_close(&scene->notify);
    close(scene->manager);
    if (well) {
        unlink(scene->path);
        assert_int_equal(rmdir(scene->folder), 0);
    }
}

static void assert_file(const struct scene *scene, const char *text)
{
    char found[256];
    const long bytes = line_file_tail(scene->path, found, sizeof found - 1);
    assert_true(bytes >= 0);
    found[bytes] = '\0';
    assert_string_equal(found, text);
}

static void lines_are_appended_and_forgotten(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene, NULL);
    outbox_add(&scene.outbox, scene.path, "{\"a\":1}\n");
    outbox_add(&scene.outbox, scene.path, "{\"b\":2}\n");
    turn(&scene);
    scene_run(&scene);
    assert_int_equal(scene.outbox.count, 0);
    /* A machine that crashed left a part of a line. */
    FILE *file = fopen(scene.path, "a");
    assert_non_null(file);
    fputs("{\"to", file);
    assert_int_equal(fclose(file), 0);
    outbox_add(&scene.outbox, scene.path, "{\"c\":3}\n");
    turn(&scene);
    scene_run(&scene);
    assert_file(&scene, "{\"a\":1}\n{\"b\":2}\n{\"to\n{\"c\":3}\n");
    scene_close(&scene, true);
}

/* Of three lines that were kept, the last server had written one. */
static void the_next_server_writes_what_is_not_there(void **state)
{
    struct scene last, next;
    struct state_log_reader reader;
    (void)state;
    scene_open(&last, NULL);
    scene_open(&next, last.folder);
    const char *const texts[] = {"{\"a\":1}\n", "{\"b\":2}\n", "{\"c\":3}\n"};
    for (size_t i = 0; i < 3; i++)
        outbox_add(&last.outbox, last.path, texts[i]);
    outbox_put(&last.outbox, KIND);
    keeper_commit(&last.keeper);
    assert_int_equal(line_file_append(last.path, texts[1], strlen(texts[1])), 0);
    assert_int_equal(state_log_read(&reader, last.keeper.log->fd, LAYOUT), LOG_IS_WHOLE);
    outbox_read(&next.outbox, &reader, KIND, next.path);
    state_log_reader_close(&reader);
    assert_int_equal(next.outbox.count, 3);
    turn(&next);
    scene_run(&next);
    assert_file(&next, "{\"b\":2}\n{\"a\":1}\n{\"c\":3}\n");
    assert_int_equal(next.outbox.count, 0);
    /* Its own copies would be there twice; they are not written. */
    unlink(last.path);
    scene_close(&next, false);
    scene_close(&last, true);
}

/* A server that is killed while it writes leaves a part of a line, up to all of it but its end. */
static void what_a_killed_server_tore_is_mended(void **state)
{
    static const char whole[] = "{\"a\":1}\n", text[] = "{\"b\":2}\n{\"c\":3}\n";
    struct scene scene;
    char torn[64];
    (void)state;
    scene_open(&scene, NULL);
    for (size_t bytes = 1; bytes < sizeof text - 1; bytes++) {
        snprintf(torn, sizeof torn, "%s%.*s", whole, (int)bytes, text);
        FILE *file = fopen(scene.path, "w");
        assert_non_null(file);
        fputs(torn, file);
        assert_int_equal(fclose(file), 0);
        const bool first_is_whole = bytes >= strlen("{\"b\":2}\n");
        const char *rest = text + (first_is_whole ? strlen("{\"b\":2}\n") : 0);
        assert_int_equal(line_file_append(scene.path, rest, strlen(rest)), 0);
        assert_file(&scene, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    }
    scene_close(&scene, true);
}

static void what_can_not_be_written_waits(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene, NULL);
    assert_int_equal(mkdir(scene.path, 0700), 0);
    outbox_add(&scene.outbox, scene.path, "{\"a\":1}\n");
    turn(&scene);
    scene_run(&scene);
    assert_true(scene.outbox.failing);
    assert_int_equal(scene.outbox.count, 1);
    turn(&scene);
    assert_null(scene.outbox.write); /* not at once again */
    assert_int_equal(rmdir(scene.path), 0);
    while (scene.outbox.waits)
        uv_run(&scene.loop, UV_RUN_ONCE);
    turn(&scene);
    scene_run(&scene);
    assert_false(scene.outbox.failing);
    assert_file(&scene, "{\"a\":1}\n");
    scene_close(&scene, true);
}

/* The file has another name now, while a write of the old one fails. */
static void another_file_is_tried_at_once(void **state)
{
    struct scene scene;
    char other[128], found[64];
    (void)state;
    scene_open(&scene, NULL);
    snprintf(other, sizeof other, "%s/other", scene.folder);
    assert_int_equal(mkdir(scene.path, 0700), 0);
    outbox_add(&scene.outbox, scene.path, "{\"a\":1}\n");
    turn(&scene);
    outbox_try(&scene.outbox, other);
    scene_run(&scene);
    assert_false(scene.outbox.failing);
    turn(&scene);
    scene_run(&scene);
    assert_int_equal(scene.outbox.count, 0);
    assert_int_equal(line_file_tail(other, found, sizeof found), strlen("{\"a\":1}\n"));
    /* It waits after a failure, but for the same file alone. */
    outbox_add(&scene.outbox, scene.path, "{\"b\":2}\n");
    turn(&scene);
    scene_run(&scene);
    assert_true(scene.outbox.failing && scene.outbox.waits);
    outbox_try(&scene.outbox, other);
    turn(&scene);
    assert_non_null(scene.outbox.write);
    scene_run(&scene);
    assert_int_equal(scene.outbox.count, 0);
    unlink(other);
    assert_int_equal(rmdir(scene.path), 0);
    scene_close(&scene, true);
}

static void lines_beyond_the_most_are_counted(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene, NULL);
    assert_int_equal(mkdir(scene.path, 0700), 0);
    for (int i = 0; i < OUTBOX_MAX + 2; i++)
        outbox_add(&scene.outbox, scene.path, "{}\n");
    assert_int_equal(scene.outbox.count, OUTBOX_MAX);
    assert_int_equal(scene.outbox.lost, 2);
    /* The server ends, and the file still can't be written. */
    while (!outbox_end(&scene.outbox))
        uv_run(&scene.loop, UV_RUN_ONCE);
    assert_int_equal(rmdir(scene.path), 0);
    scene_close(&scene, true);
}

/* As the service's umask is. The group makes the reports, and nobody else reads them. */
static void its_group_may_read_the_file(void **state)
{
    struct scene scene;
    struct stat found;
    char folder[128], path[160];
    (void)state;
    scene_open(&scene, NULL);
    snprintf(folder, sizeof folder, "%s/folder", scene.folder);
    snprintf(path, sizeof path, "%s/lines", folder);
    for (unsigned i = 0; i < 2; i++) {
        const mode_t before = umask(i ? 0 : 077);
        assert_int_equal(line_file_append(path, "a\n", 2), 0);
        umask(before);
        assert_int_equal(stat(path, &found), 0);
        assert_int_equal(found.st_mode & 07777, 0640);
        assert_int_equal(stat(folder, &found), 0);
        assert_int_equal(found.st_mode & 07777, 0750);
        unlink(path);
        assert_int_equal(rmdir(folder), 0);
    }
    /* The operator's mode of a file that is there stays. */
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(line_file_append(path, "a\n", 2), 0);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(line_file_append(path, "a\n", 2), 0);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
    assert_int_equal(stat(folder, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0700);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    scene_close(&scene, true);
}

/* A name that somebody else may have put there. */
static void only_a_regular_file_is_written(void **state)
{
    struct scene scene;
    char target[128];
    (void)state;
    scene_open(&scene, NULL);
    snprintf(target, sizeof target, "%s/target", scene.folder);
    assert_int_equal(symlink(target, scene.path), 0);
    assert_true(line_file_append(scene.path, "a\n", 2) < 0);
    assert_int_equal(access(target, F_OK), -1);
    unlink(scene.path);
    assert_int_equal(mkfifo(scene.path, 0600), 0);
    assert_true(line_file_append(scene.path, "a\n", 2) < 0);
    scene_close(&scene, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_appended_and_forgotten),
        cmocka_unit_test(the_next_server_writes_what_is_not_there),
        cmocka_unit_test(what_a_killed_server_tore_is_mended),
        cmocka_unit_test(what_can_not_be_written_waits),
        cmocka_unit_test(another_file_is_tried_at_once),
        cmocka_unit_test(lines_beyond_the_most_are_counted),
        cmocka_unit_test(its_group_may_read_the_file),
        cmocka_unit_test(only_a_regular_file_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
