/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * The lesser, the greater, the struct around a member, and arithmetic that stops at the end of its
 * range instead of wrapping. No state and no memory: any thread, and the scheduler too, may use it.
 */
#ifndef GPUSHARE_COMMON_UTIL_H
#define GPUSHARE_COMMON_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define UTIL_JOIN_NOW(a, b) a##b
#define UTIL_JOIN(a, b)     UTIL_JOIN_NOW(a, b)

/* The names x and y are new at every use, so that one choice may be the argument of another. */
#define UTIL_CHOOSE(a, comparison, b, x, y)                                                        \
    (__extension__({                                                                               \
        __auto_type x = (a);                                                                       \
        __auto_type y = (b);                                                                       \
        (void)(&x == &y); /* warns where the types differ */                                       \
        x comparison y ? x : y;                                                                    \
    }))

/*
 * The lesser and the greater of two values of one type. Each argument is evaluated once. Values of
 * different types do not compile: a comparison of int and uint32_t, or a uint64_t cut to 32 bits,
 * has to be written down as a cast. Not for constant expressions; nor within the braces of an
 * initializer, where cppcheck loses its way.
 */
#define min(a, b)                                                                                  \
    UTIL_CHOOSE(a, <, b, UTIL_JOIN(util_x_, __COUNTER__), UTIL_JOIN(util_y_, __COUNTER__))
#define max(a, b)                                                                                  \
    UTIL_CHOOSE(a, >, b, UTIL_JOIN(util_x_, __COUNTER__), UTIL_JOIN(util_y_, __COUNTER__))

/*
 * The struct `type` whose `member` the pointer points to. The pointer has to be of the member's
 * type (or void *); not NULL. For a pointer to const, say `const struct name`.
 */
#define container_of(pointer, type, member)                                                        \
    ((type *)((const volatile char *)(1 ? (pointer) : (__typeof__(&((type *)0)->member))0) -       \
              offsetof(type, member)))

/* a + b, at most UINT64_MAX. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* a - b, at least 0. */
static inline uint64_t saturating_sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* a * b, at most UINT64_MAX. */
static inline uint64_t saturating_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
