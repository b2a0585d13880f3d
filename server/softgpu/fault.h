/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fault: a description of an error inside a kernel, with more detail than hardware gives.
 *
 * The instruction side (warp, exec_*) fills one in. The device side (device, grid) makes the first
 * one sticky for the process, as CUDA does. One thread at a time.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_FAULT_H
#define GPUSHARE_SERVER_SOFTGPU_FAULT_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"

enum fault_kind {
    FAULT_NONE = 0,
    /* 700: no live allocation there, or a write to memory that is read-only */
    FAULT_ILLEGAL_ADDRESS,
    FAULT_MISALIGNED_ADDRESS,    /* 716 */
    FAULT_INVALID_ADDRESS_SPACE, /* 717: for example a shared address used as a global one */
    FAULT_ILLEGAL_INSTRUCTION,   /* 715 */
    FAULT_STACK,                 /* 714: call depth or local memory exhausted */
    FAULT_TRAP,                  /* 719 LAUNCH_FAILED: trap, a barrier that can't complete */
    FAULT_ASSERT,                /* 710: __assertfail */
    FAULT_HEAP,                  /* 719: free of what is no block, malloc with a bad alignment */
};

struct fault {
    enum fault_kind kind;
    char kernel[128];   /* truncated, NUL-terminated */
    uint32_t block[3];  /* %ctaid */
    uint32_t thread[3]; /* %tid of the first faulting lane */
    uint64_t address;   /* for address faults */
    uint32_t size;      /* bytes accessed, for address faults */
    uint32_t line;      /* line of the PTX text */
    char text[256];     /* one sentence, for a log */
};

/* Returns the CUresult that CUDA reports for this kind of fault. */
cuda_result fault_result(enum fault_kind kind);

/* Writes fault->text from the other members. */
void fault_describe(struct fault *fault);

#endif
