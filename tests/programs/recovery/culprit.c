/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/culprit.h"

#define TEXT(name, path)                                                                           \
    __asm__(".section .rodata\n.balign 16\n.globl " name "\n" name ":\n.incbin \"" path            \
            "\"\n.byte 0\n.previous\n")

TEXT("recovery_ptx", "tests/programs/recovery/kernels/recovery.ptx");
TEXT("faults_ptx", "tests/programs/recovery/kernels/faults.ptx");

const struct culprit culprits[CULPRITS] = {
    {"stray", GPUSHARE_ERROR_ILLEGAL_ADDRESS},
    {"crooked", GPUSHARE_ERROR_MISALIGNED_ADDRESS},
    {"misplaced", GPUSHARE_ERROR_INVALID_ADDRESS_SPACE},
    {"nowhere", GPUSHARE_ERROR_ILLEGAL_INSTRUCTION},
    {"deep", GPUSHARE_ERROR_HARDWARE_STACK_ERROR},
    {"trapped", GPUSHARE_ERROR_LAUNCH_FAILED},
    {"asserted", GPUSHARE_ERROR_ASSERT},
};
