/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * util: minimum and maximum, the struct around a member, and arithmetic that stops at the end of
 * its range instead of wrapping. Nothing here has state or allocates, so any thread may use it, and
 * the scheduler too.
 */
#ifndef GPUSHARE_COMMON_UTIL_H
#define GPUSHARE_COMMON_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define UTIL_JOIN_NOW(a, b) a##b
#define UTIL_JOIN(a, b)     UTIL_JOIN_NOW(a, b)

/* The names x and y differ at every use, so that the argument of one choice may be another
 * choice. */
#define UTIL_CHOOSE(a, comparison, b, x, y)                                                        \
    (__extension__({                                                                               \
        __auto_type x = (a);                                                                       \
        __auto_type y = (b);                                                                       \
        (void)(&x == &y); /* warns where the types differ */                                       \
        x comparison y ? x : y;                                                                    \
    }))

/*
 * The lesser and the greater of two values of the same type. Each argument is evaluated once.
 * Values of different types do not compile, so a comparison of int with uint32_t, or a uint64_t cut
 * to 32 bits, has to be written as a cast. Not usable in constant expressions. Not usable within
 * the braces of an initialiser either, because cppcheck misreads it there.
 */
#define min(a, b)                                                                                  \
    UTIL_CHOOSE(a, <, b, UTIL_JOIN(util_x_, __COUNTER__), UTIL_JOIN(util_y_, __COUNTER__))
#define max(a, b)                                                                                  \
    UTIL_CHOOSE(a, >, b, UTIL_JOIN(util_x_, __COUNTER__), UTIL_JOIN(util_y_, __COUNTER__))

/*
 * The struct `type` that contains the `member` to which the pointer points. The pointer has the
 * member's type (or void *) and is not NULL. For a pointer to const, write `const struct name` as
 * type.
 */
#define container_of(pointer, type, member)                                                        \
    ((type *)((const volatile char *)(1 ? (pointer) : (__typeof__(&((type *)0)->member))0) -       \
              offsetof(type, member)))

/* Returns a + b, or UINT64_MAX if that is less. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Returns a - b, or 0 if b is greater. */
static inline uint64_t saturating_sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Returns a * b, or UINT64_MAX if that is less. */
static inline uint64_t saturating_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns a, doubled so many times, or most if that is less: the wait after failures in a row. */
static inline uint64_t saturating_double(uint64_t a, uint32_t times, uint64_t most)
{
    if (times > 63)
        return a ? most : 0;
    return a > most >> times ? most : a << times;
}

#endif
