// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Device functions: calls, recursion, pointers to functions, virtual functions, templates,
// parameters.
#include "corpus.h"

static __device__ __noinline__ u32 mix_words(u32 a, u32 b)
{
    a ^= b * 0x9e3779b9u;
    return (a << 7 | a >> 25) + b;
}

KERNEL function_call(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 r = mix_words(a[i], (u32)i);
    for (u32 k = 0; k < (r & 3); k++)
        r = mix_words(r, k);
    out[i] = r;
}
CORPUS(function_call, grid(2), block(64), out<u32>(128), in<u32>(128, bits(261)))

static __device__ __noinline__ double mixed_arguments(s8 a, u16 b, s64 c, float d, double e,
                                                      const u32 *f, bool g)
{
    return a + b * 2.0 + (double)(c >> 8) + d * 4.0 + e + f[1] + (g ? 0.5 : 0.25);
}
KERNEL function_many_arguments(double *out, const s64 *a, const u32 *b)
{
    int i = global_thread();
    out[i] = mixed_arguments((s8)a[i], (u16)(a[i] >> 16), a[i] >> 20, (float)(a[i] & 255),
                             i * 0.125, b + i, a[i] & 1);
}
CORPUS(function_many_arguments, grid(1), block(64), out<double>(64), in<s64>(64, bits(262)),
       in<u32>(65, range(0, 1e6, 263)))

static __device__ __noinline__ u32 fibonacci(u32 n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
KERNEL function_recursion(u32 *out)
{
    int i = global_thread();
    out[i] = fibonacci((u32)i % 13);
}
CORPUS(function_recursion, grid(1), block(64), out<u32>(64))

static __device__ __noinline__ u32 ackermann(u32 m, u32 n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL function_ackermann(u32 *out)
{
    u32 i = threadIdx.x;
    out[i] = ackermann(i % 3, i / 3 % 5);
}
CORPUS(function_ackermann, grid(1), block(32), out<u32>(32))

static __device__ __noinline__ bool is_odd(u32 n);
static __device__ __noinline__ bool is_even(u32 n)
{
    return n == 0 || is_odd(n - 1);
}
static __device__ __noinline__ bool is_odd(u32 n)
{
    return n != 0 && is_even(n - 1);
}
KERNEL function_mutual_recursion(u8 *out, const u8 *a)
{
    int i = global_thread();
    out[i] = is_even(a[i] & 15u) ? 1 : 2;
}
CORPUS(function_mutual_recursion, grid(1), block(64), out<u8>(64), in<u8>(64, bits(264)))

struct Range {
    s32 low, high;
    double weight;
};
static __device__ __noinline__ Range narrow(Range r, s32 by)
{
    r.low += by;
    r.high -= by * 2;
    r.weight /= by + 1;
    return r;
}
KERNEL function_structures(double *out, const s32 *a)
{
    int i = global_thread();
    Range r = {a[i], a[i] + 100, 1.0};
    for (s32 k = 0; k < (a[i] & 3); k++)
        r = narrow(r, k + 1);
    out[i] = r.low * 1000.0 + r.high + r.weight;
}
CORPUS(function_structures, grid(1), block(64), out<double>(64), in<s32>(64, range(0, 1000, 265)))

static __device__ __noinline__ void split(u32 v, u32 *high, u32 *low)
{
    *high = v >> 16;
    *low = v & 0xffff;
}
KERNEL function_out_pointers(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 h, l;
    split(a[i], &h, &l);
    u32 h2 = h, l2 = l;
    if (i & 1)
        split(h * l, &h2, &l2);
    out[i] = h + l * 3 + h2 * 5 + l2 * 7;
}
CORPUS(function_out_pointers, grid(1), block(64), out<u32>(64), in<u32>(64, bits(266)))

typedef u32 (*Operation)(u32, u32);
static __device__ u32 op_add(u32 a, u32 b)
{
    return a + b;
}
static __device__ u32 op_xor(u32 a, u32 b)
{
    return a ^ b;
}
static __device__ u32 op_rotate(u32 a, u32 b)
{
    return a << (b & 15) | a >> (31 - (b & 15));
}
static __device__ u32 op_product(u32 a, u32 b)
{
    return a * (b | 1);
}
__device__ Operation function_table[4] = {op_add, op_xor, op_rotate, op_product};

KERNEL function_pointers(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 r = a[i];
    for (int k = 0; k < 6; k++)
        r = function_table[(r >> k) & 3](r, (u32)(i + k));
    out[i] = r;
}
CORPUS(function_pointers, grid(2), block(64), out<u32>(128), in<u32>(128, bits(267)))

static __device__ __noinline__ u32 fold(const u32 *a, int n, Operation op)
{
    u32 r = a[0];
    for (int k = 1; k < n; k++)
        r = op(r, a[k]);
    return r;
}
KERNEL function_callback(u32 *out, const u32 *a)
{
    int i = global_thread();
    out[i] = fold(a + i, 8, i & 1 ? op_xor : op_product);
}
CORPUS(function_callback, grid(1), block(64), out<u32>(64), in<u32>(72, bits(268)))

struct Shape {
    __device__ virtual float area() const
    {
        return 0;
    }
    __device__ virtual int corners() const
    {
        return -1;
    }
};
struct Box : Shape {
    float w, h;
    __device__ Box(float a, float b) : w(a), h(b)
    {
    }
    __device__ float area() const override
    {
        return w * h;
    }
    __device__ int corners() const override
    {
        return 4;
    }
};
struct Ring : Shape {
    float r;
    __device__ explicit Ring(float a) : r(a)
    {
    }
    __device__ float area() const override
    {
        return r * r * 3;
    }
};
static __device__ __noinline__ float measure(const Shape *s)
{
    return s->area() + (float)s->corners();
}
KERNEL function_virtual(float *out, const float *a)
{
    int i = global_thread();
    Box box(a[i], a[i] + 1);
    Ring ring(a[i]);
    const Shape *s = i % 3 ? (const Shape *)&box : (const Shape *)&ring;
    out[i] = measure(s);
}
CORPUS(function_virtual, grid(1), block(64), out<float>(64), in<float>(64, range(0, 4, 269)))

static __device__ __noinline__ u32 warp_sum_of(u32 x)
{
    for (int d = 16; d; d >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}
static __device__ __noinline__ u32 block_sum_of(u32 x)
{
    __shared__ u32 part[4];
    x = warp_sum_of(x);
    if ((threadIdx.x & 31) == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    return part[0] + part[1] + part[2] + part[3];
}
KERNEL function_with_barrier(u32 *out, const u32 *a)
{
    int i = global_thread();
    out[i] = block_sum_of(a[i]) + a[i];
}
CORPUS(function_with_barrier, grid(2), block(128), out<u32>(256), in<u32>(256, bits(270)))

/* ---- templates ---- */
template <int N, class T> static __device__ T power(T x)
{
    if constexpr (N == 0)
        return 1;
    else
        return x * power<N - 1>(x);
}
KERNEL template_power(u64 *out, double *precise, const u32 *a)
{
    int i = global_thread();
    out[i] = power<5>((u64)a[i]) + power<3>(a[i]);
    precise[i] = power<7>(a[i] * 0x1p-32);
}
CORPUS(template_power, grid(1), block(64), out<u64>(64), out<double>(64), in<u32>(64, bits(271)))

template <class T, int WIDTH> __global__ void template_filter(T *out, const T *a, int n)
{
    int i = global_thread();
    T sum = 0;
    for (int k = 0; k < WIDTH; k++)
        sum += a[(i + k) % n] * (T)(k + 1);
    out[i] = sum / (T)WIDTH;
}
template __global__ void template_filter<float, 3>(float *, const float *, int);
template __global__ void template_filter<s64, 5>(s64 *, const s64 *, int);
CORPUS_AS(filter_float, "_Z15template_filterIfLi3EEvPT_PKS0_i", (template_filter<float, 3>),
          grid(1), block(64), out<float>(64), in<float>(64, range(-1, 1, 272)), value(64))
CORPUS_AS(filter_whole, "_Z15template_filterIxLi5EEvPT_PKS0_i", (template_filter<s64, 5>), grid(1),
          block(64), out<s64>(64), in<s64>(64, range(-1e15, 1e15, 273)), value(64))

template <class F> static __device__ float integrate(F f, float low, float high, int steps)
{
    float sum = 0, h = (high - low) / (float)steps;
    for (int k = 0; k < steps; k++)
        sum += f(low + ((float)k + 0.5f) * h);
    return sum * h;
}
struct Cubic {
    float a, b;
    __device__ float operator()(float x) const
    {
        return a * x * x * x + b;
    }
};
KERNEL template_functor(float *out, const float *a)
{
    int i = global_thread();
    float k = a[i];
    out[i * 2] = integrate(Cubic{k, 1.0f}, 0, 2, 50);
    out[i * 2 + 1] = integrate([k](float x) { return x * x - k; }, -1, 1, 40);
}
CORPUS(template_functor, grid(1), block(64), out<float>(128), in<float>(64, range(-1, 1, 274)))

/* ---- parameters ---- */
KERNEL parameter_widths(s64 *out, s8 a, u8 b, s16 c, u16 d, bool e, s32 f, u32 g, s64 h, float i,
                        double j)
{
    int t = (int)threadIdx.x;
    s64 v[10] = {a, b, c, d, e, f, g, h, (s64)(i * 16), (s64)(j * 1024)};
    u64 r = 0;
    for (int k = 0; k < 10; k++)
        r = r * 7 + (u64)v[(k + t) % 10];
    out[t] = (s64)r;
}
CORPUS(parameter_widths, grid(1), block(32), out<s64>(32), value((s8)-100), value((u8)200),
       value((s16)-30000), value((u16)60000), value(true), value(-2000000000), value(4000000000u),
       value(-9000000000000000000ll), value(-1.5f), value(3.0009765625))

struct Inner {
    u8 tag;
    float v[3];
};
struct Outer {
    s16 id;
    Inner part[2];
    double scale;
    const float *data;
    u32 *count;
};
KERNEL parameter_structure(double *out, Outer o)
{
    int i = global_thread();
    const Inner &p = o.part[i & 1];
    out[i] = (o.id + p.tag + p.v[i % 3]) * o.scale + o.data[i];
    atomicAdd(o.count, 1u);
}
CORPUS(parameter_structure, grid(1), block(64), out<double>(64),
       value(Outer{-7, {{1, {1.5f, 2.5f, 3.5f}}, {200, {-1, -2, -3}}}, 0.25, nullptr, nullptr})
           .at(offsetof(Outer, data), 1)
           .at(offsetof(Outer, count), 2),
       held<float>(64, range(-1, 1, 275)), held<u32>(1, zero()))

struct Small {
    u8 r, g, b;
};
struct Pair {
    float x;
    Small s;
};
KERNEL parameter_small_structures(s32 *out, Small a, Pair b, Small c, double d)
{
    int t = (int)threadIdx.x;
    out[t] = a.r + a.g * 2 + a.b * 3 + b.s.r * 5 + b.s.g * 7 + b.s.b * 11 + c.r * 13 + c.g * 17 +
             c.b * 19 + (s32)(b.x * 4) + (s32)(d * 8) + t;
}
CORPUS(parameter_small_structures, grid(1), block(32), out<s32>(32), value(Small{1, 2, 3}),
       value(Pair{2.25f, {4, 5, 6}}), value(Small{250, 251, 252}), value(9.5))

struct Large {
    u32 word[1000];
};
static Large large_value()
#ifdef __CUDACC__
    ;
#else
{
    Large l;
    for (u32 k = 0; k < 1000; k++)
        l.word[k] = k * 2654435761u;
    return l;
}
#endif
KERNEL parameter_large(u32 *out, Large l, u32 last)
{
    int i = global_thread();
    u32 r = last;
    for (int k = 0; k < 50; k++)
        r = r * 3 + l.word[(i * 31 + k * 17) % 1000];
    out[i] = r;
}
CORPUS(parameter_large, grid(1), block(64), out<u32>(64), value(large_value()), value(77u))

KERNEL parameter_modified(u32 *out, Large l, int n)
{
    /* A parameter is a variable of the thread's own. */
    for (int k = 0; k < n; k++)
        l.word[(k * 7 + (int)threadIdx.x) % 1000] += threadIdx.x;
    u32 r = 0;
    for (int k = 0; k < 1000; k += 9)
        r = r * 5 + l.word[k];
    out[threadIdx.x] = r;
}
CORPUS(parameter_modified, grid(1), block(32), out<u32>(32), value(large_value()), value(100))

KERNEL parameter_vectors(float *out, float4 a, int2 b, uchar4 c, double2 d)
{
    int t = (int)threadIdx.x;
    out[t] = a.x + a.y * 2 + a.z * 3 + a.w * 4 + (float)(b.x - b.y) +
             (float)(c.x + c.y + c.z + c.w) + (float)(d.x * d.y) + (float)t;
}
CORPUS(parameter_vectors, grid(1), block(32), out<float>(32), value(make_float4(1, 2, 3, 4)),
       value(make_int2(-5, 9)), value(make_uchar4(1, 2, 3, 250)), value(make_double2(0.5, 6.25)))

KERNEL parameter_none()
{
    if (threadIdx.x > 2000)
        __syncthreads();
}
CORPUS(parameter_none, grid(3), block(32))

/* ---- shapes of grids ---- */
KERNEL grid_three_dimensions(u32 *out)
{
    u32 x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    u32 w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
    out[(z * h + y) * w + x] = x | y << 8 | z << 16 | (blockIdx.x + blockIdx.y + blockIdx.z) << 24;
}
CORPUS(grid_three_dimensions, grid(3, 2, 4), block(5, 7, 2), out<u32>(15 * 14 * 8))

KERNEL grid_stride(float *out, const float *a, int n)
{
    for (int i = global_thread(); i < n; i += (int)(gridDim.x * blockDim.x))
        out[i] = a[i] * 2 + 1;
}
CORPUS(grid_stride, grid(3), block(96), out<float>(2000), in<float>(2000, range(-1, 1, 276)),
       value(2000))

KERNEL grid_single_thread(u32 *out)
{
    u32 r = 0;
    for (u32 k = 0; k < 100; k++)
        r = r * 31 + k;
    *out = r + blockDim.x * gridDim.x;
}
CORPUS(grid_single_thread, grid(1), block(1), out<u32>(1))

KERNEL grid_largest_block(u32 *out)
{
    __shared__ u32 sum;
    if (threadIdx.x + threadIdx.y == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, threadIdx.x * threadIdx.y);
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = sum + threadIdx.y;
}
CORPUS(grid_largest_block, grid(1), block(32, 32), out<u32>(1024))

KERNEL grid_many_blocks(u32 *out)
{
    if (threadIdx.x == 0)
        out[blockIdx.x] = blockIdx.x * 3;
}
CORPUS(grid_many_blocks, grid(3000), block(32), out<u32>(3000))
