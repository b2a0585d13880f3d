/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * compiler_process: the process that compiles one text and ends; `gpushare-worker --compile`.
 *
 * It reads the text from COMPILER_TEXT_FD, a sealed memory file, and writes to COMPILER_ANSWER_FD,
 * a pipe, a compiler_answer when it is ready to compile and another one when it is done, then the
 * code. The driver's linker needs a context, so it makes one on the device, and launches nothing
 * there.
 *
 * Before it compiles it lowers what it may take: memory beyond what the driver took to start, and
 * CPU time, in case nobody is left to watch the clock. It dies with the thread that started it.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_COMPILER_PROCESS_H
#define GPUSHARE_SERVER_WORKER_CODE_COMPILER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/code/ptx_link.h"

enum { COMPILER_TEXT_FD = 3, COMPILER_ANSWER_FD = 4 };

enum compiler_stage {
    COMPILER_ABSENT = 1, /* it can't compile anything, and log says why */
    COMPILER_READY,
    COMPILER_DONE, /* with result and log; or `bytes` bytes of code follow */
};

struct compiler_answer {
    uint32_t stage;
    uint32_t result; /* the driver's */
    uint64_t bytes;
    char log[PTX_LINK_LOG];
};

struct compiler_process {
    const char *driver; /* path */
    int device;
    const uint8_t *uuid; /* 16 bytes, or NULL: the device of that number */
    uint32_t seconds;    /* not 0 */
    uint64_t memory;     /* bytes, not 0 */
    int parent;          /* the process that must live */
};

/* Runs to the end of the process; returns its exit status: 0 if all was answered. */
int compiler_process_run(const struct compiler_process *process);

#endif
