/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory charged across processes by a state file: through the driver's calls, by
 * processes that come, share, go and are killed.
 */
#include "tests/unit/softgpu/kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "common/error.h"
#include "server/softgpu/memory/charges.h"

enum { MIB = 1 << 20 };

static char path[] = "/tmp/gpushare-state-XXXXXX";

static int setup(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    if (fd < 0)
        return -1;
    close(fd);
    unlink(path);
    setenv("SOFTGPU_STATE", path, 1);
    setenv("SOFTGPU_MEMORY", "32M", 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static uint64_t used(void)
{
    struct charges *charges;
    struct error why = {0};
    uint64_t bytes;

    assert_int_equal(charges_open(&charges, path, &why), 0);
    bytes = charges_used(charges, 0);
    charges_close(charges);
    return bytes;
}

static const cuda_mem_allocation_prop prop = {
    .type = CUDA_MEM_ALLOCATION_PINNED,
    .requested_handle_types = CUDA_MEM_HANDLE_POSIX_FD,
    .location = {CUDA_MEM_LOCATION_DEVICE, 0},
};

static void charges_come_and_go(void **state)
{
    struct charges *charges;
    struct error why = {0};

    (void)state;
    assert_int_equal(charges_open(&charges, path, &why), 0);
    assert_int_equal(charges_add(charges, 0, 100, 0, 60), 0);
    assert_int_equal(charges_add(charges, 0, 100, 0, 41), -ENOMEM);
    assert_int_equal(charges_add(charges, 1, 100, 0, 100), 0);
    assert_int_equal(charges_add(charges, 0, 100, 77, 40), 0);
    /* The same memory again costs nothing, even where nothing is left. */
    assert_int_equal(charges_add(charges, 0, 100, 77, 40), 0);
    assert_int_equal(charges_add(charges, 0, 100, 0, UINT64_MAX), -ENOMEM);
    assert_int_equal(charges_used(charges, 0), 100);
    charges_remove(charges, 0, 77, 40);
    assert_int_equal(charges_used(charges, 0), 100);
    charges_remove(charges, 0, 77, 40);
    assert_int_equal(charges_used(charges, 0), 60);
    charges_close(charges);
    assert_int_equal(used(), 0);
}

static void a_file_of_another_kind_is_refused(void **state)
{
    char other[] = "/tmp/gpushare-other-XXXXXX";
    struct error why = {0};
    struct charges *charges;
    int fd = mkstemp(other);

    (void)state;
    assert_int_equal(write(fd, "hello", 5), 5);
    assert_true(charges_open(&charges, other, &why) != 0);
    assert_non_null(strstr(why.text, other));
    char below[sizeof other + 8];
    snprintf(below, sizeof below, "%s/state", other);
    assert_true(charges_open(&charges, below, &why) != 0);
    close(fd);
    unlink(other);
}

/* Allocates, tells its descriptor through the socket, and waits to be killed. */
static void holder(int socket)
{
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    cuda_mem_handle handle, plain;
    int fd = -1;

    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuMemCreate(&handle, 8 * MIB, &prop, 0) == CUDA_OK);
    CHECK(cuMemCreate(&plain, 4 * MIB, &prop, 0) == CUDA_OK);
    CHECK(cuMemExportToShareableHandle(&fd, handle, CUDA_MEM_HANDLE_POSIX_FD, 0) == CUDA_OK);
    CHECK(header != NULL);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    CHECK(sendmsg(socket, &message, 0) == 1);
    close(fd);
    pause();
}

static int receive_fd(int socket)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header;
    int fd = -1;

    assert_int_equal(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), 1);
    header = CMSG_FIRSTHDR(&message);
    assert_non_null(header);
    if (header)
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

static int inherited;

/* Another process takes the dead one's memory over, at another time. */
static void heir(void)
{
    cuda_mem_handle handle, more;

    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuMemCreate(&more, 26 * MIB, &prop, 0) == CUDA_ERR_OUT_OF_MEMORY);
    CHECK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)inherited,
                                         CUDA_MEM_HANDLE_POSIX_FD) == CUDA_OK);
    CHECK(cuMemCreate(&more, 26 * MIB, &prop, 0) == CUDA_ERR_OUT_OF_MEMORY);
    CHECK(cuMemCreate(&more, 24 * MIB, &prop, 0) == CUDA_OK);
}

static void charges_of_dead_processes_are_dropped_unless_exported(void **state)
{
    int pair[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    child = fork();
    if (child == 0) {
        holder(pair[1]);
        _exit(1);
    }
    inherited = receive_fd(pair[0]);
    assert_int_equal(used(), 12 * MIB);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    /* Memory that only it held is free; memory that we hold a descriptor of is not. */
    assert_int_equal(used(), 8 * MIB);
    in_child(heir);
    assert_int_equal(used(), 8 * MIB);
    close(inherited);
    assert_int_equal(used(), 0);
    close(pair[0]);
    close(pair[1]);
}

/* Nanoseconds that this thread worked to find out what is used. */
static int64_t work_of_looking(struct charges *charges, uint64_t expected)
{
    struct timespec began, ended;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    assert_int_equal(charges_used(charges, 0), expected);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    return (ended.tv_sec - began.tv_sec) * INT64_C(1000000000) + ended.tv_nsec - began.tv_nsec;
}

/* Memory that only descriptors hold is looked up in one go: the driver's memory is locked
 * meanwhile, and a look at each process for each of them takes seconds on a machine with a hundred
 * processes. */
static void many_descriptors_are_looked_up_at_once(void **state)
{
    enum { COUNT = 400 };
    int fds[COUNT];
    struct stat status;
    int64_t one = 0, all;
    struct charges *charges;
    struct error why = {0};

    (void)state;
    assert_int_equal(charges_open(&charges, path, &why), 0);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = memfd_create("orphan", MFD_CLOEXEC);
        assert_true(fds[i] >= 0 && fstat(fds[i], &status) == 0);
        assert_int_equal(charges_add(charges, 0, COUNT, status.st_ino, 1), 0);
        charges_exported(charges, 0, status.st_ino);
        charges_remove(charges, 0, status.st_ino, 1);
        one = i == 0 ? work_of_looking(charges, 1) : one;
    }
    all = work_of_looking(charges, COUNT);
    print_message("one descriptor: %.4f s, %d: %.4f s\n", (double)one / 1e9, COUNT,
                  (double)all / 1e9);
    for (int i = 0; i < COUNT; i += 2)
        close(fds[i]);
    assert_int_equal(charges_used(charges, 0), COUNT / 2);
    for (int i = 1; i < COUNT; i += 2)
        close(fds[i]);
    assert_int_equal(charges_used(charges, 0), 0);
    charges_close(charges);
    assert_true(all < COUNT / 10 * one);
}

/* Two processes fight for the last of the memory; what they got is never more than there is. */
static void scramble(void)
{
    cuda_mem_handle handles[16];
    size_t count = 0;

    CHECK(cuInit(0) == CUDA_OK);
    for (int i = 0; i < 300; i++) {
        if (count < 16 && cuMemCreate(&handles[count], 2 * MIB, &prop, 0) == CUDA_OK)
            count++;
        else if (count > 0)
            CHECK(cuMemRelease(handles[--count]) == CUDA_OK);
    }
}

static void processes_share_one_total(void **state)
{
    pid_t children[3];
    int status;

    (void)state;
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            scramble();
            _exit(0);
        }
    }
    for (int i = 0; i < 100; i++)
        assert_true(used() <= 32 * MIB);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(used(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charges_come_and_go),
        cmocka_unit_test(a_file_of_another_kind_is_refused),
        cmocka_unit_test(charges_of_dead_processes_are_dropped_unless_exported),
        cmocka_unit_test(many_descriptors_are_looked_up_at_once),
        cmocka_unit_test(processes_share_one_total),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
