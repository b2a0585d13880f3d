/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * question: what the programs that put one question to a device share. Each prints
 * one line that begins with its number and its verdict (yes, no, measured), and
 * exits 0 when it could answer, whatever the answer; 1 when it could not.
 *
 * usage of each: question_N /path/of/libcuda.so.1
 */
#ifndef GPUSHARE_TESTS_GPU_QUESTION_H
#define GPUSHARE_TESTS_GPU_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda_driver.h"

#define QUESTION_DEVICE_BASE UINT64_C(0x200000000000)
#define QUESTION_HOST_BASE   UINT64_C(0x300000000000)
#define QUESTION_ARENA_BYTES (UINT64_C(16) << 40)

extern struct cuda_driver cu;

#define CU(call) question_check((call), #call)
void question_check(cuda_result result, const char *call);
void question_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Opens the driver of argv[1] and initialises it; no context yet. */
void question_open(int argc, char **argv);

/* Makes the primary context of device 0 current. */
void question_context(void);

cuda_function question_function(const char *name);

/* cuMemCreate properties for device 0 with a POSIX descriptor; granularity of them. */
cuda_mem_allocation_prop question_properties(void);
size_t question_granularity(void);

/* Maps a handle at an address that is reserved already, readable and writable. */
void question_map(cuda_device_ptr address, size_t bytes, cuda_mem_handle handle);

double question_seconds(void);

/* Sends or receives one descriptor over a socket. */
void question_send_fd(int socket, int fd);
int question_receive_fd(int socket);

#endif
