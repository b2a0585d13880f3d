/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A GPU whose kernels can use all memory of its worker. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

static int attach_again(uint32_t device, uint32_t refused)
{
    int fd = fake_greet(&fake);
    struct proto_attach body = {.device = device, .allowance = PROTO_ALLOWANCE_UNSET};
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    if (refused) {
        fake_expect_failed(&fake, fd, refused, "user 4711");
    } else {
        fake_expect(&fake, fd, PROTO_ATTACHED);
        channel_close_fds(&fake.message);
    }
    return fd;
}

static void kernels_with_host_access_serve_one_user_at_a_time(void **state)
{
    (void)state;
    struct proto_worker_warning warning = {.warning = PROTO_WARNING_HOST_ACCESS,
                                           .text = "kernels see everything"};
    fake_open(&fake, 2, 256 * MIB);
    channel_send(fake.worker[0].fd,
                 &(struct channel_packet){.opcode = PROTO_WORKER_WARNING, .body = &warning});
    fake_settle(&fake);
    struct device_view view;
    view_device(fake.supervisor, 0, &view);
    assert_int_equal(view.warning_count, 1);
    assert_int_equal(view.warnings[0].which, PROTO_WARNING_HOST_ACCESS);
    assert_string_equal(view.warnings[0].text, "kernels see everything");

    int first = attach_again(0, 0);
    int same = attach_again(0, 0);
    struct session *sessions[] = {fake_session(&fake, 0), fake_session(&fake, 1)};
    assert_true(sessions[0] && sessions[1]);
    if (!sessions[0] || !sessions[1])
        return; /* for analysers, which don't know that an assertion does not return */
    uid_t uid = sessions[0]->uid;
    sessions[0]->uid = sessions[1]->uid = 4711;
    int refused = attach_again(0, PROTO_ERROR_NOT_PERMITTED);
    int elsewhere = attach_again(1, 0);
    fake.settings.allow_host_access = true;
    int allowed = attach_again(0, 0);
    sessions[0]->uid = sessions[1]->uid = uid;
    close(first);
    close(same);
    close(refused);
    close(elsewhere);
    close(allowed);
    fake_expect_nothing_left(&fake);

    /* The next worker may find it switched off. */
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, !fake.supervisor->server.devices[0].link);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
    fake_settle(&fake);
    view_device(fake.supervisor, 0, &view);
    assert_int_equal(view.warning_count, 0);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_with_host_access_serve_one_user_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
