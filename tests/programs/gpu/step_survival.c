/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Does cuMemCreate memory, held by descriptor in another process, survive an illegal access and
 * SIGKILL in the process that created it, or that only used it? And do writes of a killed
 * process's kernel still land when its pidfd is readable?
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/gpu/helper.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

enum { WORDS = 1 << 18 };

static size_t memory_bytes(void)
{
    size_t granularity = probe_granularity(), bytes = WORDS * sizeof(unsigned);
    return (bytes + granularity - 1) / granularity * granularity;
}

/* ---- what the other processes do ----------------------------------------------------- */
static cuda_mem_handle create_and_send(int socket)
{
    cuda_mem_allocation_prop properties = probe_properties();
    cuda_mem_handle handle;
    int fd;
    CU(cu.cuMemCreate(&handle, memory_bytes(), &properties, 0));
    CU(cu.cuMemExportToShareableHandle(&fd, handle, CUDA_MEM_HANDLE_POSIX_FD, 0));
    probe_send_fd(socket, fd);
    close(fd);
    return handle;
}

static cuda_mem_handle import_received(int socket)
{
    int fd = probe_receive_fd(socket);
    cuda_mem_handle handle;
    CU(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, CUDA_MEM_HANDLE_POSIX_FD));
    return handle;
}

static cuda_device_ptr place(cuda_mem_handle handle)
{
    cuda_device_ptr base = 0;
    CU(cu.cuMemAddressReserve(&base, memory_bytes(), 0, PROBE_DEVICE_BASE, 0));
    if (base != PROBE_DEVICE_BASE)
        printf("the memory lies at 0x%llx, not at the wanted address\n", (unsigned long long)base);
    probe_map(base, memory_bytes(), handle);
    return base;
}

static unsigned *new_pattern(void)
{
    unsigned *values = malloc(WORDS * sizeof *values);
    if (!values)
        probe_die("no memory");
    for (unsigned i = 0; i < WORDS; i++)
        values[i] = i * 2654435761u;
    return values;
}

static void fill_then_fault(int socket, cuda_device_ptr base)
{
    unsigned *values = new_pattern();
    cuda_device_ptr nowhere = 0x7000000000;
    void *parameters[] = {&nowhere};
    CU(cu.cuMemcpyHtoD(base, values, WORDS * sizeof *values));
    probe_launch("stray", 1, 1, NULL, parameters);
    probe_call("cuCtxSynchronize after a fault");
    cuda_result result = cu.cuCtxSynchronize();
    printf("the fault was reported as %s\n", probe_error(result));
    helper_answer(socket, result == CUDA_ERR_ILLEGAL_ADDRESS ? 'f' : '?');
}

static void write_endlessly(int socket, cuda_device_ptr base)
{
    void *parameters[] = {&base};
    CU(cu.cuMemsetD32(base, 0, 2));
    probe_launch("endless", 1, 1, NULL, parameters);
    cu.cuStreamQuery(NULL); /* make sure that it is submitted */
    probe_sleep_ms(200);
    helper_answer(socket, 'w');
}

static void compare_pattern(int socket, cuda_device_ptr base)
{
    unsigned *want = new_pattern(), *got = new_pattern();
    memset(got, 0, WORDS * sizeof *got);
    CU(cu.cuMemcpyDtoH(got, base, WORDS * sizeof *got));
    helper_answer(socket, memcmp(want, got, WORDS * sizeof *got) == 0 ? 'y' : 'n');
}

static void watch_word(int socket, cuda_device_ptr base)
{
    unsigned long long first, second;
    CU(cu.cuMemcpyDtoH(&first, base, sizeof first));
    probe_sleep_ms(200);
    CU(cu.cuMemcpyDtoH(&second, base, sizeof second));
    helper_answer(socket, second != first ? 'm' : first ? 'y' : 'z');
}

int step_survival_part(const char *argument, int socket)
{
    probe_open();
    if (!strcmp(argument, "keeper")) { /* no context */
        create_and_send(socket);
        helper_answer(socket, 'c');
        return helper_wait_to_be_killed();
    }
    probe_context();
    bool creates = !strcmp(argument, "create-and-fault") || !strcmp(argument, "write-endlessly");
    cuda_device_ptr base = place(creates ? create_and_send(socket) : import_received(socket));
    if (!strcmp(argument, "write-endlessly"))
        write_endlessly(socket, base);
    else if (!strcmp(argument, "compare"))
        compare_pattern(socket, base);
    else if (!strcmp(argument, "watch"))
        watch_word(socket, base);
    else
        fill_then_fault(socket, base);
    return helper_wait_to_be_killed();
}

/* ---- what the step itself does ---------------------------------------------------------- */
static char look(const char *part, int fd)
{
    struct helper helper = helper_start("survival", part);
    probe_send_fd(helper.socket, fd);
    char verdict = helper_hear(&helper);
    helper_end(&helper);
    return verdict;
}

static void examine_creator(void)
{
    struct helper creator = helper_start("survival", "create-and-fault");
    int fd = probe_receive_fd(creator.socket);
    char faulted = helper_hear(&creator);
    double gone_ms = helper_end(&creator);
    probe_measure("gone_after_fault_ms", gone_ms, "ms");
    if (faulted != 'f')
        probe_die("the illegal access was not reported as one: nothing was tried");
    probe_judge(look("compare", fd) == 'y', "memory-survives-its-creator",
                "the process that created it faulted (illegal address) and was killed (gone after "
                "%.1f ms); a third process mapped the descriptor",
                gone_ms);
}

static void examine_keeper(void)
{
    struct helper keeper = helper_start("survival", "keeper");
    int fd = probe_receive_fd(keeper.socket);
    helper_hear(&keeper);
    struct helper user = helper_start("survival", "fault");
    probe_send_fd(user.socket, fd);
    if (helper_hear(&user) != 'f')
        probe_die("the illegal access was not reported as one: nothing was tried");
    helper_end(&user);
    char kept = look("compare", fd);
    helper_end(&keeper);
    probe_judge(kept == 'y', "memory-survives-its-user",
                "a process without a context created it, another faulted on it and was killed");
}

static void examine_late_writes(void)
{
    struct helper writer = helper_start("survival", "write-endlessly");
    int fd = probe_receive_fd(writer.socket);
    helper_hear(&writer);
    double gone_ms = helper_end(&writer);
    probe_measure("gone_beside_kernel_ms", gone_ms, "ms");
    char late = look("watch", fd);
    if (late == 'z')
        probe_unknown("no-writes-after-death", "the kernel's writes were never seen");
    else
        probe_judge(late == 'y', "no-writes-after-death",
                    "a process with an endless kernel was killed and gone after %.1f ms; its "
                    "kernel's writes %s",
                    gone_ms, late == 'm' ? "STILL LAND" : "have stopped");
}

void step_survival(const char *argument)
{
    if (!strcmp(argument, "creator"))
        examine_creator();
    else if (!strcmp(argument, "user"))
        examine_keeper();
    else
        examine_late_writes();
}
