/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/supervisor/worker/discovery.h"
#include "common/error.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/worker/worker_process.h"

/* The parent is killed in a way that it cannot answer; its worker must not stay. */
static void a_worker_dies_with_its_supervisor(void **state)
{
    (void)state;
    int pipes[2], status;
    pid_t worker;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t supervisor = fork();
    assert_true(supervisor >= 0);
    if (supervisor == 0) {
        char *words[] = {"sh", "-c", "echo $$; exec sleep 1000", NULL};
        char *environment[] = {"PATH=/usr/bin:/bin", NULL};
        worker_process_spawn("/bin/sh", words, environment,
                             &(struct worker_process_fds){-1, -1, -1, -1, pipes[1], false});
        for (;;)
            pause();
    }
    /* It has become another program by now, and keeps what was said before. */
    char number[32] = "";
    assert_true(read(pipes[0], number, sizeof number - 1) > 0);
    worker = (pid_t)atol(number);
    assert_true(worker > 0);
    kill(supervisor, SIGKILL);
    assert_int_equal(waitpid(supervisor, &status, 0), supervisor);
    assert_int_equal(waitpid(worker, &status, 0), worker); /* as the orphan's new parent */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void nothing_but_the_channel_is_inherited(void **state)
{
    (void)state;
    int pipes[2], status;
    char output[256] = "";
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    int channel = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    int activity = memfd_create("activity", MFD_CLOEXEC);
    int barrier = memfd_create("barrier", MFD_CLOEXEC);
    int code = memfd_create("code", MFD_CLOEXEC);
    int secret = memfd_create("secret", MFD_CLOEXEC);
    char *words[] = {"sh", "-c",
                     "readlink /proc/$$/fd/3 /proc/$$/fd/4 /proc/$$/fd/5 /proc/$$/fd/6; ls -l "
                     "/proc/$$/fd | grep -c secret",
                     NULL};
    char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    const struct worker_process_fds fds = {channel, activity, barrier, code, pipes[1], false};
    pid_t pid = worker_process_spawn("/bin/sh", words, environment, &fds);
    assert_true(pid > 0);
    close(pipes[1]);
    for (size_t used = 0, got; used < sizeof output - 1; used += got) {
        ssize_t bytes = read(pipes[0], output + used, sizeof output - 1 - used);
        if (bytes <= 0)
            break;
        got = (size_t)bytes;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(output, "/dev/zero\n/memfd:activity (deleted)\n/memfd:barrier "
                                "(deleted)\n/memfd:code (deleted)\n0\n");
    close(pipes[0]);
    close(channel);
    close(activity);
    close(barrier);
    close(code);
    close(secret);
}

/* ---- the barrier ---- */

struct waiting {
    bool held, ended;
    int status;
};

static void note_end(void *context, int status)
{
    struct waiting *waiting = context;
    waiting->ended = true;
    assert_int_equal(waiting->status, status);
}

static void note_held(void *context, int status)
{
    struct waiting *waiting = context;
    waiting->held = true;
    waiting->status = status;
}

static pid_t number_in(const char *path)
{
    long number = 0;
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%ld", &number) != 1)
            number = 0;
        fclose(file);
    }
    return (pid_t)number;
}

/* The worker is a program that begins another one and ends: the other one could still write to the
 * device, since it has inherited whatever the worker had. */
static void a_worker_has_ended_when_nothing_of_it_is_left(void **state)
{
    (void)state;
    char program[512], number[512];
    const char *folder = getenv("TMPDIR");
    struct settings settings;
    struct discovery_device found = {.ordinal = 0};
    struct worker_process *process;
    struct waiting waiting = {0};
    uv_loop_t loop;
    int channel;
    snprintf(program, sizeof program, "%s/worker", folder ? folder : "/tmp");
    snprintf(number, sizeof number, "%s/ghost", folder ? folder : "/tmp");
    FILE *script = fopen(program, "we");
    assert_non_null(script);
    fprintf(script, "#!/bin/sh\nsleep 1000 &\necho $! >%s.new\nmv %s.new %s\nexit 3\n", number,
            number, number);
    fclose(script);
    assert_int_equal(chmod(program, 0700), 0);
    settings_default(&settings);
    snprintf(settings.worker, sizeof settings.worker, "%s", program);
    snprintf(settings.driver, sizeof settings.driver, "/none");
    uv_loop_init(&loop);
    int activity = memfd_create("activity", MFD_CLOEXEC);
    const struct worker_process_options options = {
        .loop = &loop,
        .settings = &settings,
        .found = &found,
        .activity = activity,
        .code = -1,
        .standby = "none",
        .events = {.held = note_held, .ended = note_end, .context = &waiting}};
    assert_int_equal(worker_process_start(&process, &options, &channel), 0);
    while (worker_process_pid(process))
        uv_run(&loop, UV_RUN_ONCE);
    pid_t ghost = number_in(number);
    assert_true(ghost > 0);
    for (int i = 0; i < 100; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(waiting.held);
    assert_true(worker_process_is_held(process));
    assert_int_equal(WEXITSTATUS(waiting.status), 3);
    assert_false(waiting.ended);
    kill(ghost, SIGKILL);
    while (!waiting.ended)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(WEXITSTATUS(waiting.status), 3);
    worker_process_free(process);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(channel);
    close(activity);
    unlink(program);
    unlink(number);
}

static void ends_are_told_in_words(void **state)
{
    (void)state;
    char text[128];
    worker_process_describe(3 << 8, text);
    assert_string_equal(text, "exit status 3");
    worker_process_describe(127 << 8, text);
    assert_string_equal(text, "its program could not be executed");
    worker_process_describe(SIGKILL, text);
    assert_string_equal(text, "killed by signal 9 (Killed)");
}

/* ---- discovery ---- */

#define UUID_A "00112233445566778899aabbccddeeff"
#define UUID_B "ff112233445566778899aabbccddeeff"
#define ARENA  "arena 0x200000000000 0x300000000000 0x100000000000\n"

static uint32_t parse(struct discovery *discovery, const char *output, struct error *why)
{
    char copy[9000];
    snprintf(copy, sizeof copy, "%s" ARENA, output);
    return discovery_parse(discovery, copy, why);
}

static void a_list_of_devices_is_read_strictly(void **state)
{
    (void)state;
    struct discovery discovery;
    struct error why;
    assert_int_equal(parse(&discovery, "device 0 " UUID_A "\ndevice 1 " UUID_B "\n", &why), 0);
    assert_int_equal(discovery.count, 2);
    assert_int_equal(discovery.devices[1].ordinal, 1);
    assert_int_equal(discovery.devices[1].uuid[0], 0xff);
    assert_int_equal(discovery.devices[0].uuid[15], 0xff);
    assert_int_equal(parse(&discovery, "device 0 " UUID_A "\ndevice 1 " UUID_B " mig\n", &why), 0);
    assert_false(discovery.devices[0].mig);
    assert_true(discovery.devices[1].mig);
    assert_int_equal(parse(&discovery, "device 0 " UUID_A " gpu\n", &why),
                     PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_int_equal(parse(&discovery, "device 0  mig\n", &why), PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_int_equal(parse(&discovery, "error 100 there is no driver\n", &why),
                     PROTO_ERROR_NO_DEVICE);
    assert_string_equal(why.text, "there is no driver");
    assert_int_equal(parse(&discovery, "", &why), PROTO_ERROR_NO_DEVICE);
    assert_int_equal(parse(&discovery, "device 0 0011\n", &why), PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_int_equal(parse(&discovery, "device 0 " UUID_A "0\n", &why),
                     PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_int_equal(parse(&discovery, "device x " UUID_A "\n", &why),
                     PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_int_equal(parse(&discovery, "hello\n", &why), PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_non_null(strstr(why.text, "hello"));
}

static void address_ranges_are_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "arena 0x1000000 0x2000000\n",
        "arena 0x1 0x3 0x0\n",
        "arena 0x1000000 0x2000000 0x1000000 1\n",
        "arena 0x0 0x1 0x0\n",
        "arena 0x1000000 0x6000000 0x1000000\n",
    };
    struct discovery discovery;
    struct error why;
    char output[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(output, sizeof output, "device 0 " UUID_A "\n%s", bad[i]);
        assert_int_equal(discovery_parse(&discovery, output, &why), PROTO_ERROR_PROTOCOL_VIOLATION);
    }
    snprintf(output, sizeof output, "device 0 %s\n%s", UUID_A, ARENA);
    assert_int_equal(discovery_parse(&discovery, output, &why), 0);
    struct limits_wish all = {0};
    assert_int_equal(discovery_restrict(&discovery, &all, &why), 0);
    assert_true(discovery.arena.device_base == UINT64_C(0x200000000000));
    assert_true(discovery.arena.host_base == UINT64_C(0x300000000000));
    assert_true(discovery.arena.bytes == UINT64_C(0x100000000000));
}

static void visible_devices_restrict_and_order(void **state)
{
    (void)state;
    struct discovery discovery;
    struct limits_wish wish = {0};
    struct error why;
    const char *name = "GPUSHARE_VISIBLE_DEVICES";
    const char *both = "device 0 " UUID_A "\ndevice 1 " UUID_B "\n";
    assert_int_equal(parse(&discovery, both, &why), 0);
    assert_int_equal(discovery_restrict(&discovery, &wish, &why), 0);
    assert_int_equal(discovery.count, 2);
    wish.visible_from = name;
    assert_int_equal(limits_parse_visible(&wish.visible, name, "GPU-ff11,0", &why), 0);
    assert_int_equal(discovery_restrict(&discovery, &wish, &why), 0);
    assert_int_equal(discovery.count, 2);
    assert_int_equal(discovery.devices[0].ordinal, 1);
    assert_int_equal(discovery.devices[1].ordinal, 0);
    assert_int_equal(parse(&discovery, both, &why), 0);
    assert_int_equal(limits_parse_visible(&wish.visible, name, "7", &why), 0);
    assert_int_equal(discovery_restrict(&discovery, &wish, &why), PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, name));
}

/* A script in the worker's place. */
static void with_worker(const char *script, uint32_t expected, const char *word)
{
    struct settings settings;
    struct discovery discovery;
    char folder[] = "/tmp/gpushare-discovery-XXXXXX";
    struct error why = {0};
    settings_default(&settings);
    assert_non_null(mkdtemp(folder));
    snprintf(settings.worker, sizeof settings.worker, "%s/worker", folder);
    strcpy(settings.driver, "/driver/libcuda.so.1");
    FILE *file = fopen(settings.worker, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    chmod(settings.worker, 0700);
    uint32_t result = discovery_run(&discovery, &settings, &why);
    unlink(settings.worker);
    rmdir(folder);
    assert_int_equal(result, expected);
    if (!strstr(why.text, word))
        fail_msg("no \"%s\" in: %s", word, why.text);
}

static void the_trouble_of_the_driver_is_passed_on(void **state)
{
    (void)state;
    with_worker("echo device 0 " UUID_A "; echo " ARENA, 0, "");
    with_worker("test \"$*\" = '--driver /driver/libcuda.so.1 --list' && echo device 0 " UUID_A
                " && echo " ARENA,
                0, "");
    with_worker("echo error 100 cannot open libcuda.so.1; exit 1", PROTO_ERROR_NO_DEVICE,
                "cannot open libcuda.so.1");
    with_worker("exit 3", PROTO_ERROR_NO_DEVICE, "exit status 3");
    with_worker("kill -SEGV $$", PROTO_ERROR_NO_DEVICE, "signal 11");
    with_worker("head -c 10000 /dev/zero | tr '\\0' x", PROTO_ERROR_SERVER_RESOURCES,
                "did not list");
    struct settings settings;
    struct discovery discovery;
    struct error why;
    settings_default(&settings);
    strcpy(settings.worker, "/nonexistent/worker");
    assert_int_equal(discovery_run(&discovery, &settings, &why), PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, "could not be executed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_dies_with_its_supervisor),
        cmocka_unit_test(nothing_but_the_channel_is_inherited),
        cmocka_unit_test(a_worker_has_ended_when_nothing_of_it_is_left),
        cmocka_unit_test(ends_are_told_in_words),
        cmocka_unit_test(a_list_of_devices_is_read_strictly),
        cmocka_unit_test(address_ranges_are_read_strictly),
        cmocka_unit_test(visible_devices_restrict_and_order),
        cmocka_unit_test(the_trouble_of_the_driver_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
