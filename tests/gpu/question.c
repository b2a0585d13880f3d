/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/gpu/question.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct cuda_driver cu;

__asm__(".section .rodata\n.balign 16\nquestion_ptx:\n.incbin "
        "\"tests/gpu/kernels/question.ptx\"\n.byte 0\n.previous\n");
extern const char question_ptx[];

void question_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "could not answer: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

void question_check(cuda_result result, const char *call)
{
    if (result != CUDA_OK)
        question_die("%s: %s", call,
                     cuda_error_name(result) ? cuda_error_name(result) : "an unknown error");
}

void question_open(int argc, char **argv)
{
    char why[400];
    if (argc < 2)
        question_die("usage: %s /path/of/libcuda.so.1", argv[0]);
    if (cuda_driver_open(&cu, argv[1], why, sizeof why) < 0)
        question_die("%s", why);
    CU(cu.cuInit(0));
}

void question_context(void)
{
    cuda_context context;
    CU(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CU(cu.cuCtxSetCurrent(context));
}

cuda_function question_function(const char *name)
{
    static cuda_module module;
    cuda_function function;
    if (!module)
        CU(cu.cuModuleLoadData(&module, question_ptx));
    CU(cu.cuModuleGetFunction(&function, module, name));
    return function;
}

cuda_mem_allocation_prop question_properties(void)
{
    return (cuda_mem_allocation_prop){.type = CUDA_MEM_ALLOCATION_PINNED,
                                      .requested_handle_types = CUDA_MEM_HANDLE_POSIX_FD,
                                      .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
}

size_t question_granularity(void)
{
    cuda_mem_allocation_prop properties = question_properties();
    size_t bytes;
    CU(cu.cuMemGetAllocationGranularity(&bytes, &properties, CUDA_MEM_GRANULARITY_MINIMUM));
    return bytes;
}

void question_map(cuda_device_ptr address, size_t bytes, cuda_mem_handle handle)
{
    cuda_mem_access_desc access = {{CUDA_MEM_LOCATION_DEVICE, 0}, CUDA_MEM_ACCESS_READWRITE};
    CU(cu.cuMemMap(address, bytes, 0, handle, 0));
    CU(cu.cuMemSetAccess(address, bytes, &access, 1));
}

double question_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

union fd_message {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

void question_send_fd(int socket, int fd)
{
    union fd_message control = {{0}};
    char byte = 'f';
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(socket, &header, 0) != 1)
        question_die("a descriptor could not be sent");
}

int question_receive_fd(int socket)
{
    union fd_message control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    if (recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&header))
        question_die("no descriptor came");
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
    return fd;
}
