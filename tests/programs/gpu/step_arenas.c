/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The address plan: does a fresh process get both arenas at their real bases and sizes, before
 * and after it has a context, every time; and is registered host memory there one address for
 * host and device?
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/ipc/shm.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

/* Ten processes show whether addresses are random; a context takes 0.3 to 3 s each, so time may
 * end the series sooner. */
enum { TRIES = 10, RETRIES = 8, ATTEMPT_S = 8, SILENT_MAX = 2 };
static const uint64_t series_ns = UINT64_C(20) * 1000000000;

struct attempt {
    char host[80], before[120], use[120], after[120]; /* empty: as wished */
    unsigned retries;                                 /* reservations until the base came */
};

/* As the worker does it: strays are kept until the base has come, so that none comes twice. */
static void reserve(uint64_t base, uint64_t bytes, char *trouble, size_t size, unsigned *retries)
{
    cuda_device_ptr strays[RETRIES], got = 0;
    cuda_result result = CUDA_OK;
    unsigned count = 0;
    while (count < RETRIES) {
        result = cu.cuMemAddressReserve(&got, bytes, 0, base, 0);
        if (result != CUDA_OK || got == base)
            break;
        strays[count++] = got;
    }
    if (result != CUDA_OK)
        snprintf(trouble, size, "%s", probe_error(result));
    else if (got != base)
        snprintf(trouble, size, "%u times elsewhere, first at 0x%llx", count,
                 (unsigned long long)strays[0]);
    for (unsigned i = 0; i < count; i++)
        cu.cuMemAddressFree(strays[i], bytes);
    if (retries)
        *retries = count;
}

static void use_arena(char *trouble, size_t size)
{
    cuda_mem_allocation_prop properties = probe_properties();
    size_t bytes = probe_granularity();
    cuda_mem_handle handle;
    cuda_device_ptr end = PROBE_DEVICE_BASE + PROBE_ARENA_BYTES - bytes;
    unsigned value = 0;
    CU(cu.cuMemCreate(&handle, bytes, &properties, 0));
    probe_map(end, bytes, handle);
    CU(cu.cuMemsetD32(end, 0x12345678, bytes / 4));
    CU(cu.cuMemcpyDtoH(&value, end + bytes - 4, 4));
    CU(cu.cuMemUnmap(end, bytes));
    CU(cu.cuMemRelease(handle));
    if (value != 0x12345678)
        snprintf(trouble, size, "memory at 0x%llx holds 0x%x", (unsigned long long)end, value);
}

int step_arenas_attempt(const char *argument, int socket)
{
    (void)argument;
    struct attempt attempt = {0};
    int reserved = shm_reserve(PROBE_HOST_BASE, PROBE_ARENA_BYTES);
    if (reserved < 0)
        snprintf(attempt.host, sizeof attempt.host, "%s", strerror(-reserved));
    probe_open();
    reserve(PROBE_DEVICE_BASE, PROBE_ARENA_BYTES, attempt.before, sizeof attempt.before,
            &attempt.retries);
    probe_context();
    if (!attempt.before[0]) {
        use_arena(attempt.use, sizeof attempt.use);
        CU(cu.cuMemAddressFree(PROBE_DEVICE_BASE, PROBE_ARENA_BYTES));
    }
    reserve(PROBE_DEVICE_BASE, PROBE_ARENA_BYTES, attempt.after, sizeof attempt.after, NULL);
    return write(socket, &attempt, sizeof attempt) == (ssize_t)sizeof attempt ? 0 : 1;
}

/* Other arenas that would do, with each error. */
static void climb_down(void)
{
    static const uint64_t tib = UINT64_C(1) << 40;
    const uint64_t bases[] = {PROBE_DEVICE_BASE, 16 * tib, 64 * tib, UINT64_C(0x1000000000)};
    const uint64_t sizes[] = {16 * tib, 4 * tib, tib, tib / 16};
    char fits[200] = "none of those tried";
    probe_open();
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            char trouble[120] = "", name[80];
            unsigned retries = 0;
            reserve(bases[b], sizes[s], trouble, sizeof trouble, &retries);
            snprintf(name, sizeof name, "%llu GiB at 0x%llx", (unsigned long long)(sizes[s] >> 30),
                     (unsigned long long)bases[b]);
            printf("%s: %s (%u strays)\n", name, *trouble ? trouble : "reserved", retries);
            if (*trouble)
                continue;
            cu.cuMemAddressFree(bases[b], sizes[s]);
            if (!strncmp(fits, "none", 4))
                snprintf(fits, sizeof fits, "%s", name);
        }
    probe_note("the largest range that can be reserved instead: %s", fits);
}

/* Runs one process and reads what it has found; false: it died, or hung, without a word. */
static bool run_attempt(struct attempt *attempt)
{
    int socket, status;
    int child = probe_spawn("arenas-attempt", "", &socket);
    struct timeval patience = {.tv_sec = ATTEMPT_S};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool told = recv(socket, attempt, sizeof *attempt, MSG_WAITALL) == (ssize_t)sizeof *attempt;
    if (!told)
        kill(child, SIGKILL);
    /* One that sits in the kernel can't be waited for: the runner ends with it. */
    waitpid(child, &status, told ? 0 : WNOHANG);
    close(socket);
    return told;
}

static void climb_host(void)
{
    static const uint64_t bases[] = {PROBE_HOST_BASE, UINT64_C(0x500000000000),
                                     UINT64_C(0x100000000000), UINT64_C(0x3000000000)};
    for (uint64_t bytes = PROBE_ARENA_BYTES; bytes >= UINT64_C(64) << 30; bytes /= 4)
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            int error = shm_reserve(bases[b], bytes);
            printf("host: %llu GiB at 0x%llx: %s\n", (unsigned long long)(bytes >> 30),
                   (unsigned long long)bases[b], error < 0 ? strerror(-error) : "reserved");
            if (error == 0)
                munmap((void *)(uintptr_t)bases[b], bytes); /* NOLINT(performance-no-int-to-ptr) */
        }
}

struct series {
    unsigned tried, silent, host, before, use, after, retries_max;
    char host_text[160], before_text[160], use_text[160], after_text[160];
};

static void count_attempt(struct series *series, const struct attempt *attempt)
{
    series->host += !attempt->host[0];
    series->before += !attempt->before[0];
    series->use += !attempt->before[0] && !attempt->use[0];
    series->after += !attempt->after[0];
    if (attempt->retries > series->retries_max)
        series->retries_max = attempt->retries;
    snprintf(series->host_text, sizeof series->host_text, "%s", attempt->host);
    if (attempt->before[0])
        snprintf(series->before_text, sizeof series->before_text, "; %s", attempt->before);
    if (attempt->use[0])
        snprintf(series->use_text, sizeof series->use_text, "; %s", attempt->use);
    if (attempt->after[0])
        snprintf(series->after_text, sizeof series->after_text, "; %s", attempt->after);
}

void step_arenas(const char *argument)
{
    (void)argument;
    struct series series = {0};
    uint64_t began = probe_ns();
    while (series.tried < TRIES && probe_ns() - began < series_ns) {
        struct attempt attempt = {0};
        series.tried++;
        if (run_attempt(&attempt))
            count_attempt(&series, &attempt);
        else if (++series.silent == SILENT_MAX)
            break;
    }
    if (series.silent == series.tried)
        probe_die("none of %u processes could answer", series.tried);
    if (series.silent)
        probe_note("%u of %u processes hung or died before they could answer", series.silent,
                   series.tried);
    series.tried -= series.silent;
    probe_measure("processes", series.tried, "-");
    probe_measure("ms_a_process", (double)(probe_ns() - began) / 1e6 / series.tried, "ms");
    probe_judge(series.host == series.tried, "host-arena",
                "%u of %u processes could reserve 16 TiB at 0x%llx%s", series.host, series.tried,
                (unsigned long long)PROBE_HOST_BASE, series.host_text);
    probe_judge(series.before == series.tried && series.use == series.tried,
                "device-arena-before-context",
                "%u of %u processes got 16 TiB at 0x%llx before their context, %u could use its "
                "end, at most %u strays came first%s%s",
                series.before, series.tried, (unsigned long long)PROBE_DEVICE_BASE, series.use,
                series.retries_max, series.before_text, series.use_text);
    probe_judge(series.after == series.tried, "device-arena-after-context",
                "%u of %u processes got it with a context%s", series.after, series.tried,
                series.after_text);
    if (series.before < series.tried || series.after < series.tried)
        climb_down();
    if (series.host < series.tried)
        climb_host();
}

/* ---- registered host memory -------------------------------------------------------- */
enum { REGISTRATIONS = 2 };

static void fill_pattern(unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 4096)
        memcpy(bytes + i, &i, sizeof i);
}

static bool pattern_same(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 4096)
        if (memcmp(bytes + i, &i, sizeof i) != 0)
            return false;
    return true;
}

/* Copies count bytes to the device and back into `back`, in pieces; the first error. */
static cuda_result copy_there_and_back(cuda_device_ptr device, unsigned char *host,
                                       unsigned char *back, size_t count, size_t piece)
{
    cuda_stream stream;
    cuda_result result = CUDA_OK;
    CU(cu.cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    probe_call("cuMemcpyHtoDAsync");
    for (size_t at = 0; at < count && result == CUDA_OK; at += piece) {
        size_t bytes = count - at < piece ? count - at : piece;
        result = cu.cuMemcpyHtoDAsync(device + at, host + at, bytes, stream);
    }
    if (result == CUDA_OK)
        result = cu.cuStreamSynchronize(stream);
    if (result == CUDA_OK)
        result = cu.cuMemcpyDtoH(back, device, count);
    return result;
}

static unsigned char *map_shared_buffer(size_t bytes)
{
    struct shm shm;
    int error = shm_create(&shm, "gpushare-check", bytes);
    if (error == 0)
        error = shm_map_at(shm.fd, PROBE_HOST_BASE, bytes, false);
    if (error < 0)
        probe_die("a sealed memfd could not be mapped at 0x%llx: %s",
                  (unsigned long long)PROBE_HOST_BASE, strerror(-error));
    return (unsigned char *)(uintptr_t)PROBE_HOST_BASE; /* NOLINT(performance-no-int-to-ptr) */
}

static bool register_buffer(unsigned char *host)
{
    uint64_t began = probe_ns();
    for (unsigned i = 0; i < REGISTRATIONS; i++) {
        probe_call("cuMemHostRegister");
        cuda_result result =
            cu.cuMemHostRegister(host + i * PROBE_REGISTER_STEP, PROBE_REGISTER_STEP,
                                 CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP);
        if (result != CUDA_OK) {
            probe_false("registered-memfd", "cuMemHostRegister of 64 MiB of a sealed memfd: %s",
                        probe_error(result));
            return false;
        }
    }
    double ms = (double)(probe_ns() - began) / 1e6;
    probe_measure("register_ms_a_gib",
                  ms * 1024 / (double)(REGISTRATIONS * (PROBE_REGISTER_STEP >> 20)), "ms");
    probe_held("registered-memfd", "two pieces of 64 MiB of a sealed memfd took %.1f ms", ms);
    return true;
}

void step_registration(const char *argument)
{
    (void)argument;
    size_t bytes = REGISTRATIONS * PROBE_REGISTER_STEP, crossing = bytes * 3 / 4;
    unsigned char *host = map_shared_buffer(bytes), *back = malloc(bytes);
    if (!back)
        probe_die("no memory");
    probe_open();
    probe_context();
    if (!register_buffer(host)) {
        free(back);
        return;
    }
    cuda_device_ptr device, seen[REGISTRATIONS];
    for (unsigned i = 0; i < REGISTRATIONS; i++)
        CU(cu.cuMemHostGetDevicePointer(&seen[i], host + i * PROBE_REGISTER_STEP, 0));
    probe_judge(seen[0] == (uint64_t)(uintptr_t)host &&
                    seen[1] == (uint64_t)(uintptr_t)host + PROBE_REGISTER_STEP,
                "one-pointer", "host 0x%llx is 0x%llx to the device",
                (unsigned long long)(uintptr_t)host, (unsigned long long)seen[0]);
    CU(cu.cuMemAlloc(&device, bytes));

    fill_pattern(host, bytes);
    cuda_result whole = copy_there_and_back(device, host, back, crossing, crossing);
    bool right = whole == CUDA_OK && pattern_same(back, crossing);
    probe_judge(right, "copy-across-registrations",
                "one copy of 96 MiB over two registrations of 64 MiB: %s",
                whole != CUDA_OK ? probe_error(whole)
                : right          ? "arrived whole"
                                 : "arrived WRONG, without an error");

    memset(back, 0, bytes);
    uint64_t began = probe_ns();
    cuda_result cut = copy_there_and_back(device, host, back, bytes, PROBE_REGISTER_STEP);
    probe_measure("copy_both_ways_ms", (double)(probe_ns() - began) / 1e6, "ms");
    right = cut == CUDA_OK && pattern_same(back, bytes);
    probe_judge(right, "copy-within-registrations", "the same, cut at the registrations: %s",
                cut != CUDA_OK ? probe_error(cut)
                : right        ? "arrived whole"
                               : "arrived WRONG, without an error");
    free(back);
}
