/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Does cuMemCreate memory, held by descriptor in another process, survive an illegal
 * access and SIGKILL in the process that created it, or that only used it? And do
 * writes of a killed process's kernel still land when its pidfd is readable?
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/question.h"

enum { WORDS = 1 << 18 };
enum part { CREATE_AND_FAULT, FAULT, WRITE_ENDLESSLY, CREATE_ONLY, CHECK, WATCH };

static size_t memory_bytes(void)
{
    size_t granularity = question_granularity(), bytes = WORDS * sizeof(unsigned);
    return (bytes + granularity - 1) / granularity * granularity;
}

static cuda_mem_handle create(int socket)
{
    cuda_mem_allocation_prop properties = question_properties();
    cuda_mem_handle handle;
    int fd;
    CU(cu.cuMemCreate(&handle, memory_bytes(), &properties, 0));
    CU(cu.cuMemExportToShareableHandle(&fd, handle, CUDA_MEM_HANDLE_POSIX_FD, 0));
    question_send_fd(socket, fd);
    close(fd);
    return handle;
}

static cuda_device_ptr place(cuda_mem_handle handle)
{
    cuda_device_ptr base = 0;
    CU(cu.cuMemAddressReserve(&base, memory_bytes(), 0, QUESTION_DEVICE_BASE, 0));
    if (base != QUESTION_DEVICE_BASE)
        question_die("the fixed address was not to be had");
    question_map(base, memory_bytes(), handle);
    return base;
}

static cuda_mem_handle import(int socket)
{
    int fd = question_receive_fd(socket);
    cuda_mem_handle handle;
    CU(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, CUDA_MEM_HANDLE_POSIX_FD));
    return handle;
}

static void fill(cuda_device_ptr base)
{
    unsigned *values = malloc(WORDS * sizeof *values);
    for (unsigned i = 0; i < WORDS; i++)
        values[i] = i * 2654435761u;
    CU(cu.cuMemcpyHtoD(base, values, WORDS * sizeof *values));
    free(values);
}

static bool intact(cuda_device_ptr base)
{
    unsigned *values = malloc(WORDS * sizeof *values);
    CU(cu.cuMemcpyDtoH(values, base, WORDS * sizeof *values));
    bool same = true;
    for (unsigned i = 0; i < WORDS; i++)
        same &= values[i] == i * 2654435761u;
    free(values);
    return same;
}

static void tell(int socket, char verdict)
{
    if (write(socket, &verdict, 1) != 1)
        _exit(1);
}

static void fault_and_stay(int socket)
{
    cuda_device_ptr nowhere = 0x7000000000;
    void *parameters[] = {&nowhere};
    CU(cu.cuLaunchKernel(question_function("stray"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    tell(socket, cu.cuCtxSynchronize() == CUDA_ERR_ILLEGAL_ADDRESS ? 'f' : '?');
    for (;;)
        pause(); /* to be killed */
}

static int child_main(enum part part, int socket, int argc, char **argv)
{
    question_open(argc, argv);
    if (part == CREATE_ONLY) { /* a keeper: no context */
        create(socket);
        tell(socket, 'c');
        for (;;)
            pause();
    }
    question_context();
    cuda_device_ptr base = place(
        part == CREATE_AND_FAULT || part == WRITE_ENDLESSLY ? create(socket) : import(socket));
    if (part == CREATE_AND_FAULT || part == FAULT) {
        fill(base);
        fault_and_stay(socket);
    } else if (part == WRITE_ENDLESSLY) {
        void *parameters[] = {&base};
        CU(cu.cuMemsetD32(base, 0, 2));
        CU(cu.cuLaunchKernel(question_function("endless"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters,
                             NULL));
        cu.cuStreamQuery(NULL); /* make sure that it is submitted */
        usleep(200000);
        tell(socket, 'w');
        for (;;)
            pause();
    } else if (part == CHECK) {
        tell(socket, intact(base) ? 'y' : 'n');
    } else {
        unsigned long long first, second;
        CU(cu.cuMemcpyDtoH(&first, base, sizeof first));
        usleep(200000);
        CU(cu.cuMemcpyDtoH(&second, base, sizeof second));
        tell(socket, second != first ? 'm' : first ? 'y' : 'z');
    }
    return 0;
}

struct child {
    pid_t pid;
    int socket, pidfd;
};

static struct child start(enum part part, int argc, char **argv)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        question_die("no socket");
    struct child child = {.socket = pair[0]};
    child.pid = fork();
    if (child.pid == 0) {
        close(pair[0]);
        _exit(child_main(part, pair[1], argc, argv));
    }
    close(pair[1]);
    child.pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
    return child;
}

static char hear(const struct child *child)
{
    char verdict;
    if (read(child->socket, &verdict, 1) != 1)
        question_die("a process ended without its answer");
    return verdict;
}

static void end(struct child *child)
{
    kill(child->pid, SIGKILL);
    struct pollfd wait_for = {.fd = child->pidfd, .events = POLLIN};
    poll(&wait_for, 1, -1); /* what a supervisor would wait for */
    waitpid(child->pid, NULL, 0);
    close(child->pidfd);
    close(child->socket);
}

static char look(enum part part, int fd, int argc, char **argv)
{
    struct child child = start(part, argc, argv);
    question_send_fd(child.socket, fd);
    char verdict = hear(&child);
    end(&child);
    return verdict;
}

int main(int argc, char **argv)
{
    struct child creator = start(CREATE_AND_FAULT, argc, argv);
    int fd = question_receive_fd(creator.socket);
    char faulted = hear(&creator);
    end(&creator);
    char survived = look(CHECK, fd, argc, argv);
    close(fd);

    struct child keeper = start(CREATE_ONLY, argc, argv);
    fd = question_receive_fd(keeper.socket);
    hear(&keeper);
    struct child user = start(FAULT, argc, argv);
    question_send_fd(user.socket, fd);
    hear(&user);
    end(&user);
    char kept = look(CHECK, fd, argc, argv);
    end(&keeper);
    close(fd);

    struct child writer = start(WRITE_ENDLESSLY, argc, argv);
    fd = question_receive_fd(writer.socket);
    hear(&writer);
    end(&writer);
    char late = look(WATCH, fd, argc, argv);
    close(fd);

    printf("question 2: %s: memory created by the process that faulted (%s) and was killed is %s; "
           "by a keeper without a "
           "context %s; writes of a killed process's kernel %s after its pidfd was readable\n",
           survived == 'y' ? "yes" : "no", faulted == 'f' ? "illegal address" : "another error",
           survived == 'y' ? "intact" : "lost", kept == 'y' ? "intact" : "lost",
           late == 'm'   ? "still land"
           : late == 'y' ? "have stopped"
                         : "were never seen");
    return 0;
}
