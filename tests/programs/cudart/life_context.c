/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Contexts and runtimes: two runtimes at once, a context of the driver, threads that exit. */
#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include "tests/programs/cudart/life.h"

/* ---- two runtimes ---- */

enum { LAUNCHES = 2000, THREADS = 200 };

static struct runtime twelve, thirteen;
static struct driver driver;

static void *launch_many(void *context)
{
    const struct runtime *runtime = context;
    struct sum sum;
    life_sum_make(runtime, &sum);
    for (int i = 0; i < LAUNCHES; i++)
        OK(life_sum_add(runtime, &sum, NULL));
    life_sum_demand(runtime, &sum, LAUNCHES);
    life_sum_free(runtime, &sum);
    return NULL;
}

/* Each has its own last error. */
static void check_own_errors(void)
{
    EXPECT(CUDART_INVALID_VALUE, twelve.cudaMalloc(NULL, 4));
    EXPECT(CUDART_INVALID_VALUE, twelve.cudaPeekAtLastError());
    OK(thirteen.cudaPeekAtLastError());
    OK(thirteen.cudaGetLastError());
    EXPECT(CUDART_INVALID_VALUE, twelve.cudaGetLastError());
}

/* Memory, streams and events of one runtime are the other's too. */
static void check_shared(struct sum *sum)
{
    cuda_stream stream, other;
    cuda_event event;
    OK(twelve.cudaStreamCreate(&stream));
    OK(thirteen.cudaStreamCreate(&other));
    OK(thirteen.cudaEventCreate(&event));
    OK(thirteen.cudaStreamSynchronize(NULL));
    OK(life_sum_add(&thirteen, sum, stream));
    OK(twelve.cudaEventRecord(event, stream));
    OK(thirteen.cudaStreamWaitEvent(other, event, 0));
    OK(life_sum_add(&twelve, sum, other));
    OK(twelve.cudaStreamSynchronize(other));
    life_sum_demand(&thirteen, sum, 2);
    OK(twelve.cudaEventDestroy(event));
    OK(thirteen.cudaStreamDestroy(stream));
    OK(twelve.cudaStreamDestroy(other));
}

static void check_one_context(void)
{
    cuda_context first = NULL, second = NULL;
    OK(driver.cuCtxGetCurrent(&first));
    CHECK(first);
    OK(thirteen.cudaDeviceSynchronize());
    OK(driver.cuCtxGetCurrent(&second));
    CHECK(second == first);
}

void life_both(const char *folder)
{
    struct sum sum;
    pthread_t thread;
    int version = 0;
    (void)folder;
    life_driver_open(&driver);
    life_runtime_open(&twelve, 12);
    life_runtime_open(&thirteen, 13);
    OK(twelve.cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == 12);
    OK(thirteen.cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == 13);
    life_sum_make(&twelve, &sum);
    check_one_context();
    check_own_errors();
    check_shared(&sum);
    CHECK(pthread_create(&thread, NULL, launch_many, &twelve) == 0);
    launch_many(&thirteen);
    CHECK(pthread_join(thread, NULL) == 0);
    life_sum_free(&thirteen, &sum);
}

/* ---- a context of the program's ---- */

static bool primary_is_active(void)
{
    unsigned flags;
    int active;
    OK(driver.cuDevicePrimaryCtxGetState(0, &flags, &active));
    return active;
}

static void *work_without_context(void *runtime)
{
    struct sum sum;
    CHECK(!primary_is_active());
    life_sum_make(runtime, &sum);
    CHECK(primary_is_active());
    OK(life_sum_add(runtime, &sum, NULL));
    life_sum_demand(runtime, &sum, 1);
    life_sum_free(runtime, &sum);
    return NULL;
}

/* A current context wins over the primary one, which a thread without any gets. */
void life_context(const char *folder)
{
    cuda_context own, current;
    struct sum sum;
    pthread_t thread;
    (void)folder;
    life_driver_open(&driver);
    life_runtime_open(&twelve, 12);
    OK(driver.cuInit(0));
    OK(driver.cuCtxCreate_v2(&own, 0, 0));
    life_sum_make(&twelve, &sum);
    OK(life_sum_add(&twelve, &sum, NULL));
    life_sum_demand(&twelve, &sum, 1);
    OK(driver.cuCtxGetCurrent(&current));
    CHECK(current == own && !primary_is_active());
    CHECK(pthread_create(&thread, NULL, work_without_context, &twelve) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(life_sum_add(&twelve, &sum, NULL));
    life_sum_demand(&twelve, &sum, 2);
    life_sum_free(&twelve, &sum);
    OK(driver.cuCtxPopCurrent_v2(&current));
    CHECK(current == own);
    life_sum_make(&twelve, &sum);
    OK(driver.cuCtxGetCurrent(&current));
    CHECK(current && current != own);
    OK(driver.cuCtxDestroy_v2(own));
    OK(life_sum_add(&twelve, &sum, NULL));
    life_sum_demand(&twelve, &sum, 1);
    life_sum_free(&twelve, &sum);
}

/* ---- threads ---- */

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* A thread leaves work in its own stream, and an error that nobody has asked for. */
static void *leave(void *context)
{
    OK(thirteen.cudaPeekAtLastError());
    OK(life_sum_add(&thirteen, context, CUDA_STREAM_PER_THREAD));
    EXPECT(CUDART_INVALID_VALUE, thirteen.cudaMalloc(NULL, 4));
    return NULL;
}

static void exit_in_turn(struct sum *sum, int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, leave, sum) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        /* The next one's stream is another, whose work could come before. */
        OK(thirteen.cudaDeviceSynchronize());
    }
}

void life_threads(const char *folder)
{
    struct sum sum;
    (void)folder;
    life_runtime_open(&thirteen, 13);
    life_sum_make(&thirteen, &sum);
    exit_in_turn(&sum, 8);
    const int before = open_descriptors();
    exit_in_turn(&sum, THREADS);
    CHECK(open_descriptors() == before);
    OK(thirteen.cudaGetLastError());
    life_sum_demand(&thirteen, &sum, THREADS + 8);
    life_sum_free(&thirteen, &sum);
}
