/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* gpushare-worker as a process: what it says when it starts, and how it ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/ipc/arena.h"
#include "common/ipc/channel.h"

static char worker[512], softgpu[512];

/* Starts it with this driver; *channel is the supervisor's end. */
static pid_t start(const char *driver, const char *device, int *channel)
{
    int pair[2];
    char fd[16], device_base[32], host_base[32], bytes[32];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    snprintf(fd, sizeof fd, "%d", pair[1]);
    snprintf(device_base, sizeof device_base, "0x%llx", (unsigned long long)ARENA_DEVICE_BASE);
    snprintf(host_base, sizeof host_base, "0x%llx", (unsigned long long)ARENA_HOST_BASE);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)ARENA_BYTES);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        execl(worker, worker, "--driver", driver, "--device", device, "--device-base", device_base,
              "--host-base", host_base, "--arena-bytes", bytes, "--channel-fd", fd, (char *)NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    close(pair[1]);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    *channel = pair[0];
    return pid;
}

static struct channel_message message;

static uint16_t receive(int channel)
{
    struct pollfd polled = {.fd = channel, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 60000), 1);
    int result = channel_receive(channel, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER, &message);
    assert_int_equal(result, 0);
    return message.header.opcode;
}

static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void says_what_the_device_is_and_ends_with_its_supervisor(void **state)
{
    (void)state;
    int channel;
    pid_t pid = start(softgpu, "0", &channel);
    assert_int_equal(receive(channel), PROTO_KERNEL_HEAP);
    assert_int_equal(receive(channel), PROTO_DEVICE_INFO);
    const struct proto_device_info *info = message.body;
    assert_int_equal(message.header.serial, 0);
    assert_true(info->multiprocessors > 0 && info->granularity > 0 && info->memory > 0);
    assert_true(info->partition_multiprocessors > 0);
    close(channel);
    assert_int_equal(end_of(pid), 0);
}

static void refused(const char *driver, const char *device, const char *names)
{
    int channel;
    pid_t pid = start(driver, device, &channel);
    assert_int_equal(receive(channel), PROTO_WORKER_FAULT);
    const struct proto_worker_fault *fault = message.body;
    if (!strstr(fault->text, names))
        print_message("said: %s\n", fault->text);
    assert_non_null(strstr(fault->text, names));
    assert_int_equal(end_of(pid), 1);
    close(channel);
}

static void a_missing_driver_is_named(void **state)
{
    (void)state;
    refused("/nowhere/libcuda.so.1", "0", "/nowhere/libcuda.so.1");
}

static void a_missing_device_is_named(void **state)
{
    (void)state;
    refused(softgpu, "7", "device 7");
}

static void unknown_options_are_refused(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        execl(worker, worker, "--bogus", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(end_of(pid), 2);
}

static void a_bad_message_is_answered(void **state)
{
    (void)state;
    int channel;
    pid_t pid = start(softgpu, "0", &channel);
    assert_int_equal(receive(channel), PROTO_KERNEL_HEAP);
    assert_int_equal(receive(channel), PROTO_DEVICE_INFO);
    assert_int_equal(channel_send(channel, &(struct channel_packet){.opcode = PROTO_WORKER_QUIESCE,
                                                                    .serial = 5,
                                                                    .client = 42}),
                     0);
    assert_int_equal(receive(channel), PROTO_FAILED);
    assert_int_equal(message.header.serial, 5);
    assert_int_equal(message.header.client, 42);
    assert_int_equal(((const struct proto_failed *)message.body)->error,
                     PROTO_ERROR_INVALID_HANDLE);
    assert_int_equal(send(channel, "short", 5, 0), 5);
    assert_int_equal(receive(channel), PROTO_FAILED);
    assert_int_equal(((const struct proto_failed *)message.body)->error,
                     PROTO_ERROR_PROTOCOL_VIOLATION);
    close(channel);
    assert_int_equal(end_of(pid), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_the_device_is_and_ends_with_its_supervisor),
        cmocka_unit_test(a_missing_driver_is_named),
        cmocka_unit_test(a_missing_device_is_named),
        cmocka_unit_test(unknown_options_are_refused),
        cmocka_unit_test(a_bad_message_is_answered),
    };
    const char *build = getenv("BUILD");
    char path[480];
    snprintf(path, sizeof path, "%s", build ? build : "build");
    char *absolute = realpath(path, NULL);
    snprintf(worker, sizeof worker, "%s/libexec/gpushare-worker", absolute ? absolute : path);
    snprintf(softgpu, sizeof softgpu, "%s/lib/softgpu/libcuda.so.1", absolute ? absolute : path);
    free(absolute);
    if (access(worker, X_OK) < 0 || access(softgpu, R_OK) < 0) {
        fprintf(stderr, "%s or %s is not built\n", worker, softgpu);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
