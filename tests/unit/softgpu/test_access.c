/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Where the lanes of a load or store go: exec_lanes against plain loops, in each instruction set
 * that this machine has, the values of each set against those of the first one, and kernels that
 * read and write at drawn places of each space, up to the last byte and beyond it.
 */
#include "tests/unit/softgpu/kernel.h"

#include <math.h>

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/exec_half.h"
#include "tests/support/seed.h"

enum { COUNT = 256, ROUNDS = 400 };

static unsigned seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* ---- exec_lanes ---- */

/* How a program's addresses lie: at one place, in a row, or anywhere; some by one lane only. */
static void draw_addresses(uint64_t *addresses, uint32_t bytes)
{
    uint32_t shape = draw(4);
    uint64_t first = 4096 + draw(4096);
    for (uint32_t i = 0; i < 32; i++)
        addresses[i] = shape == 0   ? first
                       : shape == 1 ? first + (uint64_t)i * bytes
                                    : 4096 + draw(4096);
    if (draw(3) == 0)
        addresses[draw(32)] = draw(2) ? UINT64_MAX - draw(64) : draw(9000);
}

static enum lanes_form form_of(const uint64_t *addresses, uint32_t mask, uint32_t bytes)
{
    uint64_t first = addresses[__builtin_ctz(mask)];
    bool same = true, row = mask == 0xffffffffu;
    for (uint32_t i = 0; i < 32; i++) {
        if (!(mask >> i & 1))
            continue;
        same = same && addresses[i] == first;
        row = row && addresses[i] == first + (uint64_t)i * bytes;
    }
    return same ? LANES_SAME : row ? LANES_ROW : LANES_ANY;
}

static void check_lanes(const struct exec_lanes *lanes)
{
    _Alignas(64) uint64_t addresses[32], host[32];
    for (int round = 0; round < 100000; round++) {
        uint32_t bytes = 1u << draw(6), mask = draw(2) ? 0xffffffffu : draw(1u << 24) << draw(9);
        uint64_t offset = draw(2) ? 0 : draw(256);
        struct lane_area area = {
            .start = 4096, .span = draw(2) ? 5000 : 4096 - bytes, .host = UINT64_C(0x7f0000001000)};
        mask |= 1u << draw(32);
        draw_addresses(addresses, bytes);
        assert_int_equal(lanes->form(addresses, mask, bytes), form_of(addresses, mask, bytes));
        bool inside = true;
        for (uint32_t i = 0; i < 32; i++) {
            uint64_t at = addresses[i] + offset;
            if (mask >> i & 1)
                inside = inside && at >= 4096 && at <= 4096 + area.span && at % bytes == 0;
        }
        assert_int_equal(lanes->locate(addresses, offset, mask, bytes, &area, host), inside);
        for (uint32_t i = 0; inside && i < 32; i++) {
            uint32_t lane = mask >> i & 1 ? i : (uint32_t)__builtin_ctz(mask);
            assert_int_equal(host[i], area.host + addresses[lane] + offset - 4096);
        }
    }
}

/* Calls check for each table that this machine can run. A machine that has what a table needs has
 * what the ones before it need. */
static void for_each_table(void (*check)(const struct exec_lanes *lanes))
{
    check(&exec_lanes_v1);
#ifdef __x86_64__
    if (exec_lanes_of() != &exec_lanes_v1)
        check(&exec_lanes_v3);
    if (exec_lanes_of() == &exec_lanes_v4)
        check(&exec_lanes_v4);
#endif
}

static void places_of_all_lanes_are_found_as_one_by_one(void **state)
{
    (void)state;
    for_each_table(check_lanes);
}

static void check_rows(const struct exec_lanes *lanes)
{
    static const uint32_t widths[] = {2, 4, 8};
    for (int round = 0; round < 10000; round++) {
        _Alignas(64) uint8_t row[256], result[256], blended[256], filled[256], bits[256];
        const uint32_t width = widths[draw(3)], mask = draw(1u << 24) << draw(9);
        for (size_t i = 0; i < sizeof row; i++) {
            row[i] = (uint8_t)draw(256);
            result[i] = (uint8_t)draw(256);
        }
        memcpy(blended, row, sizeof row);
        memcpy(filled, row, sizeof row);
        memcpy(bits, row, sizeof row);
        lanes->blend(blended, result, width, mask);
        lanes->fill(filled, result, width, mask);
        for (uint32_t i = 0; i < 32; i++) {
            const bool taken = mask >> i & 1;
            const size_t at = (size_t)i * width;
            assert_memory_equal(blended + at, taken ? result + at : row + at, width);
            assert_memory_equal(filled + at, taken ? result : row + at, width);
        }
        lanes->blend(bits, result, 0, mask); /* predicates */
        for (uint32_t i = 0; i < 32; i++)
            assert_int_equal(bits[i / 8] >> i % 8 & 1,
                             (mask >> i & 1 ? result : row)[i / 8] >> i % 8 & 1);
    }
}

static void rows_are_written_as_one_by_one(void **state)
{
    (void)state;
    for_each_table(check_rows);
}

#ifdef __x86_64__
/* Numbers that arithmetic treats apart are as frequent as any. */
static uint64_t draw_number(void)
{
    static const uint64_t apart[] = {0,
                                     1,
                                     0x80000000,
                                     0x7f800000,
                                     0x3f8000003f800000,
                                     UINT64_MAX,
                                     UINT64_C(1) << 63,
                                     0x7ff0000000000000};
    const uint64_t drawn =
        (uint64_t)draw(1u << 24) << 40 ^ (uint64_t)draw(1u << 24) << 20 ^ draw(1u << 24);
    return draw(4) ? drawn : apart[draw(sizeof apart / sizeof *apart)];
}

/* Instruction sets differ in which NaN of two an operation hands on, and whether it makes it quiet.
 * PTX does not say. */
static void forget_payloads(uint64_t numbers[32])
{
    for (int i = 0; i < 32; i++)
        if (isnan(bits_double(numbers[i])))
            numbers[i] = UINT64_MAX;
}

static void check_values(exec_value *const *table)
{
    static _Alignas(64) uint64_t rows[3][32];
    struct warp warp = {.base = {(uint8_t *)rows}};
    for (int round = 0; round < 200; round++) {
        struct op op = {.a = 0, .b = sizeof rows[0], .c = 2 * sizeof rows[0], .aux = draw(256)};
        for (size_t i = 0; i < 96; i++)
            rows[i / 32][i % 32] = draw_number();
        for (int id = VALUE_NONE + 1; id < VALUE_COUNT; id++) {
            _Alignas(64) uint64_t expected[32] = {0}, seen[32] = {0};
            exec_values_v1[id](&warp, &op, expected);
            table[id](&warp, &op, seen);
            if (id >= VALUE_add_f64 && id <= VALUE_ceil_f64) {
                forget_payloads(expected);
                forget_payloads(seen);
            }
            if (memcmp(seen, expected, sizeof seen) != 0)
                fail_msg("value %d of %s", id, table == exec_values_v3 ? "v3" : "v4");
        }
    }
}

static void tables_of_values_agree(void **state)
{
    (void)state;
    if (exec_lanes_of() != &exec_lanes_v1)
        check_values(exec_values_v3);
    if (exec_lanes_of() == &exec_lanes_v4)
        check_values(exec_values_v4);
}
#endif

/* ---- kernels ---- */

struct params {
    void *index, *out, *data;
};

static uint32_t where[64];
static _Alignas(16) uint8_t out[64 * 16];
/* Nothing else that kernels may read is behind it. */
static _Alignas(16) uint8_t guarded[COUNT * 16 + 64];
static uint8_t *const data = guarded;
enum { DATA_BYTES = COUNT * 16 };

/* Each thread reads element where[tid] of `space`, which it or its block has filled from the data,
 * and writes it to out[tid]. Threads whose index is ~0 take no part. */
static const char *const spaces[] = {"global", "shared", "generic", "local", "const"};

static void make_text(char *text, size_t size, const char *space, const char *kind,
                      const char *registers, const char *names, uint32_t bytes, const char *into)
{
    char *p = text, *end = text + size;
    bool generic = !strcmp(space, "generic"), local = !strcmp(space, "local"),
         shared = generic || !strcmp(space, "shared");
    p += snprintf(p, (size_t)(end - p),
                  PTX_HEAD
                  ".const .align 16 .b8 fixed[%d];\n"
                  ".visible .entry k(.param .u64 index, .param .u64 out, .param .u64 data)\n"
                  "{\n.reg .pred %%p<4>;\n.reg .b32 %%r<8>;\n.reg .b64 %%rd<16>;\n"
                  "%s\n.shared .align 16 .b8 own[%d];\n.local .align 16 .b8 mine[%d];\n"
                  "ld.param.u64 %%rd1, [index];\nld.param.u64 %%rd2, [out];\n"
                  "ld.param.u64 %%rd3, [data];\nmov.u32 %%r1, %%tid.x;\n",
                  COUNT * 16, registers, COUNT * 16, COUNT * 16);
    /* The first thread of the block copies all, or each thread, with its number in each word. */
    if (shared || local)
        p += snprintf(p, (size_t)(end - p),
                      "%s"
                      "mov.u64 %%rd4, %s;\nmov.u64 %%rd5, 0;\n"
                      "C:\nadd.u64 %%rd6, %%rd3, %%rd5;\nld.global.u64 %%rd7, [%%rd6];\n%s"
                      "add.u64 %%rd8, %%rd4, %%rd5;\nst.%s.u64 [%%rd8], %%rd7;\n"
                      "add.u64 %%rd5, %%rd5, 8;\nsetp.lt.u64 %%p1, %%rd5, %d;\n@%%p1 bra C;\nD:\n"
                      "bar.sync 0;\n",
                      shared ? "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra D;\n" : "",
                      shared ? "own" : "mine",
                      local ? "cvt.u64.u32 %rd9, %r1;\nxor.b64 %rd7, %rd7, %rd9;\n" : "",
                      shared ? "shared" : "local", COUNT * 16);
    p += snprintf(p, (size_t)(end - p),
                  "mul.wide.u32 %%rd9, %%r1, 4;\nadd.u64 %%rd9, %%rd9, %%rd1;\n"
                  "ld.global.u32 %%r2, [%%rd9];\nsetp.eq.u32 %%p2, %%r2, -1;\n@%%p2 bra E;\n"
                  "mul.wide.u32 %%rd10, %%r2, %u;\nmul.wide.u32 %%rd11, %%r1, 16;\n"
                  "add.u64 %%rd11, %%rd11, %%rd2;\n",
                  bytes);
    if (generic)
        p += snprintf(p, (size_t)(end - p), "cvta.shared.u64 %%rd4, own;\n");
    else if (shared || local)
        p += snprintf(p, (size_t)(end - p), "mov.u64 %%rd4, %s;\n", shared ? "own" : "mine");
    else
        p += snprintf(p, (size_t)(end - p), "mov.u64 %%rd4, %s;\n",
                      strcmp(space, "const") ? "%rd3" : "fixed");
    snprintf(p, (size_t)(end - p),
             "add.u64 %%rd12, %%rd4, %%rd10;\nld%s%s%s %s, [%%rd12];\n"
             "st.global%s [%%rd11], %s;\nE:\nret;\n}\n",
             generic ? "" : ".", generic ? "" : space, kind, names, into, names);
}

/* The type of the element that is read, that of its registers, and that of the result. */
static const struct {
    const char *kind, *registers, *names, *into;
    uint32_t bytes, written;
    bool is_signed;
} reads[] = {
    {".u8", ".reg .b32 %v<4>;", "%v0", ".u32", 1, 4, false},
    {".s8", ".reg .b32 %v<4>;", "%v0", ".u32", 1, 4, true},
    {".s16", ".reg .b64 %v<4>;", "%v0", ".u64", 2, 8, true},
    {".u16", ".reg .b16 %v<4>;", "%v0", ".u16", 2, 2, false},
    {".u32", ".reg .b32 %v<4>;", "%v0", ".u32", 4, 4, false},
    {".u64", ".reg .b64 %v<4>;", "%v0", ".u64", 8, 8, false},
    {".v2.u32", ".reg .b32 %v<4>;", "{%v0,%v1}", ".v2.u32", 8, 8, false},
    {".v4.u32", ".reg .b32 %v<4>;", "{%v0,%v1,%v2,%v3}", ".v4.u32", 16, 16, false},
    {".v2.u64", ".reg .b64 %v<4>;", "{%v0,%v1}", ".v2.u64", 16, 16, false},
};

enum { READS = sizeof reads / sizeof *reads, SPACES = sizeof spaces / sizeof *spaces };

static void draw_indices(uint32_t elements)
{
    uint32_t shape = draw(4), first = draw(elements - 31);
    for (uint32_t i = 0; i < 64; i++) {
        if (i % 32 == 0 && draw(4) == 0)
            first = elements - 32; /* up to the last byte */
        where[i] = shape == 0 ? first : shape == 1 ? first + i % 32 : draw(elements);
    }
    if (draw(2))
        for (uint32_t i = 0; i < 64; i++)
            where[i] = draw(3) ? where[i] : UINT32_MAX;
}

static enum block_state run(uint32_t read, uint32_t space, struct fault *fault)
{
    static char text[4096];
    make_text(text, sizeof text, spaces[space], reads[read].kind, reads[read].registers,
              reads[read].names, reads[read].bytes, reads[read].into);
    kernel_forget();
    kernel_allow(where, sizeof where, MEMORY_READ);
    kernel_allow(out, sizeof out, MEMORY_READ | MEMORY_WRITE);
    kernel_allow(data, DATA_BYTES, MEMORY_READ);
    struct params params = {where, out, data};
    struct module *m = kernel_module(text);
    memcpy(kernel_memory, data, DATA_BYTES);
    /* Constants may lie in the middle of what kernels may read. */
    kernel_ranges[kernel_range_count - 1].end += 64;
    struct kernel_launch launch = {.name = "k", .grid = 1, .threads = 64, .params = &params};
    enum block_state state = kernel_run(m, &launch, fault);
    module_destroy(m);
    kernel_free();
    return state;
}

/* The bytes of an element as one thread has them. */
static void get_element(uint32_t read, uint32_t space, uint32_t thread, uint8_t *bytes)
{
    size_t at = (size_t)where[thread] * reads[read].bytes;
    for (size_t i = 0; i < reads[read].bytes; i++) {
        bool numbered = !strcmp(spaces[space], "local") && (at + i) % 8 == 0;
        bytes[i] = (uint8_t)(data[at + i] ^ (numbered ? thread : 0));
    }
}

static void demand(uint32_t read, uint32_t space)
{
    for (uint32_t i = 0; i < 64; i++) {
        uint8_t expected[16] = {0};
        if (where[i] != UINT32_MAX) {
            uint8_t from[16] = {0};
            get_element(read, space, i, from);
            bool negative = reads[read].is_signed && from[reads[read].bytes - 1] & 0x80;
            memset(expected, negative ? 0xff : 0, reads[read].written);
            memcpy(expected, from, reads[read].bytes);
        }
        assert_memory_equal(out + (size_t)16 * i, expected, 16);
    }
}

static void each_space_is_read_at_drawn_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < DATA_BYTES; i++)
        data[i] = (uint8_t)draw(256);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t read = draw(READS), space = draw(SPACES);
        memset(out, 0, sizeof out);
        draw_indices(DATA_BYTES / reads[read].bytes);
        struct fault fault;
        assert_int_equal(run(read, space, &fault), BLOCK_DONE);
        demand(read, space);
    }
}

/* One thread of those that take part is one element beyond the end. */
static void the_thread_that_reads_beyond_a_space_is_named(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t read = draw(READS), space = draw(SPACES), culprit = draw(2) ? draw(64) : 31;
        uint32_t elements = DATA_BYTES / reads[read].bytes;
        draw_indices(elements);
        for (uint32_t i = 0; culprit % 32 == 31 && i < 32; i++)
            where[culprit - 31 + i] = elements - 31 + i; /* a row that ends beyond */
        where[culprit] = elements;
        struct fault fault;
        assert_int_equal(run(read, space, &fault), BLOCK_FAULTED);
        assert_int_equal(fault.kind, FAULT_ILLEGAL_ADDRESS);
        assert_int_equal(fault.thread[0], culprit);
    }
}

/* Each thread writes what it reads of out[tid] to an element of the data that is its own. */
static void make_writer(char *text, size_t size, uint32_t read)
{
    snprintf(text, size,
             PTX_HEAD ".visible .entry k(.param .u64 index, .param .u64 out, .param .u64 data)\n"
                      "{\n.reg .pred %%p<4>;\n.reg .b32 %%r<8>;\n.reg .b64 %%rd<16>;\n%s\n"
                      "ld.param.u64 %%rd1, [index];\nld.param.u64 %%rd2, [out];\n"
                      "ld.param.u64 %%rd3, [data];\nmov.u32 %%r1, %%tid.x;\n"
                      "mad.wide.u32 %%rd4, %%r1, 4, %%rd1;\nld.global.u32 %%r2, [%%rd4];\n"
                      "setp.eq.u32 %%p2, %%r2, -1;\n@%%p2 bra E;\n"
                      "mad.wide.u32 %%rd5, %%r1, 16, %%rd2;\nld.global%s %s, [%%rd5];\n"
                      "mad.wide.u32 %%rd6, %%r2, %u, %%rd3;\nst.global%s [%%rd6], %s;\n"
                      "E:\nret;\n}\n",
             reads[read].registers, reads[read].kind, reads[read].names, reads[read].bytes,
             reads[read].kind, reads[read].names);
}

/* No two threads have one element, but that it may be one thread alone that has any. */
static void draw_targets(uint32_t elements)
{
    uint32_t first = draw(4) ? draw(elements - 63) : elements - 64;
    for (uint32_t i = 0; i < 64; i++)
        where[i] = first + i;
    for (uint32_t i = draw(2) ? 63 : 0; i > 0; i--) {
        uint32_t k = draw(i + 1), other = where[k];
        where[k] = where[i];
        where[i] = other;
    }
    uint32_t leave = draw(3), alone = draw(64);
    for (uint32_t i = 0; i < 64; i++)
        if ((leave == 1 && draw(2)) || (leave == 2 && i != alone))
            where[i] = UINT32_MAX;
}

static void memory_is_written_at_drawn_places(void **state)
{
    (void)state;
    static char text[4096];
    static uint8_t expected[DATA_BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t read = draw(READS), bytes = reads[read].bytes;
        for (size_t i = 0; i < sizeof out; i++)
            out[i] = (uint8_t)draw(256);
        draw_targets(DATA_BYTES / bytes);
        memcpy(expected, data, sizeof expected);
        for (uint32_t i = 0; i < 64; i++)
            if (where[i] != UINT32_MAX)
                memcpy(expected + (size_t)where[i] * bytes, out + (size_t)16 * i, bytes);
        make_writer(text, sizeof text, read);
        kernel_forget();
        kernel_allow(where, sizeof where, MEMORY_READ);
        kernel_allow(out, sizeof out, MEMORY_READ);
        kernel_allow(data, DATA_BYTES, MEMORY_READ | MEMORY_WRITE);
        struct params params = {where, out, data};
        struct module *m = kernel_module(text);
        struct kernel_launch launch = {.name = "k", .grid = 1, .threads = 64, .params = &params};
        struct fault fault;
        assert_int_equal(kernel_run(m, &launch, &fault), BLOCK_DONE);
        module_destroy(m);
        kernel_free();
        assert_memory_equal(data, expected, DATA_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_all_lanes_are_found_as_one_by_one),
        cmocka_unit_test(rows_are_written_as_one_by_one),
#ifdef __x86_64__
        cmocka_unit_test(tables_of_values_agree),
#endif
        cmocka_unit_test(each_space_is_read_at_drawn_places),
        cmocka_unit_test(memory_is_written_at_drawn_places),
        cmocka_unit_test(the_thread_that_reads_beyond_a_space_is_named),
    };
    seed = seed_draw();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
