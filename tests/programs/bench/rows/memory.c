/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory_exact_bytes: a client with a limit of device memory takes pieces until one is refused.
 * The memory it has then is read from the device's own count of free memory (cuMemGetInfo of
 * another process), and not from the server's. The distance of that, above or below, from the
 * limit rounded down to whole granules (the unit of device memory) is the error.
 *
 * The row is the largest error of several clients: with pieces of one granule and of
 * 1,000 bytes; after a module with variables, after a large image, after many
 * streams, after frees; with limits that are a multiple of the granule, and that are not. The
 * kernel writes to both ends of every piece, which shows that each is memory and belongs to no
 * other client.
 *
 * No neighbours: the device's count has everybody's memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/device_memory.h"
#include "tests/programs/bench/span.h"

enum { GRANULE = 2 << 20, PIECES_MAX = 1 << 16, STREAMS = 64 };

static const struct filling {
    const char *name;
    uint64_t limit;
    uint64_t piece;
    uint64_t variables; /* bytes of variables of a module that is loaded before the pieces */
    uint64_t image;     /* bytes of comment in the module's text */
    unsigned streams;   /* number made and used before the pieces */
    bool frees;         /* every other piece is freed and taken again half-way */
} fillings[] = {
    {"granules", 64 << 20, GRANULE, 0, 0, 0, false},
    {"odd limit", (64 << 20) + 1234567, GRANULE, 0, 0, 0, false},
    {"small pieces", 8 << 20, 1000, 0, 0, 0, false},
    {"variables", 64 << 20, GRANULE, 5000001, 0, 0, false},
    {"an image", 32 << 20, GRANULE, 0, 4 << 20, 0, false},
    {"streams", 32 << 20, GRANULE, 0, 0, STREAMS, false},
    {"frees", 64 << 20, 3 << 20, 0, 0, 0, true},
};

/* ---- the client ---- */

static char *module_text(const struct filling *filling)
{
    static const char head[] = ".version 6.3\n.target sm_75\n.address_size 64\n";
    char *text = malloc(filling->image + 512);
    if (!text)
        bench_die("out of memory");
    size_t used = (size_t)sprintf(text, "%s", head);
    if (filling->variables)
        used += (size_t)sprintf(text + used, ".visible .global .align 4 .b8 variables[%llu];\n",
                                (unsigned long long)filling->variables);
    for (uint64_t i = 0; i < filling->image; i += 64)
        used += (size_t)sprintf(text + used, "//%61s\n", "");
    sprintf(text + used, ".visible .entry none()\n{\n\tret;\n}\n");
    return text;
}

static void before_pieces(gpushare_connection *gpu, gpushare_function *span,
                          const struct filling *filling)
{
    if (filling->variables || filling->image) {
        gpushare_module *module;
        char *text = module_text(filling);
        BENCH_CHECK(gpushare_module_load(gpu, text, 0, &module));
        free(text);
    }
    void *words;
    BENCH_CHECK(gpushare_host_alloc(gpu, 4096, &words));
    for (unsigned i = 0; i < filling->streams; i++) {
        gpushare_stream *stream;
        uint64_t at = (uint64_t)(uintptr_t)words, counted = at + 64, ns = 1000;
        struct gpushare_dim one = {1, 1, 1};
        void *parameters[] = {&at, &counted, &ns};
        BENCH_CHECK(gpushare_stream_create(gpu, 0, 0, &stream));
        BENCH_CHECK(gpushare_launch(span, one, one, 0, stream, parameters));
    }
    BENCH_CHECK(gpushare_synchronize(gpu));
}

static void write_ends(gpushare_connection *gpu, gpushare_function *span, uint64_t piece,
                       uint64_t bytes)
{
    struct gpushare_dim one = {1, 1, 1};
    uint64_t begin = piece, end = piece + bytes / 8 * 8 - sizeof(struct span);
    uint64_t counted = piece + sizeof(struct span), ns = 1000;
    void *first[] = {&begin, &counted, &ns}, *last[] = {&end, &counted, &ns};
    BENCH_CHECK(gpushare_launch(span, one, one, 0, NULL, first));
    BENCH_CHECK(gpushare_launch(span, one, one, 0, NULL, last));
    (void)gpu;
}

/* The words that the kernels wrote to both ends of a piece. */
struct written {
    struct span first, last;
    uint32_t counted;
};

/* A copy that is waited for costs more than its bytes, so a small piece is copied whole. */
static struct written read_piece(gpushare_connection *gpu, uint64_t piece, uint64_t bytes)
{
    char whole[4096];
    struct written written;
    const uint64_t last = bytes / 8 * 8 - sizeof written.last, counted = sizeof written.first;
    if (bytes <= sizeof whole) {
        BENCH_CHECK(gpushare_copy_from_device(gpu, whole, piece, bytes));
        memcpy(&written.first, whole, sizeof written.first);
        memcpy(&written.counted, whole + counted, sizeof written.counted);
        memcpy(&written.last, whole + last, sizeof written.last);
        return written;
    }
    BENCH_CHECK(gpushare_copy_from_device(gpu, &written.first, piece, sizeof written.first));
    BENCH_CHECK(
        gpushare_copy_from_device(gpu, &written.counted, piece + counted, sizeof written.counted));
    BENCH_CHECK(gpushare_copy_from_device(gpu, &written.last, piece + last, sizeof written.last));
    return written;
}

/* Each piece was cleared. It must hold what its own two launches wrote, and nothing from others. */
static void check_ends(gpushare_connection *gpu, const uint64_t *pieces, size_t count,
                       uint64_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        struct written written = read_piece(gpu, pieces[i], bytes);
        if (written.counted != 2 || !written.first.done || !written.last.done ||
            written.last.begin < written.first.end)
            bench_die("piece %zu of %zu does not hold what the kernel wrote", i, count);
    }
}

/* Takes pieces until one is refused. Returns how many it got. */
static size_t fill(gpushare_connection *gpu, gpushare_function *span, uint64_t *pieces,
                   size_t count, uint64_t bytes)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    while (count < PIECES_MAX &&
           (error = gpushare_memory_alloc(gpu, bytes, &pieces[count])) == GPUSHARE_SUCCESS)
        write_ends(gpu, span, pieces[count++], bytes);
    if (count == PIECES_MAX || error != GPUSHARE_ERROR_OUT_OF_MEMORY)
        bench_die("%zu pieces, then not the refusal of one: %s", count, gpushare_error_text());
    BENCH_CHECK(gpushare_synchronize(gpu));
    return count;
}

/* The bytes that the device gave up for this client, less the granules within its limit. */
static double distance(const struct filling *filling)
{
    static uint64_t pieces[PIECES_MAX];
    char folder[] = "/tmp/gpushare-bench-XXXXXX", state[64], setting[96];
    if (!mkdtemp(folder))
        bench_die("no temporary folder");
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(setting, sizeof setting, "SOFTGPU_STATE=%s", state);
    const char *env[] = {setting, NULL};
    struct server *server = bench_server_soft(env);
    uint64_t before = device_memory_used(state);

    gpushare_connection *gpu;
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(server),
                                       .name = filling->name,
                                       .memory_limit = filling->limit};
    BENCH_CHECK(gpushare_connect(&options, &gpu));
    gpushare_function *span = bench_function(gpu, "span");
    before_pieces(gpu, span, filling);
    size_t count = fill(gpu, span, pieces, 0, filling->piece);
    if (filling->frees) {
        for (size_t i = 0; i < count; i += 2)
            BENCH_CHECK(gpushare_memory_free(gpu, pieces[i]));
        size_t kept = 0;
        for (size_t i = 1; i < count; i += 2)
            pieces[kept++] = pieces[i];
        size_t again = fill(gpu, span, pieces, kept, filling->piece);
        if (again != count)
            bench_die("%zu pieces before frees, %zu after them", count, again);
    }
    check_ends(gpu, pieces, count, filling->piece);
    double used = (double)(device_memory_used(state) - before);
    gpushare_close(&gpu);
    bench_server_stop(server);
    unlink(state);
    rmdir(folder);
    size_t whole_granules = filling->limit / GRANULE;
    return used - (double)(whole_granules * GRANULE);
}

void bench_memory_exact(struct bench_result *result)
{
    size_t length = 0;
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++) {
        double off = distance(&fillings[i]), far = off < 0 ? -off : off;
        result->value = far > result->value ? far : result->value;
        if (length < sizeof result->note)
            length +=
                (size_t)snprintf(result->note + length, sizeof result->note - length, "%s%s %.0f",
                                 i ? ", " : "beyond the limit's granules: ", fillings[i].name, off);
    }
}
