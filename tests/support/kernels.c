/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/kernels.h"

__asm__(".section .rodata\n.balign 16\n.globl kernels_ptx\nkernels_ptx:\n.incbin "
        "\"tests/support/kernels.ptx\"\n.byte 0\n.previous\n");
