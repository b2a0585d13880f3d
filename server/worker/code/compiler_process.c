/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/compiler_process.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/machine.h"
#include "common/util.h"
#include "common/cuda/driver_error.h"
#include "server/worker/device/gpu.h"

/* A compilation never keeps a submitter from its core, and is what the system ends first when
 * memory is short. */
enum { NICE_MORE = 10 };
#define OOM_SCORE "500"

static bool write_all(const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes) {
        ssize_t put = write(COMPILER_ANSWER_FD, at, bytes);
        if (put <= 0)
            return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

static bool send_answer(enum compiler_stage stage, cuda_result result, size_t bytes,
                        const char *log)
{
    static struct compiler_answer answer;
    answer = (struct compiler_answer){.stage = stage, .result = result, .bytes = bytes};
    snprintf(answer.log, sizeof answer.log, "%s", log);
    return write_all(&answer, sizeof answer);
}

static void step_back(void)
{
    const struct rlimit none = {0, 0};
    prctl(PR_SET_NAME, "gpushare-ptx");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE_MORE);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    /* Where the system does not allow it, it ends somebody else first. */
    ssize_t written = write(fd, OOM_SCORE, strlen(OOM_SCORE));
    (void)written;
    close(fd);
}

/* Bytes of addresses in use. A driver reserves very many, so only what comes on top is bounded. */
static uint64_t used_addresses(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * machine_page();
}

static bool lower_limits(const struct compiler_process *process)
{
    struct rlimit now;
    struct rusage usage;
    uint64_t used = used_addresses();
    uint64_t most = saturating_add(used, process->memory);
    const struct rlimit memory = {most, most};
    if (!used || getrusage(RUSAGE_SELF, &usage) < 0 || getrlimit(RLIMIT_CPU, &now) < 0)
        return false;
    rlim_t seconds = (rlim_t)usage.ru_utime.tv_sec + (rlim_t)usage.ru_stime.tv_sec + 2 +
                     (rlim_t)process->seconds;
    if (seconds > now.rlim_max)
        seconds = now.rlim_max;
    const struct rlimit time = {seconds, seconds};
    return setrlimit(RLIMIT_AS, &memory) == 0 && setrlimit(RLIMIT_CPU, &time) == 0;
}

/* Makes the driver ready to link. */
static uint32_t open_driver(const struct compiler_process *process, struct cuda_driver *cuda,
                            struct ptx_link *link, struct error *why)
{
    cuda_device device;
    cuda_context context;
    uint32_t error = cuda_driver_open(cuda, process->driver, why);
    if (error)
        return error;
    cuda_result result = cuda->cuInit(0);
    if (result != CUDA_OK)
        return driver_error_set_init(why, result);
    error = gpu_find_device(cuda, process->device, process->uuid, &device, why);
    if (error)
        return error;
    result = cuda->cuDevicePrimaryCtxRetain(&context, device);
    if (result != CUDA_OK)
        return driver_error_set(why, "cuDevicePrimaryCtxRetain", result);
    result = cuda->cuCtxSetCurrent(context);
    if (result != CUDA_OK)
        return driver_error_set(why, "cuCtxSetCurrent", result);
    result = ptx_link_open(link, cuda);
    return result == CUDA_OK ? 0 : driver_error_set(why, "cuLinkCreate", result);
}

/* The text ends with NUL, as the file was written. */
static const char *map_text(void)
{
    struct stat status;
    if (fstat(COMPILER_TEXT_FD, &status) < 0 || status.st_size <= 0)
        return NULL;
    void *text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, COMPILER_TEXT_FD, 0);
    return text == MAP_FAILED || ((const char *)text)[status.st_size - 1] ? NULL : text;
}

static bool compile_text(struct ptx_link *link, const char *text)
{
    const void *code = NULL;
    size_t bytes = 0;
    cuda_result result = ptx_link_text(link, text, &code, &bytes);
    if (result != CUDA_OK)
        return send_answer(COMPILER_DONE, result, 0, link->log);
    return send_answer(COMPILER_DONE, CUDA_OK, bytes, "") && write_all(code, bytes);
}

int compiler_process_run(const struct compiler_process *process)
{
    static struct cuda_driver cuda;
    static struct ptx_link link;
    struct error why = {0};
    step_back();
    /* Each of a driver's threads would reserve 64 MiB of addresses for a heap of its own when it
     * first allocates. That may be after the limit is set, and be all that the limit leaves. */
    mallopt(M_ARENA_MAX, 1);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != process->parent)
        return 1;
    const char *text = map_text();
    if (!text)
        return 1;
    if (open_driver(process, &cuda, &link, &why))
        return !send_answer(COMPILER_ABSENT, CUDA_OK, 0, why.text);
    if (!lower_limits(process))
        return !send_answer(COMPILER_ABSENT, CUDA_OK, 0, "its limits can't be set");
    if (!send_answer(COMPILER_READY, CUDA_OK, 0, ""))
        return 1;
    return !compile_text(&link, text);
}
