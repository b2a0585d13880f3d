/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * page: what a client of make chaos-recovery and the program that conducts it share, in memory that
 * outlives either. The conductor writes `order`, `kind` and `company`; the client all
 * else.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_PAGE_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum { PAGES_MAX = 16, PAGE_WORDS = 500 };

enum order { ORDER_WORK, ORDER_REST, ORDER_FAULT, ORDER_LEAVE };

/* The phase of a client. `pushing` and `waiting` are with work in flight, for the most part. */
#define PHASES(X)                                                                                  \
    X(connecting)                                                                                  \
    X(loading) X(pushing) X(waiting) X(recovering) X(checking) X(requesting) X(resting) X(leaving)
#define PHASE_NAME(name) PHASE_##name,
enum phase { PHASES(PHASE_NAME) PHASE_COUNT };
#undef PHASE_NAME

struct page {
    _Atomic uint32_t order, kind;
    _Atomic uint32_t company; /* after ORDER_FAULT: others that have to have work in flight */
    _Atomic uint32_t phase;
    _Atomic uint32_t in_flight;   /* it has launched what it has not seen to end, or to be lost */
    _Atomic uint32_t client;      /* its number at the server; 0: it is not connected */
    _Atomic uint64_t batches;     /* that it has verified, whole or interrupted */
    _Atomic uint64_t steps, lost; /* launches that were finished; that were interrupted */
    _Atomic uint64_t interruptions;
    _Atomic uint32_t faults;  /* of its own so far, after ORDER_FAULT */
    _Atomic uint32_t beside;  /* others with work in flight when it launched the first of them */
    _Atomic uint32_t verdict; /* the error that told it that it was guilty; 0: none has */
    _Atomic uint64_t stamp;   /* device address where its kernels count down to their end */
    _Atomic uint32_t failed;  /* something did not hold: words says what */
    char words[PAGE_WORDS];   /* of the failure, or of the verdict */
};

#endif
