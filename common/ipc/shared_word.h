/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * shared_word: accesses to words that processes share: flags, indices and bits in memory whose
 * layout is the protocol's. There a field is a plain number, so the compiler can't check how it is
 * accessed. A field that only threads of one process share is _Atomic instead, and the compiler
 * does check it.
 *
 * The order is sequential consistency wherever two sides shake hands, because each handshake is the
 * same: one side announces and then looks at the other's word, the other side does the reverse, and
 * at least one of them must see what the other announced. Acquire and release would let both look
 * too early. Where data only flows one way, shared_word_publish() and shared_word_read() are
 * enough.
 *
 * `word` is a pointer to a uint32_t or uint64_t, aligned; values have its type. The
 * software GPU's loads, stores and atomics use them for narrower words too.
 */
#ifndef GPUSHARE_COMMON_IPC_SHARED_WORD_H
#define GPUSHARE_COMMON_IPC_SHARED_WORD_H

#include <stdbool.h>
#include <stdint.h>

/* Loads the word. The load is ordered behind everything that this thread announced, and before
 * everything that it does next. */
#define shared_word_look(word) __atomic_load_n((word), __ATOMIC_SEQ_CST)

/* Loads a value that the word has or had, without any order. For decisions that
 * shared_word_look() checks again. */
#define shared_word_hint(word) __atomic_load_n((word), __ATOMIC_RELAXED)

/* The word's value, and with it everything that the thread which published it had written before.
 * For one side that follows what the other has done: nothing of its own has to be seen first. */
#define shared_word_read(word) __atomic_load_n((word), __ATOMIC_ACQUIRE)

/* Sets the word for shared_word_read(), behind everything written before. This thread's own next
 * look may still come earlier. */
#define shared_word_publish(word, value) __atomic_store_n((word), (value), __ATOMIC_RELEASE)
#define shared_word_publish_add(word, count)                                                       \
    ((void)__atomic_fetch_add((word), (count), __ATOMIC_RELEASE))

/* Sets the word without order: it is seen with the next word that is published. */
#define shared_word_write(word, value) __atomic_store_n((word), (value), __ATOMIC_RELAXED)

/* Takes the next number from a counter: no two threads get the same. Without order. */
#define shared_word_draw(word) __atomic_fetch_add((word), 1, __ATOMIC_RELAXED)

/* Sets the word. A thread that sees the new value sees everything that was written before. */
#define shared_word_set(word, value) __atomic_store_n((word), (value), __ATOMIC_SEQ_CST)

/* Sets the word, and orders this thread's next look behind it. For words that are announced
 * before a look at another word. On x86-64 this is one instruction: a store and a full fence. */
#define shared_word_announce(word, value)                                                          \
    ((void)__atomic_exchange_n((word), (value), __ATOMIC_SEQ_CST))

/* Sets the word and returns its old value. Of several threads that take a value, exactly one
 * gets it. */
#define shared_word_take(word, value) __atomic_exchange_n((word), (value), __ATOMIC_SEQ_CST)

/* Sets bits, clears bits, adds and subtracts, in the order of shared_word_announce(). */
#define shared_word_set_bits(word, bits) ((void)__atomic_fetch_or((word), (bits), __ATOMIC_SEQ_CST))
#define shared_word_clear_bits(word, bits)                                                         \
    ((void)__atomic_fetch_and((word), ~(bits), __ATOMIC_SEQ_CST))
#define shared_word_add(word, count) ((void)__atomic_fetch_add((word), (count), __ATOMIC_SEQ_CST))
#define shared_word_subtract(word, count)                                                          \
    ((void)__atomic_fetch_sub((word), (count), __ATOMIC_SEQ_CST))

/* Adds and returns the value before, in the same order. */
#define shared_word_add_after(word, count) __atomic_fetch_add((word), (count), __ATOMIC_SEQ_CST)

/* Adds to a counter that orders nothing. */
#define shared_word_count(word, count) ((void)__atomic_fetch_add((word), (count), __ATOMIC_RELAXED))

/* Sets the word if it is as *seen, in the order of shared_word_announce(), and returns whether it
 * was; if not, *seen becomes its value. */
#define shared_word_exchange(word, seen, value)                                                    \
    __atomic_compare_exchange_n((word), (seen), (value), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

/* Sets the word if it is 0, and returns whether it was. So the first of several reasons stays. */
static inline bool shared_word_set_first(uint32_t *word, uint32_t value)
{
    uint32_t none = 0;
    return __atomic_compare_exchange_n(word, &none, value, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

#endif
