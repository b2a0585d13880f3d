/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Work in a rain of signals: a timer of 1 ms, children that end, another thread. */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/tenant/tenant.h"

enum { WORDS = 1 << 18, BYTES = WORDS * 4, ALARMS = 400, USERS = 200, CHILDREN = 10, ROUNDS = 60 };

static atomic_int alarms, users, children, foreign;
static atomic_long own_threads[2];
static atomic_bool begun, over;

static long thread_id(void)
{
    return syscall(SYS_gettid);
}

/* A library's own threads take no signal of the program's. */
static void count_signal(int number)
{
    const long id = thread_id();
    if (id != own_threads[0] && id != own_threads[1])
        foreign++;
    if (number == SIGALRM)
        alarms++;
    else if (number == SIGCHLD)
        children++;
    else
        users++;
}

/* To the process, which has the kernel choose a thread, and to the main thread. */
static void *send_signals(void *main_thread)
{
    own_threads[1] = thread_id();
    while (!begun)
        usleep(100);
    while (!over) {
        kill(getpid(), SIGUSR1);
        pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
        usleep(500);
    }
    return NULL;
}

static void start_child(void)
{
    extern char **environ;
    char *words[] = {(char *)"true", NULL};
    pid_t pid;
    CHECK(posix_spawnp(&pid, "true", NULL, NULL, words, environ) == 0);
}

static void begin_signals(int flags)
{
    static const int numbers[] = {SIGALRM, SIGUSR1, SIGCHLD};
    const struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
    const struct itimerval each_ms = {.it_interval = {0, 1000}, .it_value = {0, 1000}};
    own_threads[0] = thread_id();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CHECK(sigaction(numbers[i], &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &each_ms, NULL) == 0);
}

static void end_signals(void)
{
    const struct itimerval never = {.it_value = {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void note_call(void *called)
{
    atomic_fetch_add((atomic_int *)called, 1);
}

/* The kernel adds to the first words; copies carry the rest. */
static void demand(const uint32_t *words, uint32_t first)
{
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(words[i] == (i < 256 ? first + i : i));
}

static void run_once(const struct tenant *tenant, uint32_t *host, uint32_t *pinned,
                     cuda_stream stream)
{
    atomic_int called = 0;
    cuda_device_ptr words, other;
    cuda_event event;
    cuda_module module;
    uint32_t number = 3;
    void *parameters[] = {&words, &number};
    for (uint32_t i = 0; i < WORDS; i++)
        host[i] = i;
    OK(cudaMalloc((void **)&words, BYTES));
    OK(cudaMallocAsync((void **)&other, BYTES, stream));
    OK(cudaEventCreate(&event));
    OK(cudaMemcpy((void *)words, host, BYTES, CUDART_HOST_TO_DEVICE));
    OK(cudaLaunchKernel(&tenant_add, (cudart_dim3){1, 1, 1}, (cudart_dim3){256, 1, 1}, parameters,
                        0, stream));
    OK(cuLaunchKernel(tenant->add, 1, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
    OK(cuMemcpyDtoDAsync_v2(other, words, BYTES, stream));
    OK(cudaMemcpyAsync(pinned, (void *)other, BYTES, CUDART_DEVICE_TO_HOST, stream));
    OK(cudaLaunchHostFunc(stream, note_call, &called));
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
    CHECK(called == 1);
    demand(pinned, 6);
    OK(cudaMemcpy(host, (void *)words, BYTES, CUDART_DEVICE_TO_HOST));
    demand(host, 6);
    OK(cuModuleLoadData(&module, tenant_kernels));
    OK(cuModuleUnload(module));
    OK(cudaEventDestroy(event));
    OK(cudaFreeAsync((void *)other, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaDeviceSynchronize());
    OK(cudaFree((void *)words));
}

/* A connection begins and ends in the rain too. */
static void run_rounds(struct tenant *tenant, uint32_t *host)
{
    cuda_stream stream;
    uint32_t *pinned;
    for (int round = 0; round < ROUNDS || alarms < ALARMS || users < USERS || children < CHILDREN;
         round++) {
        if (round % 20 == 0) {
            if (round)
                OK(cudaDeviceReset());
            tenant_load(tenant);
            OK(cudaStreamCreate(&stream));
            OK(cudaMallocHost((void **)&pinned, BYTES));
        }
        if (round % 4 == 0)
            start_child();
        run_once(tenant, host, pinned, stream);
    }
}

static void run_in_signals(int flags)
{
    static uint32_t host[WORDS];
    struct tenant tenant;
    pthread_t self = pthread_self(), sender;
    /* A signal may choose either thread from the first one on. */
    CHECK(pthread_create(&sender, NULL, send_signals, &self) == 0);
    while (!own_threads[1])
        usleep(100);
    begin_signals(flags);
    begun = true;
    tenant_begin(&tenant);
    run_rounds(&tenant, host);
    over = true;
    CHECK(pthread_join(sender, NULL) == 0);
    end_signals();
    if (foreign) {
        fprintf(stderr, "%d signals came on a library's thread\n", foreign);
        exit(1);
    }
    puts("right");
}

void run_in_restarting_signals(void)
{
    run_in_signals(SA_RESTART);
}

void run_in_interrupting_signals(void)
{
    run_in_signals(0);
}

void launch_until_ended(void)
{
    struct tenant tenant;
    cuda_device_ptr words;
    uint32_t number = 1;
    void *parameters[] = {&words, &number};
    tenant_begin(&tenant);
    OK(cudaMalloc((void **)&words, BYTES));
    for (int i = 0;; i++) {
        OK(cuLaunchKernel(tenant.add, 1, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
        if (i % 64 == 0)
            OK(cudaDeviceSynchronize());
        if (i == 1000) {
            puts("ready");
            fflush(stdout);
        }
    }
}
