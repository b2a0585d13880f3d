/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * machine: what the kernel says about the machine's memory. In a container it is still that of the
 * machine. Any thread.
 */
#ifndef GPUSHARE_COMMON_MACHINE_H
#define GPUSHARE_COMMON_MACHINE_H

#include <stdint.h>
#include <unistd.h>

/* Bytes of a page. */
static inline uint64_t machine_page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of RAM. */
static inline uint64_t machine_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * machine_page();
}

#endif
