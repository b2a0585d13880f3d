/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kernels: the PTX of small kernels that more than one test launches. Every thread runs alike.
 *
 * until(uint64_t word)           sleeps until the uint32_t at this address is not 0
 * endless()                      sleeps, and never ends
 * milliseconds(uint32_t count)   sleeps so long; a count of 0 is not allowed
 * trapped()                      traps: its worker is lost
 * deep(uint64_t word)            takes 16 KiB of local memory a thread, and writes 7 to this
 * address
 */
#ifndef GPUSHARE_TESTS_SUPPORT_KERNELS_H
#define GPUSHARE_TESTS_SUPPORT_KERNELS_H

/* A text that ends with 0, for gpushare_module_load and cuModuleLoadDataEx. */
extern const char kernels_ptx[];

#endif
