/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "describe.h"

static std::vector<corpus_kernel> &table()
{
    /* Never destroyed: what it points to stays reachable until the process is gone. */
    static auto *kernels = new std::vector<corpus_kernel>;
    return *kernels;
}

void corpus::bad_description(const char *kernel, const char *what)
{
    fprintf(stderr, "corpus: the description of %s has %s\n", kernel, what);
    abort();
}

void corpus::add_kernel(const corpus_kernel &kernel)
{
    table().push_back(kernel);
}

extern "C" __attribute__((visibility("default"))) const corpus_kernel *corpus_kernels(size_t *count)
{
    auto &kernels = table();
    std::sort(kernels.begin(), kernels.end(), [](const corpus_kernel &a, const corpus_kernel &b) {
        int order = strcmp(a.module, b.module);
        return order ? order < 0 : strcmp(a.name, b.name) < 0;
    });
    *count = kernels.size();
    return kernels.data();
}

extern "C" __attribute__((visibility("default"))) const corpus_kernel *corpus_find(const char *name)
{
    for (const corpus_kernel &kernel : table())
        if (strcmp(kernel.name, name) == 0)
            return &kernel;
    return nullptr;
}

static size_t element_bytes(corpus_type type)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    return bytes[type];
}

extern "C" __attribute__((visibility("default"))) size_t
corpus_buffer_bytes(const corpus_buffer *buffer)
{
    return buffer->count * element_bytes(buffer->type);
}

/* Steele, Lea and Flood's SplitMix64: its whole state is a counter. */
static uint64_t mix(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static const uint32_t corner_f32[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
    0x7f7fffff, 0xff7fffff, 0x00800000, 0x80800000, 0x007fffff, 0x807fffff, 0x00000001, 0x80000001,
    0x3f000000, 0xbf000000, 0x3fc00000, 0xbfc00000, 0x40200000, 0xc0200000, 0x3effffff, 0x3f000001,
    0x4b000000, 0x4b7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000,
    0x5f000000, 0xdf000000, 0x5f7fffff, 0x5f800000, 0x33800000, 0x34000000, 0x40490fdb, 0x42fe0000,
};
static const uint64_t corner_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
    0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001,
    0x7fefffffffffffff, 0xffefffffffffffff, 0x0010000000000000, 0x8010000000000000,
    0x000fffffffffffff, 0x0000000000000001, 0x8000000000000001, 0x3fe0000000000000,
    0xbfe0000000000000, 0x3ff8000000000000, 0x4004000000000000, 0xc004000000000000,
    0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0xc1e0000000200000,
    0x41efffffffe00000, 0x41f0000000000000, 0x43e0000000000000, 0xc3e0000000000000,
    0x43f0000000000000, 0x47efffffe0000000, 0x47effffff0000000, 0x380fffffffffffff,
    0x36a0000000000000, 0x3690000000000000, 0x3fdfffffffffffff,
};

/* Whole numbers at the edges of every width. */
static uint64_t corner_integer(size_t i)
{
    static const uint8_t width[] = {8, 16, 32, 64};
    uint64_t top = 1ull << (width[(i / 5) % 4] - 1);
    switch (i % 5) {
    case 0:
        return i < 20 ? 0 : i;
    case 1:
        return top;
    case 2:
        return top - 1;
    case 3:
        return top | (top - 1);
    default:
        return i < 20 ? 1 : ~(uint64_t)i;
    }
}

static void fill_one(const corpus_buffer *b, uint8_t *at, size_t i)
{
    size_t bytes = element_bytes(b->type);
    uint64_t word = mix(b->seed, i);
    if (b->fill == CORPUS_FILL_SPECIAL && b->type == CORPUS_F32 &&
        i % 128 < std::size(corner_f32)) {
        /* The seed turns the list, so that two buffers meet in every pair over time. */
        word = corner_f32[(i + b->seed * (1 + i / 128)) % std::size(corner_f32)];
    } else if (b->fill == CORPUS_FILL_SPECIAL && b->type == CORPUS_F64 &&
               i % 128 < std::size(corner_f64)) {
        word = corner_f64[(i + b->seed * (1 + i / 128)) % std::size(corner_f64)];
    } else if (b->fill == CORPUS_FILL_SPECIAL && b->type < CORPUS_F32 && i % 64 < 40) {
        word = corner_integer((i + b->seed * (1 + i / 64)) % 40);
    } else if (b->fill == CORPUS_FILL_RANGE) {
        double unit = (double)(word >> 11) * 0x1p-53, x = b->low + (b->high - b->low) * unit;
        float f = (float)x;
        if (b->type == CORPUS_F32)
            memcpy(&word, &f, sizeof f);
        else if (b->type == CORPUS_F64)
            memcpy(&word, &x, sizeof x);
        else
            word = (uint64_t)(int64_t)floor(b->low + (b->high - b->low + 1) * unit);
    } else if (b->fill == CORPUS_FILL_IOTA) {
        float f = (float)i;
        double d = (double)i;
        word = i;
        if (b->type == CORPUS_F32)
            memcpy(&word, &f, sizeof f);
        else if (b->type == CORPUS_F64)
            memcpy(&word, &d, sizeof d);
    }
    memcpy(at, &word, bytes);
}

extern "C" __attribute__((visibility("default"))) void corpus_fill(const corpus_buffer *buffer,
                                                                   void *data)
{
    size_t bytes = corpus_buffer_bytes(buffer);
    switch (buffer->fill) {
    case CORPUS_FILL_STALE:
        memset(data, 0xa5, bytes);
        return;
    case CORPUS_FILL_ZERO:
        memset(data, 0, bytes);
        return;
    case CORPUS_FILL_CALL:
        memset(data, 0, bytes);
        buffer->fill_with(data, buffer->count);
        return;
    default:
        for (size_t i = 0; i < buffer->count; i++)
            fill_one(buffer, (uint8_t *)data + i * element_bytes(buffer->type), i);
    }
}

/* Floating-point numbers in order as integers, so that neighbours differ by one. */
static int64_t rank_f32(uint32_t bits)
{
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffff) : (int64_t)bits;
}

static double ulps_apart(corpus_type type, const void *a, const void *b)
{
    if (type == CORPUS_F32) {
        uint32_t x, y;
        memcpy(&x, a, 4), memcpy(&y, b, 4);
        return fabs((double)(rank_f32(x) - rank_f32(y)));
    }
    uint64_t x, y, mask = ~0ull >> 1;
    memcpy(&x, a, 8), memcpy(&y, b, 8);
    if ((x >> 63) != (y >> 63))
        return (double)(x & mask) + (double)(y & mask);
    return x > y ? (double)(x - y) : (double)(y - x);
}

static double as_double(corpus_type type, const void *at)
{
    uint64_t word = 0;
    memcpy(&word, at, element_bytes(type));
    float f;
    double d;
    switch (type) {
    case CORPUS_F32:
        memcpy(&f, at, 4);
        return f;
    case CORPUS_F64:
        memcpy(&d, at, 8);
        return d;
    case CORPUS_S8:
        return (int8_t)word;
    case CORPUS_S16:
        return (int16_t)word;
    case CORPUS_S32:
        return (int32_t)word;
    case CORPUS_S64:
        return (double)(int64_t)word;
    default:
        return (double)word;
    }
}

static bool alike(const corpus_buffer *b, const uint8_t *got, const uint8_t *expected)
{
    size_t bytes = element_bytes(b->type);
    if (memcmp(got, expected, bytes) == 0)
        return true;
    if (b->type < CORPUS_F32)
        return false;
    double g = as_double(b->type, got), e = as_double(b->type, expected);
    if (std::isnan(g) || std::isnan(e))
        return std::isnan(g) && std::isnan(e);
    switch (b->compare) {
    case CORPUS_ULP:
        return ulps_apart(b->type, got, expected) <= b->tolerance;
    case CORPUS_ABSOLUTE:
        return fabs(g - e) <= b->tolerance || ulps_apart(b->type, got, expected) <= b->ulp;
    default:
        return false;
    }
}

static std::vector<uint64_t> sorted_words(const corpus_buffer *b, const void *data)
{
    size_t bytes = element_bytes(b->type);
    std::vector<uint64_t> words(b->count, 0);
    for (size_t i = 0; i < b->count; i++)
        memcpy(&words[i], (const uint8_t *)data + i * bytes, bytes);
    std::sort(words.begin(), words.end());
    return words;
}

extern "C" __attribute__((visibility("default"))) int corpus_compare(const corpus_buffer *b,
                                                                     const void *got,
                                                                     const void *expected,
                                                                     char *why, size_t why_size)
{
    if (b->compare == CORPUS_PROPERTY)
        return b->property(got, b->count, why, why_size) == 0 ? 0 : -1;
    if (b->compare == CORPUS_SORTED) {
        if (sorted_words(b, got) == sorted_words(b, expected))
            return 0;
        snprintf(why, why_size, "not a permutation of the expected elements");
        return -1;
    }
    size_t bytes = element_bytes(b->type), wrong = 0, first = 0;
    for (size_t i = 0; i < b->count; i++)
        if (!alike(b, (const uint8_t *)got + i * bytes, (const uint8_t *)expected + i * bytes)) {
            if (!wrong)
                first = i;
            wrong++;
        }
    if (!wrong)
        return 0;
    const uint8_t *g = (const uint8_t *)got + first * bytes,
                  *e = (const uint8_t *)expected + first * bytes;
    uint64_t gw = 0, ew = 0;
    memcpy(&gw, g, bytes), memcpy(&ew, e, bytes);
    snprintf(why, why_size,
             "%zu of %zu differ, first [%zu]: got 0x%llx (%.17g), expected 0x%llx (%.17g)", wrong,
             b->count, first, (unsigned long long)gw, as_double(b->type, g), (unsigned long long)ew,
             as_double(b->type, e));
    return -1;
}
