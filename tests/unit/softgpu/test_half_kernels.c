/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Instructions on halves, against values that are compared in arithmetic with more bits. */
#include "tests/unit/softgpu/kernel.h"

#include <math.h>

enum { COUNT = 512, LANES = 32 };

struct format {
    int fraction, bias;
    uint16_t infinite;
    const char *name;
};
static const struct format formats[] = {{10, 15, 0x7c00, "f16"}, {7, 127, 0x7f80, "bf16"}};

/* The value of a pattern, from the format's definition; infinity as if its exponent had a number.
 */
static long double value_of(const struct format *format, uint16_t h)
{
    int exponent = (h & 0x7fff) >> format->fraction, mantissa = h & ((1 << format->fraction) - 1);
    long double m = ldexpl(mantissa, -format->fraction) + (exponent ? 1 : 0);
    long double x = ldexpl(m, (exponent ? exponent : 1) - format->bias);
    return h & 0x8000 ? -x : x;
}

/* The largest pattern that is not above a magnitude; below it and above it only one can be nearer.
 */
static uint16_t at_most(const struct format *format, long double magnitude)
{
    uint16_t low = 0, high = format->infinite;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (value_of(format, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* long double holds any 64-bit integer. */
static uint16_t expected(const struct format *format, long double x, bool nearest)
{
    long double magnitude = x < 0 ? -x : x;
    uint16_t below = at_most(format, magnitude), sign = x < 0 ? 0x8000 : 0;
    long double rest = magnitude - value_of(format, below);
    long double gap = value_of(format, (uint16_t)(below + 1)) - value_of(format, below);
    bool up = nearest && (rest > gap / 2 || (rest == gap / 2 && (below & 1)));
    return sign | (uint16_t)(below + up);
}

/* Around powers of two and ties, where one bit at the end decides. */
static uint64_t number_at(uint32_t i, uint64_t *random)
{
    static const uint64_t firsts[] = {0, 1, 65519, 65520, UINT64_C(1) << 53, UINT64_MAX};
    if (i < sizeof firsts / sizeof *firsts)
        return firsts[i];
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint64_t bits = *random >> 33, top = UINT64_C(1) << (bits & 63);
    uint64_t tie = top | top >> (8 + (bits >> 6 & 3)) | (bits >> 8 & 1 ? top >> 3 : 0);
    uint64_t x = tie + (bits >> 9) % 3 - 1;
    return bits >> 11 & 1 ? 0 - x : x;
}

static void run(const char *text, const char *name, const void *params)
{
    struct fault fault = {0};
    struct module *module = kernel_module(text);
    struct kernel_launch launch = {
        .name = name, .grid = COUNT / LANES, .threads = LANES, .params = params};
    assert_int_equal(kernel_run(module, &launch, &fault), BLOCK_DONE);
    module_destroy(module);
    kernel_free();
}

static void convert(const struct format *format, bool is_signed, bool nearest)
{
    static uint64_t in[COUNT];
    static uint16_t out[COUNT];
    const void *params[] = {in, out};
    uint64_t random = 7;
    char text[1024];
    snprintf(text, sizeof text,
             PTX_HEAD ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n\t.reg .b32 %%r<4>;\n"
                      "\t.reg .b64 %%d<6>;\n\t.reg .b16 %%h;\n\tmov.u32 %%r1, %%ctaid.x;\n"
                      "\tmov.u32 %%r2, %%tid.x;\n\tmad.lo.u32 %%r1, %%r1, 32, %%r2;\n"
                      "\tld.param.u64 %%d1, [in];\n\tld.param.u64 %%d2, [out];\n"
                      "\tmad.wide.u32 %%d1, %%r1, 8, %%d1;\n\tmad.wide.u32 %%d2, %%r1, 2, %%d2;\n"
                      "\tld.global.b64 %%d3, [%%d1];\n\tcvt.%s.%s.%s64 %%h, %%d3;\n"
                      "\tst.global.b16 [%%d2], %%h;\n\tret;\n}\n",
             nearest ? "rn" : "rz", format->name, is_signed ? "s" : "u");
    for (uint32_t i = 0; i < COUNT; i++)
        in[i] = number_at(i, &random);
    kernel_forget();
    kernel_allow(in, sizeof in, MEMORY_READ);
    kernel_allow(out, sizeof out, MEMORY_WRITE);
    run(text, "k", params);
    for (uint32_t i = 0; i < COUNT; i++) {
        long double x = is_signed ? (long double)(int64_t)in[i] : (long double)in[i];
        if (out[i] != expected(format, x, nearest))
            fail_msg("%s of %llu: %#x, not %#x", format->name, (unsigned long long)in[i], out[i],
                     expected(format, x, nearest));
    }
}

static void long_integers_are_rounded_once(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int is_signed = 0; is_signed < 2; is_signed++)
            for (int nearest = 0; nearest < 2; nearest++)
                convert(&formats[f], is_signed, nearest);
}

#define LOADS                                                                                      \
    "\tld.param.u64 %d1, [in];\n\tld.param.u64 %d2, [out];\n\tmov.u32 %r1, %ctaid.x;\n"            \
    "\tmov.u32 %r2, %tid.x;\n\tmad.lo.u32 %r1, %r1, 32, %r2;\n"                                    \
    "\tmad.wide.u32 %d1, %r1, 12, %d1;\n\tmad.wide.u32 %d2, %r1, 24, %d2;\n"                       \
    "\tld.global.b32 %a, [%d1];\n\tld.global.b32 %b, [%d1+4];\n\tld.global.b32 %c, [%d1+8];\n"     \
    "\tmov.b32 {%h1, %h4}, %a;\n\tmov.b32 {%h2, %h4}, %b;\n\tmov.b32 {%h3, %h4}, %c;\n"
#define ENTRY(name)                                                                                \
    ".visible .entry " name                                                                        \
    "(.param .u64 in, .param .u64 out)\n{\n\t.reg .b32 %r<4>, %a, %b, %c;\n"                       \
    "\t.reg .b64 %d<3>;\n\t.reg .b16 %h<5>;\n"
#define KERNEL(type)                                                                               \
    PTX_HEAD ENTRY("k") LOADS                                                                      \
        "\tfma.rn." type "x2 %r3, %a, %b, %c;\n\tst.global.b32 [%d2], %r3;\n"                      \
        "\tfma.rn.relu." type "x2 %r3, %a, %b, %c;\n\tst.global.b32 [%d2+4], %r3;\n"               \
        "\tfma.rn.relu." type " %h4, %h1, %h2, %h3;\n\tst.global.b16 [%d2+8], %h4;\n"              \
        "\tmax.NaN." type "x2 %r3, %a, %b;\n\tst.global.b32 [%d2+12], %r3;\n"                      \
        "\tmin.NaN." type "x2 %r3, %a, %b;\n\tst.global.b32 [%d2+16], %r3;\n"                      \
        "\tmin.NaN." type " %h4, %h1, %h2;\n\tst.global.b16 [%d2+20], %h4;\n\tret;\n}\n"

static bool is_nan(const struct format *format, uint16_t h)
{
    return (h & 0x7fff) > format->infinite;
}

static uint16_t at_zero(uint16_t h)
{
    return h & 0x8000 ? 0 : h;
}

static uint16_t extreme(const struct format *format, uint16_t a, uint16_t b, bool most)
{
    if (is_nan(format, a) || is_nan(format, b))
        return 0x7fff;
    long double x = value_of(format, a), y = value_of(format, b);
    bool negative = a & 0x8000;
    if (x == y)
        return negative == most ? b : a; /* of two zeros, +0 is the larger */
    return (x > y) == most ? a : b;
}

static void check_halves(const struct format *format, const char *text)
{
    static uint16_t in[COUNT][6], out[COUNT][12];
    const void *params[] = {in, out};
    uint64_t random = 9;
    for (uint32_t i = 0; i < COUNT; i++)
        for (int j = 0; j < 6; j++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            in[i][j] = (uint16_t)(random >> 40);
        }
    const uint16_t one = format->fraction == 10 ? 0x3c00 : 0x3f80,
                   two = one + (1 << format->fraction);
    const uint16_t known[4][3] = {
        {one, one | 0x8000, 0}, {two, two, one}, {0x7fff, one, one}, {0x8000, 0, 0x8000}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            in[i][2 * j] = in[i][2 * j + 1] = known[i][j];
    kernel_forget();
    kernel_allow(in, sizeof in, MEMORY_READ);
    kernel_allow(out, sizeof out, MEMORY_WRITE);
    run(text, "k", params);
    const uint16_t five = expected(format, 5, true), results[4] = {0, five, 0x7fff, 0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i][4], results[i]);
    for (uint32_t i = 0; i < COUNT; i++) {
        for (int h = 0; h < 2; h++) {
            assert_int_equal(out[i][2 + h], at_zero(out[i][h]));
            assert_int_equal(out[i][6 + h], extreme(format, in[i][h], in[i][2 + h], true));
            assert_int_equal(out[i][8 + h], extreme(format, in[i][h], in[i][2 + h], false));
        }
        assert_int_equal(out[i][4], out[i][2]);
        assert_int_equal(out[i][10], out[i][8]);
    }
}

static void sums_below_zero_become_zero_and_extremes_of_nan_are_nan(void **state)
{
    (void)state;
    check_halves(&formats[0], KERNEL("f16"));
    check_halves(&formats[1], KERNEL("bf16"));
}

struct bytes {
    const char *name;
    int fraction, bias;
    uint8_t most; /* the largest number */
};

/* The value of a pattern, from the format's definition. */
static long double value_of_byte(const struct bytes *format, uint8_t byte)
{
    const struct format wide = {format->fraction, format->bias, 0, NULL};
    return value_of(&wide, byte & 0x7f) * (byte & 0x80 ? -1 : 1);
}

/* The nearest of all numbers; of two that are as near, the even one. Beyond the largest: that one.
 */
static uint8_t nearest_byte(const struct bytes *format, long double x)
{
    uint8_t best = 0;
    if (isnan(x))
        return 0x7f;
    for (uint8_t i = 0; i <= format->most && !isinf(x); i++) {
        long double off = fabsl(value_of_byte(format, i) - fabsl(x));
        long double least = fabsl(value_of_byte(format, best) - fabsl(x));
        if (off < least || (off == least && !(i & 1)))
            best = i;
    }
    return (uint8_t)((isinf(x) ? format->most : best) | (signbit(x) ? 0x80 : 0));
}

/* in: two floats; out: their bytes, both as halves, and these as bytes. */
#define BYTES(type)                                                                                \
    PTX_HEAD ENTRY("k") "\tld.param.u64 %d1, [in];\n\tld.param.u64 %d2, [out];\n"                  \
                        "\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %tid.x;\n"                       \
                        "\tmad.lo.u32 %r1, %r1, 32, %r2;\n\tmad.wide.u32 %d1, %r1, 8, %d1;\n"      \
                        "\tmad.wide.u32 %d2, %r1, 8, %d2;\n\tld.global.b32 %a, [%d1];\n"           \
                        "\tld.global.b32 %b, [%d1+4];\n"                                           \
                        "\tcvt.rn.satfinite." type ".f32 %h1, %b, %a;\n"                           \
                        "\tst.global.b16 [%d2], %h1;\n\tcvt.rn.f16x2." type " %c, %h1;\n"          \
                        "\tst.global.b32 [%d2+4], %c;\n"                                           \
                        "\tcvt.rn.satfinite." type ".f16x2 %h2, %c;\n"                             \
                        "\tst.global.b16 [%d2+2], %h2;\n\tret;\n}\n"

static void check_bytes(const struct bytes *format, const char *text)
{
    static const float known[] = {0.0f,     -0.0f,     INFINITY,  -INFINITY, NAN,
                                  448.0f,   464.0f,    465.0f,    57344.0f,  61440.0f,
                                  0x1p-10f, -0x1p-17f, 0x1.8p-9f, 1.0625f};
    enum { KNOWN = sizeof known / sizeof *known };
    static float in[COUNT][2];
    static struct {
        uint8_t first[2], again[2];
        uint16_t halves[2];
    } out[COUNT];
    const void *params[] = {in, out};
    uint64_t random = 11;
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        float scaled = ldexpf((float)(random >> 52), (int)(random >> 40 & 31) - 24);
        in[i / 2][i % 2] = i < KNOWN ? known[i] : random >> 39 & 1 ? -scaled : scaled;
    }
    kernel_forget();
    kernel_allow(in, sizeof in, MEMORY_READ);
    kernel_allow(out, sizeof out, MEMORY_WRITE);
    run(text, "k", params);
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        float x = in[i / 2][i % 2];
        uint8_t byte = out[i / 2].first[i % 2];
        uint16_t half = out[i / 2].halves[i % 2];
        if (byte != nearest_byte(format, (long double)x))
            fail_msg("%s of %a: %#x, not %#x", format->name, (double)x, byte,
                     nearest_byte(format, (long double)x));
        assert_int_equal(out[i / 2].again[i % 2], byte);
        if (isnan(x))
            assert_int_equal(half, 0x7fff);
        else
            assert_true(value_of(&formats[0], half) == value_of_byte(format, byte) &&
                        half >> 15 == byte >> 7);
    }
}

static void numbers_of_eight_bits_are_the_nearest(void **state)
{
    (void)state;
    check_bytes(&(struct bytes){"e4m3", 3, 7, 0x7e}, BYTES("e4m3x2"));
    check_bytes(&(struct bytes){"e5m2", 2, 15, 0x7b}, BYTES("e5m2x2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_integers_are_rounded_once),
        cmocka_unit_test(sums_below_zero_become_zero_and_extremes_of_nan_are_nan),
        cmocka_unit_test(numbers_of_eight_bits_are_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
