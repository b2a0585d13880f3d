/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* describe: the words in which a .cu of the corpus describes its kernels (host only). */
#ifndef GPUSHARE_TESTS_CORPUS_DESCRIBE_H
#define GPUSHARE_TESTS_CORPUS_DESCRIBE_H

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "oracle.h"

namespace corpus
{

template <class T> constexpr corpus_type type_of()
{
    if constexpr (std::is_same_v<T, float>)
        return CORPUS_F32;
    else if constexpr (std::is_same_v<T, double>)
        return CORPUS_F64;
    else if constexpr (sizeof(T) == 1)
        return std::is_signed_v<T> ? CORPUS_S8 : CORPUS_U8;
    else if constexpr (sizeof(T) == 2)
        return std::is_signed_v<T> ? CORPUS_S16 : CORPUS_U16;
    else if constexpr (sizeof(T) == 4)
        return std::is_signed_v<T> ? CORPUS_S32 : CORPUS_U32;
    else
        return std::is_signed_v<T> ? CORPUS_S64 : CORPUS_U64;
}

/* How a buffer is filled. */
struct Fill {
    corpus_pattern kind;
    uint64_t seed = 0;
    double low = 0, high = 0;
    void (*with)(void *, size_t) = nullptr;
};
inline Fill bits(uint64_t seed)
{
    return {CORPUS_FILL_BITS, seed};
}
inline Fill special(uint64_t seed)
{
    return {CORPUS_FILL_SPECIAL, seed};
}
inline Fill range(double low, double high, uint64_t seed)
{
    return {CORPUS_FILL_RANGE, seed, low, high};
}
inline Fill zero()
{
    return {CORPUS_FILL_ZERO};
}
inline Fill iota()
{
    return {CORPUS_FILL_IOTA};
}
inline Fill stale()
{
    return {CORPUS_FILL_STALE};
}
inline Fill call(void (*with)(void *, size_t))
{
    return {CORPUS_FILL_CALL, 0, 0, 0, with};
}

/* A buffer, passed by address unless it is a symbol or held. */
struct Buffer {
    corpus_buffer b = {};
    bool passed = true;
    Buffer ulp(double tolerance)
    {
        b.compare = CORPUS_ULP, b.tolerance = tolerance;
        return *this;
    }
    Buffer within(double tolerance, double ulp = 0)
    {
        b.compare = CORPUS_ABSOLUTE, b.tolerance = tolerance, b.ulp = ulp;
        return *this;
    }
    Buffer sorted()
    {
        b.compare = CORPUS_SORTED;
        return *this;
    }
    Buffer property(int (*judge)(const void *, size_t, char *, size_t))
    {
        b.compare = CORPUS_PROPERTY, b.property = judge;
        return *this;
    }
};

template <class T> Buffer in(size_t count, Fill fill)
{
    Buffer r;
    r.b.type = type_of<T>();
    r.b.count = count;
    r.b.fill = fill.kind, r.b.seed = fill.seed, r.b.low = fill.low, r.b.high = fill.high;
    r.b.fill_with = fill.with;
    r.b.compare = CORPUS_EXACT;
    return r;
}
template <class T> Buffer out(size_t count)
{
    return in<T>(count, stale());
}
/* A buffer that no parameter names: values point to it, see Value::at. */
template <class T> Buffer held(size_t count, Fill fill)
{
    Buffer r = in<T>(count, fill);
    r.passed = false;
    return r;
}
/* A module variable of the same name in both worlds. */
template <class T> Buffer symbol_named(const char *name, void *host, size_t count, Fill fill)
{
    Buffer r = held<T>(count, fill);
    r.b.symbol = name, r.b.symbol_host = host;
    return r;
}
#define symbol(T, variable, count, fill) symbol_named<T>(#variable, (void *)&variable, count, fill)

/* A parameter passed by value. at: put the address of the index-th buffer inside it. */
struct Value {
    size_t bytes;
    const void *data;
    const std::type_info *type;
    int pointers = 0;
    struct {
        size_t offset;
        int buffer;
    } pointer[CORPUS_MAX_POINTERS] = {};
    Value at(size_t offset, int buffer)
    {
        pointer[pointers].offset = offset, pointer[pointers].buffer = buffer;
        pointers++;
        return *this;
    }
};
template <class T> Value value(T v)
{
    return {sizeof(T), new T(v), &typeid(T)};
}

struct Grid {
    uint32_t v[3];
};
struct Block {
    uint32_t v[3];
};
struct Shared {
    uint32_t v;
};
struct Launches {
    uint32_t v;
};
inline Grid grid(uint32_t x, uint32_t y = 1, uint32_t z = 1)
{
    return {{x, y, z}};
}
inline Block block(uint32_t x, uint32_t y = 1, uint32_t z = 1)
{
    return {{x, y, z}};
}
inline Shared shared(uint32_t bytes)
{
    return {bytes};
}
inline Launches launches(uint32_t n)
{
    return {n};
}

[[noreturn]] void bad_description(const char *kernel, const char *what);
void add_kernel(const corpus_kernel &kernel);

/* Calls a kernel with parameters given as CUDA's launch takes them. */
template <auto F> struct thunk;
template <class... A, void (*F)(A...)> struct thunk<F> {
    static constexpr int count = sizeof...(A);
    static inline const std::type_info *const types[] = {&typeid(A)..., nullptr};
    static inline const size_t sizes[] = {sizeof(A)..., 0};
    template <size_t... I> static void spread(void *const *p, std::index_sequence<I...>)
    {
        F(*(std::remove_const_t<A> *)p[I]...);
        (void)p;
    }
    static void call(void *const *p)
    {
        spread(p, std::index_sequence_for<A...>());
    }
};

inline void apply(corpus_kernel &k, const std::type_info *const *, const Grid &g)
{
    memcpy(k.grid, g.v, sizeof g.v);
}
inline void apply(corpus_kernel &k, const std::type_info *const *, const Block &b)
{
    memcpy(k.block, b.v, sizeof b.v);
}
inline void apply(corpus_kernel &k, const std::type_info *const *, const Shared &s)
{
    k.dynamic_shared = s.v;
}
inline void apply(corpus_kernel &k, const std::type_info *const *, const Launches &n)
{
    k.launches = n.v;
}
inline void apply(corpus_kernel &k, const std::type_info *const *, const Buffer &b)
{
    if (k.buffers == CORPUS_MAX_BUFFERS || k.params == CORPUS_MAX_PARAMS)
        bad_description(k.name, "too many buffers or parameters");
    if (b.passed) {
        k.param[k.params].buffer = k.buffers;
        k.param[k.params].bytes = sizeof(void *);
        k.params++;
    }
    k.buffer[k.buffers++] = b.b;
}
inline void apply(corpus_kernel &k, const std::type_info *const *types, const Value &v)
{
    if (k.params == CORPUS_MAX_PARAMS || !types[k.params] || *types[k.params] != *v.type)
        bad_description(k.name, "a value of another type than its parameter");
    corpus_param &p = k.param[k.params++];
    p.buffer = -1, p.bytes = v.bytes, p.value = v.data, p.pointers = v.pointers;
    memcpy(p.pointer, v.pointer, sizeof p.pointer);
}

template <auto F, class... Items>
bool describe(const char *module, uint32_t arch, const char *name, const Items &...items)
{
    corpus_kernel k = {};
    k.module = module, k.name = name, k.arch = arch;
    k.grid[0] = k.grid[1] = k.grid[2] = k.block[0] = k.block[1] = k.block[2] = k.launches = 1;
    k.call = thunk<F>::call;
    (apply(k, thunk<F>::types, items), ...);
    if (k.params != thunk<F>::count)
        bad_description(name, "another number of parameters than the kernel has");
    for (int i = 0; i < k.params; i++)
        if (k.param[i].bytes != thunk<F>::sizes[i])
            bad_description(name, "a parameter of another size");
    add_kernel(k);
    return true;
}

} // namespace corpus

#define CORPUS(kernel, ...) CORPUS_AS(kernel, #kernel, kernel, __VA_ARGS__)
/* For a kernel whose PTX name (a mangled one) differs: id is any unique word. */
#define CORPUS_AS(id, name, kernel, ...)                                                           \
    static const bool described_##id [[maybe_unused]] = [] {                                       \
        using namespace corpus;                                                                    \
        return describe<(kernel)>(CORPUS_MODULE, CORPUS_ARCH, name, __VA_ARGS__);                  \
    }();

#endif
