/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * hash: numbers for names that clients choose. No client can make two names collide on purpose.
 *
 * The hash is a polynomial over the field of 2^61 - 1 elements, evaluated at a random point. Two
 * different sequences of n pieces of 7 bytes, chosen without knowledge of the key, collide with a
 * probability of n / 2^61 at most. This is proven, on one condition: clients that choose names
 * never see hashes. It is no cryptographic digest.
 *
 * Any thread.
 */
#ifndef GPUSHARE_COMMON_HASH_H
#define GPUSHARE_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
    uint64_t point, factor;
};

/* Makes a random key. Returns 0 or -errno (of getentropy). */
int hash_key_make(struct hash_key *key);

/* A hash begins with HASH_BEGIN, takes any count of numbers (each below 2^61) and bytes, and
 * ends with hash_end(). A caller that compares sequences of different lengths adds the length
 * first. The same bytes give the same hash only if they are added in the same steps. */
enum { HASH_BEGIN = 1 };
uint64_t hash_add(const struct hash_key *key, uint64_t hash, uint64_t number);
uint64_t hash_add_bytes(const struct hash_key *key, uint64_t hash, const void *data, size_t bytes);
/* Ends a hash. The result is below 2^61; its low bits may serve as the index of a table. */
uint64_t hash_end(const struct hash_key *key, uint64_t hash);

#endif
