/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* host_vector: CUDA's built-in vector types, with their alignments (CUDA C++ Programming Guide,
 * table of alignments). */
#ifndef GPUSHARE_TESTS_CORPUS_HOST_VECTOR_H
#define GPUSHARE_TESTS_CORPUS_HOST_VECTOR_H

#define CORPUS_VECTOR2(V, T, A)                                                                    \
    struct alignas(A) V {                                                                          \
        T x, y;                                                                                    \
    };                                                                                             \
    static inline V make_##V(T x, T y)                                                             \
    {                                                                                              \
        return V{x, y};                                                                            \
    }
#define CORPUS_VECTOR3(V, T)                                                                       \
    struct V {                                                                                     \
        T x, y, z;                                                                                 \
    };                                                                                             \
    static inline V make_##V(T x, T y, T z)                                                        \
    {                                                                                              \
        return V{x, y, z};                                                                         \
    }
#define CORPUS_VECTOR4(V, T, A)                                                                    \
    struct alignas(A) V {                                                                          \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    static inline V make_##V(T x, T y, T z, T w)                                                   \
    {                                                                                              \
        return V{x, y, z, w};                                                                      \
    }
CORPUS_VECTOR2(char2, signed char, 2)
CORPUS_VECTOR3(char3, signed char)
CORPUS_VECTOR4(char4, signed char, 4)
CORPUS_VECTOR2(uchar2, unsigned char, 2)
CORPUS_VECTOR3(uchar3, unsigned char)
CORPUS_VECTOR4(uchar4, unsigned char, 4)
CORPUS_VECTOR2(short2, short, 4)
CORPUS_VECTOR3(short3, short)
CORPUS_VECTOR4(short4, short, 8)
CORPUS_VECTOR2(ushort2, unsigned short, 4)
CORPUS_VECTOR3(ushort3, unsigned short)
CORPUS_VECTOR4(ushort4, unsigned short, 8)
CORPUS_VECTOR2(int2, int, 8)
CORPUS_VECTOR3(int3, int)
CORPUS_VECTOR4(int4, int, 16)
CORPUS_VECTOR2(uint2, unsigned, 8)
CORPUS_VECTOR4(uint4, unsigned, 16)
CORPUS_VECTOR2(float2, float, 8)
CORPUS_VECTOR3(float3, float)
CORPUS_VECTOR4(float4, float, 16)
CORPUS_VECTOR2(longlong2, long long, 16)
CORPUS_VECTOR3(longlong3, long long)
CORPUS_VECTOR4(longlong4, long long, 16)
CORPUS_VECTOR2(ulonglong2, unsigned long long, 16)
CORPUS_VECTOR3(ulonglong3, unsigned long long)
CORPUS_VECTOR4(ulonglong4, unsigned long long, 16)
CORPUS_VECTOR2(double2, double, 16)
CORPUS_VECTOR3(double3, double)
CORPUS_VECTOR4(double4, double, 16)
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z)
{
    return uint3{x, y, z};
}

#endif
