/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * oracle: the corpus kernels compiled as host C++, and what is known of each:
 * how to launch it, how to fill its buffers, how to judge what it wrote.
 *
 * liboracle.so exports these functions. Not thread-safe: one caller at a time.
 */
#ifndef GPUSHARE_TESTS_CORPUS_ORACLE_H
#define GPUSHARE_TESTS_CORPUS_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CORPUS_MAX_PARAMS = 16, CORPUS_MAX_BUFFERS = 12, CORPUS_MAX_POINTERS = 4 };

enum corpus_type {
    CORPUS_U8,
    CORPUS_S8,
    CORPUS_U16,
    CORPUS_S16,
    CORPUS_U32,
    CORPUS_S32,
    CORPUS_U64,
    CORPUS_S64,
    CORPUS_F32,
    CORPUS_F64,
};

enum corpus_pattern {
    CORPUS_FILL_STALE, /* 0xa5 in every byte: what an output holds before it is written */
    CORPUS_FILL_ZERO,
    CORPUS_FILL_BITS,    /* random bits */
    CORPUS_FILL_RANGE,   /* uniform in [low, high], whole numbers for integer types */
    CORPUS_FILL_SPECIAL, /* the type's corner values, then random bits */
    CORPUS_FILL_IOTA,    /* 0, 1, 2, ... */
    CORPUS_FILL_CALL,    /* fill_with */
};

enum corpus_criterion {
    CORPUS_EXACT,    /* same bits; any NaN equals any NaN in floating-point buffers */
    CORPUS_ULP,      /* at most `tolerance` units in the last place apart */
    CORPUS_ABSOLUTE, /* at most `tolerance` apart, or CORPUS_ULP with `ulp` */
    CORPUS_SORTED,   /* the same elements in any order */
    CORPUS_PROPERTY, /* `property` judges; the oracle's own output is not used */
};

struct corpus_buffer {
    const char *symbol; /* NULL, or the module variable that this stands for */
    void *symbol_host;  /* its address in the oracle */
    enum corpus_type type;
    size_t count;
    enum corpus_pattern fill;
    uint64_t seed;
    double low, high;
    void (*fill_with)(void *data, size_t count);
    enum corpus_criterion compare;
    double tolerance, ulp;
    /* Returns 0 if fine; otherwise writes what is wrong to why. */
    int (*property)(const void *data, size_t count, char *why, size_t why_size);
};

struct corpus_param {
    int buffer;        /* index of the buffer whose address is passed, or -1: a value */
    size_t bytes;      /* of the parameter */
    const void *value; /* its bytes, where buffer is -1 */
    int pointers;      /* addresses of buffers to be put inside the value */
    struct {
        size_t offset;
        int buffer;
    } pointer[CORPUS_MAX_POINTERS];
};

struct corpus_kernel {
    const char *module, *name; /* MODULE.ptx holds .entry NAME */
    uint32_t arch;             /* 75: the PTX's target is sm_75 */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared; /* bytes */
    uint32_t launches;       /* how often it is launched, one after another */
    int params, buffers;
    struct corpus_param param[CORPUS_MAX_PARAMS];
    struct corpus_buffer buffer[CORPUS_MAX_BUFFERS];
    void (*call)(void *const *params); /* private to the oracle */
};

/* All kernels, sorted by module and name. Static. */
const struct corpus_kernel *corpus_kernels(size_t *count);

/* The kernel of that name, or NULL. */
const struct corpus_kernel *corpus_find(const char *name);

size_t corpus_buffer_bytes(const struct corpus_buffer *buffer);

/* Fills data as described; the same bytes each time. */
void corpus_fill(const struct corpus_buffer *buffer, void *data);

/*
 * Runs one launch on the host. params[i] points to the i-th parameter's bytes.
 * order 0 runs threads and blocks in ascending order; other values choose other
 * orders, which must not change what a kernel without races computes.
 * Returns 0, or -1 with a sentence in error (deadlock, a lane outside its mask).
 */
int corpus_run(const struct corpus_kernel *kernel, void *const *params, uint32_t order, char *error,
               size_t error_size);

/* Returns 0 if got is right, else -1 with the first difference in why. */
int corpus_compare(const struct corpus_buffer *buffer, const void *got, const void *expected,
                   char *why, size_t why_size);

#ifdef __cplusplus
}
#endif

#endif
