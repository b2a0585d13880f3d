// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Local arrays, constant memory, module variables, unions, vectors, volatile.
#include "corpus.h"

KERNEL local_array(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 box[16];
    for (int k = 0; k < 16; k++)
        box[k] = a[(i + k * 17) & 255];
    for (int k = 0; k < 64; k++) {
        u32 p = box[k & 15] & 15;
        box[p] += box[(p + 5) & 15] ^ (u32)k;
    }
    u32 r = 0;
    for (int k = 0; k < 16; k++)
        r = r * 31 + box[k];
    out[i] = r;
}
CORPUS(local_array, grid(2), block(128), out<u32>(256), in<u32>(256, bits(161)))

KERNEL local_bytes(u8 *out, const u8 *a)
{
    int i = global_thread();
    u8 seen[256];
    for (int k = 0; k < 256; k++)
        seen[k] = 0;
    for (int k = 0; k < 100; k++)
        seen[a[(i * 3 + k) & 1023]]++;
    u8 most = 0, at = 0;
    for (int k = 0; k < 256; k++)
        if (seen[k] > most) {
            most = seen[k];
            at = (u8)k;
        }
    out[i * 2] = most;
    out[i * 2 + 1] = at;
}
CORPUS(local_bytes, grid(1), block(96), out<u8>(192), in<u8>(1024, bits(162)))

KERNEL local_insertion_sort(s16 *out, const s16 *a)
{
    int i = global_thread();
    s16 v[24];
    for (int k = 0; k < 24; k++)
        v[k] = a[i * 24 + k];
    for (int k = 1; k < 24; k++) {
        s16 x = v[k];
        int j = k;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
    for (int k = 0; k < 24; k++)
        out[i * 24 + k] = v[k];
}
CORPUS(local_insertion_sort, grid(2), block(32), out<s16>(1536), in<s16>(1536, bits(163)))

KERNEL local_matrix(double *out, const double *a)
{
    int i = global_thread();
    double m[3][3], r[3][3];
    for (int x = 0; x < 3; x++)
        for (int y = 0; y < 3; y++)
            m[x][y] = a[i * 9 + x * 3 + y];
    int turn = i % 3; /* an index that only the run knows keeps the arrays in memory */
    for (int x = 0; x < 3; x++)
        for (int y = 0; y < 3; y++) {
            double s = 0;
            for (int z = 0; z < 3; z++)
                s += m[(x + turn) % 3][z] * m[z][(y + turn) % 3];
            r[x][y] = s;
        }
    for (int k = 0; k < 9; k++)
        out[i * 9 + k] = r[k / 3][k % 3];
}
CORPUS(local_matrix, grid(2), block(32), out<double>(576), in<double>(576, range(-1, 1, 164)))

KERNEL local_pointer(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 left[8], right[8];
    for (int k = 0; k < 8; k++) {
        left[k] = a[i] + (u32)k;
        right[k] = a[i] * (u32)k;
    }
    u32 *p = a[i] & 1 ? left : right, *end = p + 8;
    u32 r = 0;
    for (; p < end; p += (a[i] >> 4 & 1) + 1) {
        *p ^= (u32)i;
        r += *p;
    }
    for (int k = 0; k < 8; k++)
        r = r * 7 + left[(k + i) & 7] - right[(k * 3 + i) & 7];
    out[i] = r;
}
CORPUS(local_pointer, grid(2), block(64), out<u32>(128), in<u32>(128, bits(165)))

/* ---- constant memory ---- */
__constant__ s32 constant_table[16] = {3, -1, 4, 1, -5, 9, 2, 6, 5, -3, 5, 8, -9, 7, 9, 3};
__constant__ float constant_weights[64];
__constant__ u8 constant_bytes[7] = {1, 2, 3, 5, 7, 11, 13};
__constant__ struct {
    float scale;
    s16 shift;
    double bias;
} constant_struct = {1.5f, -3, 0.125};

KERNEL constant_initialised(s32 *out)
{
    int i = global_thread();
    s32 r = constant_table[i & 15];
    for (int k = 0; k < 16; k++)
        r += constant_table[k] * k;
    out[i] = r + constant_bytes[i % 7];
}
CORPUS(constant_initialised, grid(2), block(32), out<s32>(64))

KERNEL constant_from_host(float *out, const float *a)
{
    int i = global_thread();
    float r = 0;
    for (int k = 0; k < 64; k++)
        r += constant_weights[k] * a[(i + k) & 255];
    out[i] = r + constant_weights[i & 63];
}
CORPUS(constant_from_host, grid(2), block(128), out<float>(256), in<float>(256, range(-1, 1, 166)),
       symbol(float, constant_weights, 64, range(-1, 1, 167)))

KERNEL constant_structure(double *out)
{
    int i = global_thread();
    out[i] = constant_struct.scale * (float)(i + constant_struct.shift) + constant_struct.bias;
}
CORPUS(constant_structure, grid(1), block(32), out<double>(32))

/* ---- module variables ---- */
__device__ u32 variable_count = 41;
__device__ u64 variable_array[8] = {1, 1, 2, 3, 5, 8, 13, 21};
__device__ float variable_matrix[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
__device__ double variable_blank[64];
__device__ s8 variable_bytes[5] = {-1, 2, -3, 4, -5};
__device__ u64 *variable_pointer = variable_array + 3;
__device__ float *variable_rows[3] = {variable_matrix[2], variable_matrix[0], variable_matrix[1]};
struct Node {
    s32 value;
    const Node *next;
};
__device__ Node variable_node_last = {20, nullptr};
__device__ Node variable_node_pair[2] = {{40, &variable_node_last}, {50, nullptr}};
__device__ Node variable_node_first = {10, &variable_node_pair[0]};
__device__ const Node *variable_heads[4] = {&variable_node_first, &variable_node_pair[1], nullptr,
                                            &variable_node_pair[0]};
__device__ u32 variable_atomic;

KERNEL variable_read(u64 *out)
{
    int i = global_thread();
    out[i] = variable_array[i & 7] + variable_count + (u64)(s64)variable_bytes[i % 5] +
             (u64)variable_matrix[i % 3][i % 4];
}
CORPUS(variable_read, grid(1), block(64), out<u64>(64))

KERNEL variable_pointers(u64 *out)
{
    int i = global_thread();
    out[i * 2] = variable_pointer[i & 3];
    out[i * 2 + 1] = (u64)variable_rows[i % 3][i & 3];
}
CORPUS(variable_pointers, grid(1), block(32), out<u64>(64))

KERNEL variable_linked_list(s32 *out)
{
    int i = global_thread();
    s32 r = 0;
    for (const Node *n = variable_heads[i & 3]; n; n = n->next)
        r = r * 3 + n->value;
    out[i] = r;
}
CORPUS(variable_linked_list, grid(1), block(32), out<s32>(32))

KERNEL variable_write(const double *a)
{
    int i = global_thread();
    variable_blank[i] = a[i] * 2 + variable_blank[i];
}
CORPUS(variable_write, grid(2), block(32), in<double>(64, range(-1, 1, 168)),
       symbol(double, variable_blank, 64, range(0, 1, 169)), launches(3))

KERNEL variable_counter(u32 *out)
{
    u32 before = atomicAdd(&variable_atomic, 3u);
    atomicMax(out, before);
}
CORPUS(variable_counter, grid(4), block(64), in<u32>(1, zero()),
       symbol(u32, variable_atomic, 1, zero()), launches(2))

/* ---- vectors, unions, volatile, caches ---- */
KERNEL vector_float4(float4 *out, const float4 *a, const float2 *b)
{
    int i = global_thread();
    float4 x = a[i];
    float2 y = b[i];
    out[i] = make_float4(x.x + y.x, x.y * y.y, x.z - y.x, x.w / 3);
}
CORPUS(vector_float4, grid(2), block(64), out<float>(512), in<float>(512, range(-4, 4, 170)),
       in<float>(256, range(-4, 4, 171)))

KERNEL vector_bytes(uchar4 *out, const uchar4 *a, const ushort2 *b)
{
    int i = global_thread();
    uchar4 p = a[i];
    ushort2 q = b[i];
    unsigned grey = (p.x * 77u + p.y * 151u + p.z * 28u) >> 8;
    out[i] = make_uchar4((u8)grey, (u8)(255 - p.w), (u8)(q.x >> 8), (u8)(q.y ^ p.x));
}
CORPUS(vector_bytes, grid(2), block(128), out<u8>(1024), in<u8>(1024, bits(172)),
       in<u16>(512, bits(173)))

KERNEL vector_wide(double2 *out, longlong2 *whole, const double2 *a, const int4 *b)
{
    int i = global_thread();
    double2 x = a[i];
    int4 y = b[i];
    out[i] = make_double2(x.x * x.y, x.x - x.y);
    whole[i] = make_longlong2((s64)y.x * y.y, (s64)y.z - y.w);
}
CORPUS(vector_wide, grid(2), block(64), out<double>(256), out<s64>(256),
       in<double>(256, range(-1, 1, 174)), in<s32>(512, bits(175)))

KERNEL vector_three(float3 *out, const float3 *a, const uchar3 *b)
{
    int i = global_thread();
    float3 x = a[i];
    uchar3 y = b[i];
    out[i] = make_float3(x.y + y.x, x.z * y.y, x.x - y.z);
}
CORPUS(vector_three, grid(1), block(64), out<float>(192), in<float>(192, range(-1, 1, 176)),
       in<u8>(192, bits(177)))

union Pun {
    float f;
    u32 u;
    u8 b[4];
    s16 h[2];
};

KERNEL storage_union(u32 *out, const float *a)
{
    int i = global_thread();
    Pun p;
    p.f = a[i];
    u32 r = p.u;
    p.b[i & 3] ^= 0x80;
    r = r * 31 + p.u;
    p.h[i & 1] = (s16)(p.h[i & 1] + 5);
    out[i] = r * 31 + p.u;
}
CORPUS(storage_union, grid(2), block(64), out<u32>(128), in<float>(128, range(-1e3, 1e3, 178)))

KERNEL storage_volatile(volatile u32 *out, const volatile u32 *a)
{
    int i = global_thread();
    out[i] = a[i];
    out[i] = out[i] + a[i];
    out[i] = out[i] ^ 0xffu;
}
CORPUS(storage_volatile, grid(2), block(64), out<u32>(128), in<u32>(128, bits(179)))

KERNEL storage_cached(u32 *out, const u32 *__restrict__ a)
{
    int i = global_thread();
    u32 r =
        __ldg(a + i) + __ldcg(a + (i ^ 1)) * 3 + __ldca(a + (i ^ 2)) * 5 + __ldcs(a + (i ^ 4)) * 7;
    __stcg(out + i * 2, r);
    __stcs(out + i * 2 + 1, r + 1);
}
CORPUS(storage_cached, grid(2), block(64), out<u32>(256), in<u32>(128, bits(180)))

struct __align__(8) Packed
{
    u8 a;
    u16 b;
    u32 c;
};

KERNEL storage_structures(Packed *out, const Packed *in)
{
    int i = global_thread();
    Packed p = in[i];
    p.a = (u8)(p.a + 1);
    p.b = (u16)(p.b ^ p.a);
    p.c = p.c / (p.b | 1u);
    out[i].c = p.c;
    out[i].b = p.b;
    out[i].a = p.a;
}
CORPUS(storage_structures, grid(2), block(32), in<u8>(512, zero()), in<u8>(512, bits(181)))

/* One address for all spaces. */
static __device__ __noinline__ u32 generic_sum(const u32 *p, int n)
{
    u32 r = 0;
    for (int k = 0; k < n; k++)
        r = r * 3 + p[k];
    return r;
}
KERNEL storage_generic(u32 *out, const u32 *a)
{
    __shared__ u32 tile[64];
    u32 mine[4];
    int t = (int)threadIdx.x;
    tile[t] = a[t] + 1;
    for (int k = 0; k < 4; k++)
        mine[k] = (u32)(t * k);
    __syncthreads();
    u32 r = generic_sum(a + (t & 31), 8) ^ generic_sum(tile + (t & 31), 8);
    out[t] =
        r ^ generic_sum(t & 1 ? mine : tile + 3, 4) ^ generic_sum((const u32 *)constant_table, 16);
}
CORPUS(storage_generic, grid(1), block(64), out<u32>(64), in<u32>(64, bits(182)))
