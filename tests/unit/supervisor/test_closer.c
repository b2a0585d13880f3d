/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/supervisor/loop/closer.h"

/* A closer that hangs would hang the test. */
#define HANG_SECONDS 60
#define WAITING_MAX  64
#define NUMBERS      1024

enum { AT_ONCE, SLEEPS, HANGS };

/* How the close of each number goes, as its file's maker likes. */
static atomic_int manner[NUMBERS];
static atomic_int hanging, hanging_max;
static sem_t hang;
static pthread_t loop;   /* the thread that must not sleep */
static bool loop_sleeps; /* it was about to */
static atomic_bool dry;  /* there is no memory */

/* A sanitizer allocates before it can be called. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_DROUGHT skip()
#else
#define NO_DROUGHT (void)0

void *malloc(size_t bytes)
{
    if (!dry)
        return aligned_alloc(16, bytes ? bytes : 1);
    errno = ENOMEM;
    return NULL;
}
#endif

int close(int fd)
{
    int how = fd >= 0 && fd < NUMBERS ? atomic_exchange(&manner[fd], AT_ONCE) : AT_ONCE;
    struct timespec minute = {.tv_sec = 60};
    if (how != AT_ONCE && pthread_equal(pthread_self(), loop)) {
        loop_sleeps = true;
        how = AT_ONCE;
    }
    if (how == SLEEPS)
        nanosleep(&minute, NULL);
    if (how == HANGS) {
        int now = atomic_fetch_add(&hanging, 1) + 1;
        if (now > atomic_load(&hanging_max))
            atomic_store(&hanging_max, now);
        while (sem_wait(&hang) < 0)
            ;
        atomic_fetch_sub(&hanging, 1);
    }
    return (int)syscall(SYS_close, fd);
}

static const struct closer_sender one = {.client = 1, .uid = 1001};
static const struct closer_sender two = {.client = 2, .uid = 1002};
static struct closer *closer;

/* A descriptor and, in *witness, one that is readable when its file is closed. */
static int watched_fd(int how, int *witness)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_true(ends[1] < NUMBERS);
    manner[ends[1]] = how;
    *witness = ends[0];
    return ends[1];
}

static void expect_closed(int witness)
{
    struct pollfd wait_for = {.fd = witness, .events = POLLIN};
    assert_int_equal(poll(&wait_for, 1, HANG_SECONDS * 1000 / 3), 1);
    close(witness);
}

static int open_closer(void **state)
{
    (void)state;
    alarm(HANG_SECONDS);
    hanging = hanging_max = 0;
    loop = pthread_self();
    loop_sleeps = false;
    sem_init(&hang, 0, 0);
    return closer_open(&closer, NUMBERS, WAITING_MAX);
}

static int shut_closer(void **state)
{
    (void)state;
    closer_close(&closer);
    assert_null(closer);
    assert_false(loop_sleeps);
    alarm(0);
    return 0;
}

static void what_is_taken_is_closed(void **state)
{
    (void)state;
    int witness[WAITING_MAX];
    assert_true(closer_take(closer, -1, one));
    for (int i = 0; i < WAITING_MAX; i++) {
        closer_take(closer, watched_fd(AT_ONCE, &witness[i]), one);
        expect_closed(witness[i]);
    }
    int last = watched_fd(AT_ONCE, &witness[0]);
    closer_take(closer, last, two);
    closer_close(&closer);
    assert_int_equal(fcntl(last, F_GETFD), -1);
    close(witness[0]);
}

static void a_close_that_sleeps_is_interrupted(void **state)
{
    (void)state;
    int witness[WAITING_MAX / 2];
    for (int i = 0; i < WAITING_MAX / 2; i++)
        assert_true(closer_take(closer, watched_fd(SLEEPS, &witness[i]), one));
    for (int i = 0; i < WAITING_MAX / 2; i++)
        expect_closed(witness[i]);
}

static void a_descriptor_is_taken_over_without_memory(void **state)
{
    (void)state;
    int witness[2];
    NO_DROUGHT;
    assert_true(closer_take(closer, watched_fd(AT_ONCE, &witness[0]), one));
    expect_closed(witness[0]);
    for (int i = 0; i < 2; i++) {
        int fd = watched_fd(HANGS, &witness[i]);
        dry = true;
        bool room = closer_take(closer, fd, one);
        dry = false;
        assert_true(room);
    }
    assert_false(loop_sleeps);
    for (int i = 0; i < 2; i++)
        sem_post(&hang);
    for (int i = 0; i < 2; i++)
        expect_closed(witness[i]);
}

static void closes_that_hang_leave_other_users_threads(void **state)
{
    (void)state;
    int witness[WAITING_MAX / 2], other;
    for (int i = 0; i < WAITING_MAX / 2; i++)
        assert_true(closer_take(closer, watched_fd(HANGS, &witness[i]), one));
    for (int i = 0; i < 3; i++) {
        assert_true(closer_take(closer, watched_fd(AT_ONCE, &other), two));
        expect_closed(other);
    }
    for (int i = 0; i < WAITING_MAX / 2; i++)
        sem_post(&hang);
    for (int i = 0; i < WAITING_MAX / 2; i++)
        expect_closed(witness[i]);
    assert_in_range(hanging_max, 1, 8);
}

static void one_user_has_three_quarters_of_the_room(void **state)
{
    (void)state;
    int witness[WAITING_MAX * 2], taken = 0, refused = 0, other;
    for (int i = 0; i < WAITING_MAX * 2; i++)
        if (closer_take(closer, watched_fd(HANGS, &witness[i]), one))
            taken++;
        else if (++refused == 4)
            break;
    /* Threads have taken at most 8 out of the queue meanwhile. */
    assert_in_range(taken, WAITING_MAX * 3 / 4, WAITING_MAX * 3 / 4 + 8);
    assert_true(closer_take(closer, watched_fd(AT_ONCE, &other), two));
    expect_closed(other);
    for (int i = 0; i < taken + refused; i++)
        sem_post(&hang);
    for (int i = 0; i < taken + refused; i++)
        expect_closed(witness[i]);
}

/* Sends a copy of fd, or nothing but a byte if it is -1. */
static void send_fd(int socket, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    char byte = 1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *first = CMSG_FIRSTHDR(&message);
        first->cmsg_level = SOL_SOCKET;
        first->cmsg_type = SCM_RIGHTS;
        first->cmsg_len = CMSG_LEN(sizeof fd);
        *(int *)CMSG_DATA(first) = fd;
    }
    assert_int_equal(sendmsg(socket, &message, 0), 1);
}

static void unread_descriptors_can_go_with_their_socket(void **state)
{
    (void)state;
    int ends[2], witness[2], fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    send_fd(ends[0], -1);
    for (int i = 0; i < 2; i++) {
        fd[i] = watched_fd(AT_ONCE, &witness[i]);
        send_fd(ends[0], fd[i]);
        close(fd[i]);
    }
    /* Nothing is received: the lowest free number stays what it is. */
    int lowest = dup(0);
    close(lowest);
    assert_false(closer_drain(closer, ends[1], false, one));
    int now = dup(0);
    assert_int_equal(now, lowest);
    close(now);
    struct pollfd open = {.fd = witness[0], .events = POLLIN};
    assert_int_equal(poll(&open, 1, 0), 0);
    manner[ends[1]] = HANGS;
    closer_hang_up(closer, ends[1], false, one);
    sem_post(&hang);
    for (int i = 0; i < 2; i++)
        expect_closed(witness[i]);
    close(ends[0]);
}

/* Closing a connection with messages unread resets it. */
static void what_the_other_side_was_told_can_be_read(void **state)
{
    (void)state;
    int ends[2], witness;
    char told[8] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    int fd = watched_fd(AT_ONCE, &witness);
    send_fd(ends[0], fd);
    close(fd);
    assert_int_equal(send(ends[1], "why", 4, 0), 4);
    closer_hang_up(closer, ends[1], false, one);
    struct pollfd end = {.fd = ends[0]};
    do
        assert_int_equal(poll(&end, 1, 10000), 1);
    while (!(end.revents & POLLHUP));
    expect_closed(witness);
    assert_int_equal(recv(ends[0], told, sizeof told, 0), 4);
    assert_string_equal(told, "why");
    assert_int_equal(recv(ends[0], told, sizeof told, 0), 0);
    close(ends[0]);
}

static void descriptors_that_a_client_may_send_are_read_out(void **state)
{
    (void)state;
    int ends[2], witness;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    int fd = watched_fd(AT_ONCE, &witness);
    send_fd(ends[0], fd);
    send_fd(ends[0], -1);
    close(fd);
    assert_true(closer_drain(closer, ends[1], true, one));
    expect_closed(witness);
    close(ends[0]);
    close(ends[1]);
}

#define WITH_CLOSER(test) cmocka_unit_test_setup_teardown(test, open_closer, shut_closer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLOSER(what_is_taken_is_closed),
        WITH_CLOSER(a_close_that_sleeps_is_interrupted),
        WITH_CLOSER(a_descriptor_is_taken_over_without_memory),
        WITH_CLOSER(closes_that_hang_leave_other_users_threads),
        WITH_CLOSER(one_user_has_three_quarters_of_the_room),
        WITH_CLOSER(unread_descriptors_can_go_with_their_socket),
        WITH_CLOSER(what_the_other_side_was_told_can_be_read),
        WITH_CLOSER(descriptors_that_a_client_may_send_are_read_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
