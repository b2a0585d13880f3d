/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* accounting: which clients have a line made, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "server/supervisor/session/accounting.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/settings.h"

#define SECOND_US UINT64_C(1000000)
#define DAY_US    (86400 * SECOND_US)

/* A server with a file that can't be written, and one client. */
struct scene {
    struct server server;
    struct settings settings;
    uv_loop_t loop;
    struct session *session;
    char folder[64];
};

static unsigned cuts;

static uint64_t real_us(void)
{
    return clock_read(CLOCK_REALTIME) / 1000;
}

static void cut(struct session *session)
{
    cuts++;
    session->bill.begun_us = real_us();
}

static int scene_open(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    scene->session = calloc(1, sizeof *scene->session);
    assert_non_null(scene->session);
    strcpy(scene->folder, "/tmp/accounting-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->settings.accounting, sizeof scene->settings.accounting, "%s", scene->folder);
    assert_int_equal(uv_loop_init(&scene->loop), 0);
    scene->server.settings = &scene->settings;
    scene->server.loop = &scene->loop;
    list_init(&scene->server.session_list);
    scene->session->state = PROTO_CONNECTION_STATE_ATTACHED;
    scene->session->bill.begun_at = clock_now();
    list_append(&scene->server.session_list, &scene->session->link);
    cuts = 0;
    *state = scene;
    return 0;
}

static int scene_close(void **state)
{
    struct scene *scene = *state;
    while (!accounting_end(&scene->server))
        uv_run(&scene->loop, UV_RUN_ONCE);
    uv_run(&scene->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene->loop), 0);
    assert_int_equal(rmdir(scene->folder), 0);
    free(scene->session);
    free(scene);
    return 0;
}

/* Looks without waiting for the next moment to look at. */
static void look(struct scene *scene)
{
    accounting_look(&scene->server);
    uv_run(&scene->loop, UV_RUN_NOWAIT);
}

static void a_line_is_due_when_an_interval_or_a_day_begins(void **state)
{
    (void)state;
    const uint64_t midnight = 20000 * DAY_US, hour = 3600 * SECOND_US;
    assert_int_equal(accounting_boundary(midnight, hour), midnight);
    assert_int_equal(accounting_boundary(midnight + hour - 1, hour), midnight);
    assert_int_equal(accounting_boundary(midnight + 5 * hour + 7, hour), midnight + 5 * hour);
    /* An interval that does not divide the day begins anew at midnight. */
    assert_int_equal(accounting_boundary(midnight + DAY_US - 1, 7 * hour), midnight + 21 * hour);
    assert_int_equal(accounting_boundary(midnight + DAY_US, 7 * hour), midnight + DAY_US);
}

static void a_line_of_the_last_interval_is_made(void **state)
{
    struct scene *scene = *state;
    scene->session->bill.begun_us = real_us() - DAY_US;
    accounting_open(&scene->server, cut);
    look(scene);
    assert_int_equal(cuts, 1);
    look(scene);
    assert_int_equal(cuts, 1);
}

/* Its client would have no line for a year. */
static void a_line_that_began_in_the_future_is_made(void **state)
{
    struct scene *scene = *state;
    scene->session->bill.begun_us = real_us() + 365 * DAY_US;
    accounting_open(&scene->server, cut);
    look(scene);
    assert_int_equal(cuts, 1);
}

/* The file is a folder here. A line without room would be lost, and its client keeps what it used.
 */
static void no_line_is_made_while_half_of_the_room_is_taken(void **state)
{
    struct scene *scene = *state;
    struct outbox *outbox = &scene->server.accounting.outbox;
    scene->session->bill.begun_us = real_us() - DAY_US;
    accounting_open(&scene->server, cut);
    for (unsigned i = 0; i < OUTBOX_MAX / 2; i++)
        accounting_add(&scene->server, "{}\n");
    look(scene);
    assert_int_equal(cuts, 0);
    assert_int_equal(outbox->lost, 0);
    /* There is room again. */
    outbox->count--;
    look(scene);
    outbox->count++;
    assert_int_equal(cuts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_due_when_an_interval_or_a_day_begins),
        cmocka_unit_test_setup_teardown(a_line_of_the_last_interval_is_made, scene_open,
                                        scene_close),
        cmocka_unit_test_setup_teardown(a_line_that_began_in_the_future_is_made, scene_open,
                                        scene_close),
        cmocka_unit_test_setup_teardown(no_line_is_made_while_half_of_the_room_is_taken, scene_open,
                                        scene_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
