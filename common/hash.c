/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: neither the C library nor libuv has a hash with a key. SipHash would do as well; it
 * is no shorter, and it is a conjecture where this is a proof. */
#include "common/hash.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PRIME ((UINT64_C(1) << 61) - 1)

enum { PIECE = 7 /* 56 bits: the largest number of whole bytes that stays below the prime */ };

int hash_key_make(struct hash_key *key)
{
    do {
        if (getentropy(key, sizeof *key) < 0)
            return -errno;
        key->point &= PRIME;
        key->factor &= PRIME;
        /* With a point of 0 or 1 the polynomial would be nearly constant, so collisions would be
         * easy to find. The prime is 0 modulo itself. */
    } while (key->point < 2 || key->point == PRIME || key->factor < 1 || key->factor == PRIME);
    return 0;
}

/* a * b + c modulo the prime; all below 2^61. */
static uint64_t multiply_add(uint64_t a, uint64_t b, uint64_t c)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b + c;
    /* 2^61 is 1 modulo the prime, so the part above it is added to the part below. */
    uint64_t sum = ((uint64_t)product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

uint64_t hash_add(const struct hash_key *key, uint64_t hash, uint64_t number)
{
    return multiply_add(hash, key->point, number);
}

uint64_t hash_add_bytes(const struct hash_key *key, uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t piece = 0;
    /* A copy of a constant size is one load. */
    for (; bytes >= PIECE; at += PIECE, bytes -= PIECE) {
        memcpy(&piece, at, PIECE);
        hash = multiply_add(hash, key->point, piece);
    }
    if (bytes) {
        piece = 0;
        memcpy(&piece, at, bytes);
        hash = multiply_add(hash, key->point, piece);
    }
    return hash;
}

uint64_t hash_end(const struct hash_key *key, uint64_t hash)
{
    return multiply_add(hash, key->factor, 0);
}
