/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Processes: their children, their libraries, their end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/cudart/life.h"

/* ---- forks ---- */

static struct runtime forked_runtime;
static struct driver forked_driver;
static struct sum forked_sum;

static void work_anew(void)
{
    struct sum sum;
    life_sum_make(&forked_runtime, &sum);
    OK(life_sum_add(&forked_runtime, &sum, NULL));
    life_sum_demand(&forked_runtime, &sum, 1);
    life_sum_free(&forked_runtime, &sum);
}

/* CUDA's objects stay with the process that made them, so every call fails in the same way. */
static void fail(void)
{
    int devices = 0;
    void *memory = NULL;
    cuda_device_ptr ptr;
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_runtime.cudaMalloc(&memory, 4));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_runtime.cudaGetLastError());
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_runtime.cudaGetDeviceCount(&devices));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, life_sum_add(&forked_runtime, &forked_sum, NULL));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_runtime.cudaFree(forked_sum.total));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_runtime.cudaDeviceSynchronize());
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_driver.cuInit(0));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_driver.cuDeviceGetCount(&devices));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, forked_driver.cuMemAlloc_v2(&ptr, 4));
    forked_runtime.__cudaUnregisterFatBinary(forked_runtime.image);
}

/* deep: in a child of the child. */
static void in_child(void (*act)(void), bool deep)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (deep)
            in_child(act, false);
        act();
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Children work as long as the parent has not begun. */
void life_fork(const char *folder)
{
    (void)folder;
    life_runtime_open(&forked_runtime, 13);
    life_driver_open(&forked_driver);
    in_child(work_anew, false);
    in_child(work_anew, false);
    life_sum_make(&forked_runtime, &forked_sum);
    for (int i = 0; i < 3; i++) {
        OK(life_sum_add(&forked_runtime, &forked_sum, NULL));
        in_child(fail, i == 1);
    }
    life_sum_demand(&forked_runtime, &forked_sum, 3);
    work_anew();
}

/* ---- the end ---- */

static struct runtime exit_runtime;
static struct sum exit_sum;
static bool exiting;

static void free_at_exit(void)
{
    OK(life_sum_add(&exit_runtime, &exit_sum, NULL));
    life_sum_demand(&exit_runtime, &exit_sum, 101);
    life_sum_free(&exit_runtime, &exit_sum);
    printf("freed\n");
}

static void *exit_from_thread(void *unused)
{
    (void)unused;
    exit(0);
}

/* Runs after all handlers. */
static void __attribute__((destructor)) unregister_last(void)
{
    if (!exiting)
        return;
    OK(exit_runtime.cudaDeviceSynchronize());
    exit_runtime.__cudaUnregisterFatBinary(exit_runtime.image);
    printf("unregistered\n");
}

/* The process ends by another thread than the one that made everything, and with work in flight. */
void life_exit(const char *folder)
{
    pthread_t thread;
    (void)folder;
    CHECK(atexit(free_at_exit) == 0);
    life_runtime_open(&exit_runtime, 13);
    life_sum_make(&exit_runtime, &exit_sum);
    for (int i = 0; i < 100; i++)
        OK(life_sum_add(&exit_runtime, &exit_sum, NULL));
    exiting = true;
    CHECK(pthread_create(&thread, NULL, exit_from_thread, NULL) == 0);
    for (;;)
        pause();
}

static void never_end(void *unused)
{
    (void)unused;
    for (;;)
        pause();
}

/* As nvcc has it: registered before anything is loaded. */
static void unregister_at_exit(void)
{
    exit_runtime.__cudaUnregisterFatBinary(exit_runtime.image);
    printf("unregistered\n");
}

/* Work that does not end keeps no process from ending. */
void life_endless(const char *folder)
{
    (void)folder;
    life_runtime_open(&exit_runtime, 13);
    CHECK(atexit(unregister_at_exit) == 0);
    life_sum_make(&exit_runtime, &exit_sum);
    OK(life_sum_add(&exit_runtime, &exit_sum, NULL));
    OK(exit_runtime.cudaLaunchHostFunc(NULL, never_end, NULL));
    exit(0);
}

/* ---- libraries that come and go ---- */

/* Has the plugin add 1 to each element by a kernel of its own, and unloads it at once. */
static void add_by_plugin(const char *folder, int release, struct sum *sum)
{
    char path[4096];
    cudart_error (*add)(float *total, float *ones, unsigned count);
    snprintf(path, sizeof path, "%s/libplugin_%d.so", folder, release);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin);
    *(void **)&add = dlsym(plugin, "plugin_add");
    CHECK(add);
    OK(add(sum->total, sum->ones, LIFE_COUNT));
    CHECK(dlclose(plugin) == 0);
    CHECK(!dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

struct beside {
    const struct runtime *runtime;
    _Atomic bool ended;
};

static void *launch_beside(void *context)
{
    struct beside *beside = context;
    struct sum sum;
    int launches = 0;
    life_sum_make(beside->runtime, &sum);
    while (!beside->ended || launches < 100) {
        OK(life_sum_add(beside->runtime, &sum, NULL));
        if (++launches % 100 == 0)
            life_sum_demand(beside->runtime, &sum, (float)launches);
    }
    /* Its copy waits for the launches. cudaFree need not: the strict software GPU draws that. */
    life_sum_demand(beside->runtime, &sum, (float)launches);
    life_sum_free(beside->runtime, &sum);
    return NULL;
}

/* Launches of others go on. */
void life_unload(const char *folder)
{
    static struct runtime runtime;
    struct beside beside = {.runtime = &runtime};
    struct sum sum;
    pthread_t thread;
    life_runtime_open(&runtime, 13);
    life_sum_make(&runtime, &sum);
    CHECK(pthread_create(&thread, NULL, launch_beside, &beside) == 0);
    for (int i = 0; i < 40; i++)
        add_by_plugin(folder, 12 + i % 2, &sum);
    beside.ended = true;
    CHECK(pthread_join(thread, NULL) == 0);
    life_sum_demand(&runtime, &sum, 40);
    life_sum_free(&runtime, &sum);
}

/* The plugin brings its runtime along and takes it away, with the thread's last error and the
 * context that it had made current. The memory stays, because another runtime has it too. */
void life_unload_all(const char *folder)
{
    static struct runtime runtime;
    struct sum sum;
    life_runtime_open(&runtime, 13);
    life_sum_make(&runtime, &sum);
    for (int i = 0; i < 10; i++) {
        add_by_plugin(folder, 12, &sum);
        CHECK(!dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD));
    }
    life_sum_demand(&runtime, &sum, 10);
    life_sum_free(&runtime, &sum);
}

/* As NVIDIA's static runtime does at the end of a program. The driver's threads are in their code
 * then, and go on with the work. */
void life_unload_driver(const char *folder)
{
    enum { TIMES = 10, BYTES = 16 << 20 };
    (void)folder;
    uint64_t memory = 0;
    for (int i = 1; i <= TIMES; i++) {
        struct driver driver;
        cuda_context context;
        void *library = life_driver_open(&driver);
        OK(driver.cuInit(0));
        if (!memory) {
            OK(driver.cuCtxCreate_v2(&context, 0, 0));
            OK(driver.cuMemAlloc_v2(&memory, BYTES));
        }
        OK(driver.cuMemsetD8Async(memory, (unsigned char)i, BYTES, NULL));
        CHECK(dlclose(library) == 0);
    }
    struct driver driver;
    unsigned char last[64];
    life_driver_open(&driver);
    OK(driver.cuMemcpyDtoH_v2(last, memory + BYTES - sizeof last, sizeof last));
    for (size_t i = 0; i < sizeof last; i++)
        CHECK(last[i] == TIMES);
}
