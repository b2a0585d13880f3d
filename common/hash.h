/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * hash: numbers for what clients name, which no client can make collide.
 *
 * A polynomial over the field of 2^61 - 1 elements, taken at a random point: of any
 * two different sequences of n pieces (7 bytes each), chosen without knowing the key,
 * the chance to collide is n / 2^61. That is a proof, not a hope, as long as hashes
 * are never shown to those who choose the names. Not a cryptographic digest.
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

/* A random key. 0 or -errno. */
int hash_key_make(struct hash_key *key);

/* Begin with 1, add numbers (below 2^61) and bytes, end. A caller that compares sequences of
 * different lengths adds the length first; bytes in the same steps give the same hash. */
enum { HASH_BEGIN = 1 };
uint64_t hash_add(const struct hash_key *key, uint64_t hash, uint64_t number);
uint64_t hash_add_bytes(const struct hash_key *key, uint64_t hash, const void *data, size_t bytes);
/* Below 2^61; its low bits serve as a table's index. */
uint64_t hash_end(const struct hash_key *key, uint64_t hash);

#endif
