/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/neighbour.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"

__asm__(".section .rodata\n.balign 16\nneighbour_ptx:\n.incbin "
        "\"examples/kernels/vector-add.ptx\"\n.byte 0\n.previous\n");
extern const char neighbour_ptx[];

enum { COUNT = 4096 };

struct shared {
    atomic_ulong rounds;
    atomic_bool stop;
};

struct neighbour {
    pid_t pid;
    struct shared *shared;
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        gpushare_error try_error = (call);                                                         \
        if (try_error != GPUSHARE_SUCCESS) {                                                       \
            fprintf(stderr, "neighbour: %s: %s: %s\n", #call, gpushare_error_name(try_error),      \
                    gpushare_error_text());                                                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int live(const char *socket, struct shared *shared)
{
    struct gpushare_options options = {
        .size = sizeof options, .socket = socket, .name = "neighbour"};
    struct gpushare_dim grid = {COUNT / 256, 1, 1}, block = {256, 1, 1};
    uint32_t count = COUNT;
    float a[COUNT], b[COUNT], c[COUNT];
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *add;
    gpushare_address da, db, dc;
    void *parameters[] = {&da, &db, &dc, &count};
    TRY(gpushare_connect(&options, &gpu));
    TRY(gpushare_module_load(gpu, neighbour_ptx, 0, &module));
    TRY(gpushare_module_function(module, "vector_add", &add));
    while (!atomic_load(&shared->stop)) {
        unsigned long round = atomic_load(&shared->rounds);
        TRY(gpushare_memory_alloc(gpu, sizeof a, &da));
        TRY(gpushare_memory_alloc(gpu, sizeof b, &db));
        TRY(gpushare_memory_alloc(gpu, sizeof c, &dc));
        for (unsigned i = 0; i < COUNT; i++) {
            a[i] = (float)(i + round % 1000);
            b[i] = (float)(3 * i);
        }
        TRY(gpushare_copy_to_device(gpu, da, a, sizeof a));
        TRY(gpushare_copy_to_device(gpu, db, b, sizeof b));
        TRY(gpushare_launch(add, grid, block, 0, NULL, parameters));
        TRY(gpushare_copy_from_device(gpu, c, dc, sizeof c));
        for (unsigned i = 0; i < COUNT; i++)
            if (c[i] != a[i] + b[i]) {
                fprintf(stderr, "neighbour: round %lu, element %u is %g, not %g\n", round, i, c[i],
                        a[i] + b[i]);
                return 1;
            }
        TRY(gpushare_memory_free(gpu, da));
        TRY(gpushare_memory_free(gpu, db));
        TRY(gpushare_memory_free(gpu, dc));
        atomic_fetch_add(&shared->rounds, 1);
    }
    gpushare_close(&gpu);
    return 0;
}

static bool wait_round(const struct neighbour *neighbour, unsigned long above)
{
    for (int i = 0; i < 6000; i++) {
        if (atomic_load(&neighbour->shared->rounds) > above)
            return true;
        if (waitpid(neighbour->pid, NULL, WNOHANG) == neighbour->pid)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

struct neighbour *neighbour_start(const struct server *server)
{
    struct neighbour *neighbour = calloc(1, sizeof *neighbour);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!neighbour || page == MAP_FAILED)
        abort();
    neighbour->shared = page;
    neighbour->pid = fork();
    if (neighbour->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(live(server_socket(server), neighbour->shared));
    }
    if (!wait_round(neighbour, 0)) {
        fprintf(stderr, "neighbour: no first round\n");
        abort();
    }
    return neighbour;
}

unsigned long neighbour_rounds(const struct neighbour *neighbour)
{
    return atomic_load(&neighbour->shared->rounds);
}

int neighbour_stop(struct neighbour *neighbour)
{
    int result = 0, status = 0;
    if (!wait_round(neighbour, neighbour_rounds(neighbour))) {
        fprintf(stderr, "neighbour: it stopped after %lu rounds\n", neighbour_rounds(neighbour));
        kill(neighbour->pid, SIGKILL);
        result = 1;
    }
    atomic_store(&neighbour->shared->stop, true);
    if (waitpid(neighbour->pid, &status, 0) == neighbour->pid && status)
        result = 1;
    munmap(neighbour->shared, 4096);
    free(neighbour);
    return result;
}
