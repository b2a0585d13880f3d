/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: neither the C library nor libuv has a hash with a key. SipHash would do as well; it
 * is no shorter, and it is a conjecture where this is a proof. */
#include "common/hash.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PRIME ((UINT64_C(1) << 61) - 1)

enum {
    PIECE = 7, /* 56 bits: the largest number of whole bytes that stays below the prime */
    LANES = 4,
};

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

/* The bytes before the last few, by Horner's rule. Each step needs the one before, so a processor
 * would wait for each multiplication. Pieces i, i + 4, i + 8 and so on are the coefficients of a
 * polynomial in the fourth power of the point; four of them, side by side, give the same hash about
 * three times as fast. */
static uint64_t add_lanes(const struct hash_key *key, uint64_t hash, const unsigned char *at,
                          size_t rounds)
{
    uint64_t square = multiply_add(key->point, key->point, 0);
    uint64_t fourth = multiply_add(square, square, 0);
    uint64_t lanes[LANES] = {[LANES - 1] = hash};
    for (; rounds; rounds--, at += LANES * PIECE)
        for (unsigned i = 0; i < LANES; i++) {
            uint64_t piece = 0;
            memcpy(&piece, at + i * PIECE, PIECE);
            lanes[i] = multiply_add(lanes[i], fourth, piece);
        }
    hash = lanes[0];
    for (unsigned i = 1; i < LANES; i++)
        hash = multiply_add(hash, key->point, lanes[i]);
    return hash;
}

uint64_t hash_add_bytes(const struct hash_key *key, uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t piece = 0;
    size_t rounds = bytes / (LANES * PIECE);
    /* The powers of the point cost as much as two pieces. */
    if (rounds > 1) {
        hash = add_lanes(key, hash, at, rounds);
        at += rounds * LANES * PIECE;
        bytes -= rounds * LANES * PIECE;
    }
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
