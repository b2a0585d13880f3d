/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The parts of the program share this header. Each part goes through the calls of one subject. */
#ifndef GPUSHARE_TESTS_PROGRAMS_DROPIN_DROPIN_H
#define GPUSHARE_TESTS_PROGRAMS_DROPIN_DROPIN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cuda/front/driver_exports.h"
#include "tests/support/demand.h"

/* The text of kernels.ptx. */
extern const char dropin_kernels[];

enum { WORDS = 64, BYTES = WORDS * 4 };

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        cuda_result result_ = (call);                                                              \
        if (result_ != (expected)) {                                                               \
            const char *name_ = "?";                                                               \
            cuGetErrorName(result_, &name_);                                                       \
            fprintf(stderr, "%s:%d: %s: %s (%d), not %d\n", __FILE__, __LINE__, #call, name_,      \
                    (int)result_, (int)(expected));                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT(CUDA_OK, call)

struct work {
    cuda_context context;
    cuda_module module;
    cuda_function count;
    cuda_device_ptr words;
};

/* Whether a server serves the program: it has gpushare's libcuda.so.1, and not the software GPU's.
 */
bool is_served(void);

/* Makes the primary context current, and has a module and WORDS words of value 7 on it. */
void begin(struct work *work);

/* Adds times to each word. */
cuda_result count(const struct work *work, uint32_t times, cuda_stream stream);

/* Each word has this value. */
void demand(const struct work *work, uint32_t word);

void check_before_init(void);
void check_devices(void);
void check_contexts(void);
void check_crossing(void);
void check_reset(void);
void check_pointers(const struct work *work);
void check_registered(const struct work *work);
void check_copies(const struct work *work);
void check_blocks(void);
void check_streams(const struct work *work);
void check_per_thread(const struct work *work);
void check_functions(const struct work *work);
void check_full(const struct work *work);
void check_sync_memory(const struct work *work);
void check_kernels(const struct work *work);
void check_libraries(void);
void check_variables(void);
void check_elements(void);
void check_block_copies(const struct work *work);
void check_enumeration(const struct work *work);
void check_attributes(const struct work *work);
void check_pools(void);
void check_freed(const struct work *work);
void check_managed(const struct work *work);
void check_stream_attributes(const struct work *work);
void check_values(const struct work *work);
void check_waits(const struct work *work);
void check_waits_reset(void);
void wait_on_host(void);
void wait_on_device(void);
void check_occupancy(const struct work *work);
void check_link(const struct work *work);
void check_old_launches(const struct work *work);
void check_batches(const struct work *work);
/* Resets the primary context, and begins anew. */
void check_rest(struct work *work);
/* Link PTX files. The first prints the image, a text where the program is served; the second
 * launches the kernel k(words) with WORDS threads, and prints the words. Both end the program with
 * 3, and the reason, if the files are refused. */
void print_linked(int count, char **paths);
void run_linked(int count, char **paths);
/* Returns the number of blocks of the largest cooperative grid. */
unsigned check_cooperative(const struct work *work);
void check_peers(void);
void keep_idle(void);
void fill_memory(void);
void check_lookup(void);
void check_fork(void);
void print_all(void);
void print_more(void);
void print_own(void);
void print_overflow(void);
void print_fault(void);
void heap_calls(void);
void heap_kept(void);
void heap_together(void);
void heap_twice(void);
void heap_limit(void);
void stack_limit(void);
void stack_too_large(void);

#endif
