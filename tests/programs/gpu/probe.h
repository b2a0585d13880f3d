/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * probe: what every step that examines a driver stands on: the driver itself, words to the
 * runner, clocks, partitions, kernels.
 *
 * A step is a process of its own. It speaks to the runner through lines on standard output
 * that begin with '@' (runner.h reads them); any other line is output for the step's log. A step
 * that is killed keeps what it has said until then. One thread, if not said otherwise.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_PROBE_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "tests/programs/gpu/extra.h"

/* The server's own addresses: address_plan.h has the same. */
#define PROBE_DEVICE_BASE UINT64_C(0x200000000000)
#define PROBE_HOST_BASE   UINT64_C(0x300000000000)
#define PROBE_ARENA_BYTES (UINT64_C(16) << 40)
/* server/worker registers host buffers in pieces of this many bytes. */
#define PROBE_REGISTER_STEP (UINT64_C(64) << 20)

/* The driver, and calls that gpushare itself does not make. A call that this driver lacks ends
 * the step with "unknown" and its name. */
extern struct cuda_driver cu;
extern struct extra_driver extra;

/* The path of the driver under examination, and this program's own folder. */
extern const char *probe_library;
extern const char *probe_folder;

/* ---- words to the runner; text without a line break ---- */
void probe_held(const char *assumption, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void probe_false(const char *assumption, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void probe_unknown(const char *assumption, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* held or false, as `holds` says. */
void probe_judge(bool holds, const char *assumption, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Checks of gpushare rather than of the driver. */
void probe_passed(const char *format, ...) __attribute__((format(printf, 1, 2)));
void probe_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
void probe_not_met(const char *format, ...) __attribute__((format(printf, 1, 2)));
void probe_not_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A number for the record; the name has no blanks. */
void probe_measure(const char *name, double value, const char *unit);
/* A word about the machine for the head of the page. */
void probe_fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The verdict line of a step that has neither assumption nor check. */
void probe_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the step: no verdict could be reached. */
void probe_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * Ends the process at once: a driver's destructors could hang or crash while a kernel or another
 * thread still runs. The function given to probe_at_end() is called before.
 */
void probe_end(int status) __attribute__((noreturn));
void probe_at_end(void (*last_words)(void));

/* Tells the runner which call is being made, so that a hang or a crash has a name. */
#define CU(call) (probe_call(#call), probe_check((call), #call))
/* Without that, for calls that are timed or made often. */
#define CU_QUIET(call) probe_check((call), #call)
void probe_call(const char *call);
void probe_check(cuda_result result, const char *call);
const char *probe_error(cuda_result result);

/* ---- the driver ---- */
void probe_open(void);    /* loads it, cuInit */
void probe_context(void); /* device 0's primary context becomes current */
cuda_function probe_function(const char *name);
const char *probe_ptx(void);
int probe_attribute(cuda_device_attribute attribute); /* -1 if it can't be had */

/* cuMemCreate properties for device 0 with a POSIX descriptor; their granularity. */
cuda_mem_allocation_prop probe_properties(void);
size_t probe_granularity(void);
/* Maps a handle at an address that is reserved already, readable and writable. */
void probe_map(cuda_device_ptr address, size_t bytes, cuda_mem_handle handle);

/* Pinned host memory that the device sees at *device. */
void *probe_host(size_t bytes, cuda_device_ptr *device);

/* Launches one kernel: `blocks` blocks of `threads`. */
void probe_launch(const char *kernel, unsigned blocks, unsigned threads, cuda_stream stream,
                  void **parameters);
/* The kernel "last" for so many nanoseconds, one block. */
void probe_launch_last(cuda_stream stream, uint64_t ns);

/* ---- partitions ---- */
struct probe_partition {
    cuda_green_ctx green; /* NULL: a plain stream */
    cuda_stream stream;
    unsigned sms;
};

/*
 * Makes `count` disjoint partitions of at least min_sms multiprocessors, each with a stream.
 * Where the driver has no green contexts: plain streams, and a note says so. Returns whether
 * they are green contexts.
 */
bool probe_partitions(struct probe_partition *partitions, unsigned count, unsigned min_sms);

/* ---- clocks and numbers ---- */
uint64_t probe_ns(void); /* CLOCK_MONOTONIC */
void probe_sleep_ms(unsigned ms);
/* Sorts; the value below which `part` (0 to 1) of them lie. */
double probe_quantile(double *values, size_t count, double part);

/* ---- other processes ---- */
/* Starts this program again as `checks part STEP NAME ARGUMENT` with the driver; its descriptor 3
 * is one end of a socket, the other is returned in *socket (-1: none wanted). */
int probe_spawn(const char *part, const char *argument, int *socket);
void probe_send_fd(int socket, int fd);
int probe_receive_fd(int socket);

#endif
