/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Shared memory with store buffers (x86's TSO): a plain store waits in its
 * processor's FIFO and reaches memory at any later time; a fence, an exchange and
 * every other read-modify-write first wait until that FIFO is empty. Loads go to
 * memory at once, since no process here loads a word that it stores itself.
 *
 * The including model defines CPUS (how many processors store) and WORDS (how many
 * words there are) and runs one store_buffer(cpu) for each processor.
 */
byte mem[WORDS];

#define BUFFER 3
chan stores[CPUS] = [BUFFER] of { byte, byte };

#define LOAD(a)             mem[a]
#define STORE(cpu, a, v)    stores[cpu]!a, v
#define FENCE(cpu)          empty(stores[cpu])
/* A sequentially consistent store is an exchange whose old value is not wanted. */
#define STORE_SEQ(cpu, a, v) atomic { empty(stores[cpu]); mem[a] = v }
#define FETCH_OR(cpu, a, v) atomic { empty(stores[cpu]); mem[a] = mem[a] | (v) }
#define FETCH_CLEAR(cpu, a, v) atomic { empty(stores[cpu]); mem[a] = mem[a] & (255 - (v)) }
#define EXCHANGE(cpu, a, v, old) atomic { empty(stores[cpu]); old = mem[a]; mem[a] = v }

proctype store_buffer(byte cpu)
{
    byte a, v;
end_drained:
    do
    :: atomic { stores[cpu]?a, v; mem[a] = v; a = 0; v = 0 }
    od
}
