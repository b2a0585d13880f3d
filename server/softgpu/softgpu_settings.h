/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * softgpu_settings: what the environment asks of the software GPU. The only module of
 * it that reads the environment, once, in cuInit. docs/softgpu.md says what each
 * variable does, and on which source it stands.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_SOFTGPU_SETTINGS_H
#define GPUSHARE_SERVER_SOFTGPU_SOFTGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "server/softgpu/profile.h"

enum {
    SETTINGS_MAX_DEVICES = 16, /* as the largest machines with one NVSwitch fabric have */
    SETTINGS_MAX_SMS = 512,
    SETTINGS_MAX_THREADS = 128,
    SETTINGS_MAX_QUEUES = 32,
    SETTINGS_BY_SEED = 2, /* yes or no, as the seed says */
};

/*
 * X(member, variable, least, most, usual, strict): the last two are the values without
 * the variable, as SOFTGPU_STRICT is 0 or 1. Where they are the same, the variable
 * chooses what is modelled or tested, and is no behaviour that strictness adds. Once
 * read, sms and memory are the profile's and threads the number of cores instead of 0,
 * connections at most queues, and what the seed says is 0 or 1.
 */
#define SOFTGPU_SETTINGS(X)                                                                        \
    X(devices, "SOFTGPU_DEVICES", 1, SETTINGS_MAX_DEVICES, 1, 1)                                   \
    X(sms, "SOFTGPU_SMS", 1, SETTINGS_MAX_SMS, 0, 0)                                               \
    X(memory, "SOFTGPU_MEMORY", 2 << 20, UINT64_C(1) << 44, 0, 0)                                  \
    X(seed, "SOFTGPU_SEED", 0, UINT64_MAX, 1, 1)                                                   \
    X(threads, "SOFTGPU_THREADS", 0, SETTINGS_MAX_THREADS, 0, 0)                                   \
    X(realtime, "SOFTGPU_REALTIME", 0, 1, 0, 0)                                                    \
    X(no_green, "SOFTGPU_NO_GREEN", 0, 1, 0, 0)                                                    \
    X(work_queues, "SOFTGPU_WORK_QUEUES", 0, 1, 0, 0)                                              \
    X(init_error, "SOFTGPU_INIT_ERROR", 0, 999, 0, 0)                                              \
    X(trap_error, "SOFTGPU_TRAP_ERROR", 0, 999, 0, 0)                                              \
    X(green_error, "SOFTGPU_GREEN_ERROR", 0, 999, 0, 0)                                            \
    X(no_green_memops, "SOFTGPU_NO_GREEN_MEMOPS", 0, 1, 0, 0)                                      \
    X(pageable_access, "SOFTGPU_PAGEABLE_ACCESS", 0, 1, 0, 0)                                      \
    X(compute_mode, "SOFTGPU_COMPUTE_MODE", 0, 3, 0, 0)                                            \
    X(taken, "SOFTGPU_TAKEN", 0, 1, 0, 0)                                                          \
    X(no_jit, "SOFTGPU_NO_JIT", 0, 1, 0, 0)                                                        \
    X(link_obeys, "SOFTGPU_LINK_OBEYS", 0, 1, 0, 0)                                                \
    X(serialize, "SOFTGPU_SERIALIZE", 0, 1, 0, 0)                                                  \
    X(unmap_waits, "SOFTGPU_UNMAP_WAITS", 0, 1, 0, 0)                                              \
    X(limit_reserves, "SOFTGPU_LIMIT_RESERVES", 0, 2, 1, 0)                                        \
    X(local_apart, "SOFTGPU_LOCAL_APART", 0, 1, 0, 1)                                              \
    X(context_memory, "SOFTGPU_CONTEXT_MEMORY", 0, UINT64_C(1) << 40, 0, 0)                        \
    X(context_delay_us, "SOFTGPU_CONTEXT_DELAY_US", 0, 10000000, 0, 0)                             \
    X(instruction_ps, "SOFTGPU_INSTRUCTION_PS", 0, 1000000000, 0, 0)                               \
    X(connections, "CUDA_DEVICE_MAX_CONNECTIONS", 1, SETTINGS_MAX_QUEUES, 32, 32)                  \
    X(context_lock, "SOFTGPU_CONTEXT_LOCK", 0, 1, 0, 1)                                            \
    X(drain_percent, "SOFTGPU_DRAIN_PERCENT", 0, 100, 80, 80)                                      \
    X(unsure_drains, "SOFTGPU_UNSURE_DRAINS", 0, SETTINGS_BY_SEED, 1, SETTINGS_BY_SEED)            \
    X(locking_drains, "SOFTGPU_LOCKING_DRAINS", 0, 1, 0, 0)                                        \
    X(queues, "SOFTGPU_QUEUES", 1, SETTINGS_MAX_QUEUES, 32, 32)                                    \
    X(private_queues, "SOFTGPU_PRIVATE_QUEUES", 0, 1, 0, 0)                                        \
    X(queue_entries, "SOFTGPU_QUEUE_ENTRIES", 0, 1 << 20, 1024, 1024)                              \
    X(enqueue_ns, "SOFTGPU_ENQUEUE_NS", 0, 1000000000, 0, 3000)                                    \
    X(launch_ns, "SOFTGPU_LAUNCH_NS", 0, 1000000000, 0, 5000)                                      \
    X(completion_ns, "SOFTGPU_COMPLETION_NS", 0, 1000000000, 0, 2000)                              \
    X(completion_tail, "SOFTGPU_COMPLETION_TAIL", 0, 1, 0, 1)                                      \
    X(creation_us, "SOFTGPU_CREATION_US", 0, 10000000, 0, 2000)                                    \
    X(load_us, "SOFTGPU_LOAD_US", 0, 10000000, 0, 1000)                                            \
    X(register_us_per_mib, "SOFTGPU_REGISTER_US_PER_MIB", 0, 10000000, 0, 1000)                    \
    X(globaltimer_ns, "SOFTGPU_GLOBALTIMER_NS", 1, 1000000000, 1000, 1000)                         \
    X(contention_percent, "SOFTGPU_CONTENTION_PERCENT", 0, 1000, 0, 100)                           \
    X(variation_percent, "SOFTGPU_VARIATION_PERCENT", 0, 90, 0, 33)                                \
    X(grid_order, "SOFTGPU_GRID_ORDER", 0, 1, 1, 1)                                                \
    X(scatter, "SOFTGPU_SCATTER", 0, 1, 1, 1)                                                      \
    X(arrival_ns, "SOFTGPU_ARRIVAL_NS", 0, 1000000000, 3000, 3000)                                 \
    X(fill_kernels, "SOFTGPU_FILL_KERNELS", 0, 1, 1, 1)                                            \
    X(whole_registrations, "SOFTGPU_WHOLE_REGISTRATIONS", 0, 1, 1, 1)                              \
    X(remains, "SOFTGPU_REMAINS", 0, 1, 1, 1)                                                      \
    X(subcontexts, "SOFTGPU_SUBCONTEXTS", 0, 1 << 20, 64, 64)                                      \
    X(driver_version, "SOFTGPU_DRIVER_VERSION", 12000, CUDA_API_VERSION, CUDA_API_VERSION,         \
      CUDA_API_VERSION)                                                                            \
    X(hint_error, "SOFTGPU_HINT_ERROR", 0, 100, 10, 10)                                            \
    X(hint_refusal, "SOFTGPU_HINT_REFUSAL", 0, 100, 10, 10)                                        \
    X(address_bits, "SOFTGPU_ADDRESS_BITS", 40, 57, 57, 57)                                        \
    X(copy_bytes_per_second, "SOFTGPU_COPY_BYTES_PER_SECOND", 0, UINT64_C(1) << 50, 0,             \
      UINT64_C(25000000000))

struct softgpu_settings {
    bool strict;
#define X(member, variable, least, most, usual, strict) uint64_t member;
    SOFTGPU_SETTINGS(X)
#undef X
    const struct profile *profile;          /* never NULL */
    unsigned visible[SETTINGS_MAX_DEVICES]; /* the machine's numbers of the devices that are seen */
    unsigned visible_count;
    bool drains_named;    /* drains says which calls wait for the device, and no table does */
    uint64_t drains;      /* a bit for each context_call */
    char state_path[256]; /* "" = none; see charges.h */
    char stats_path[256]; /* "" = none; see stats.h */
};

/* Gives the UUID, which depends on the device's number in the machine only and is the same in every
 * process. */
void softgpu_uuid(unsigned number, cuda_uuid *uuid);

/* Gives the UUID of the GPU that this device is an instance of, or that it is. */
void softgpu_gpu_uuid(const struct profile *profile, unsigned number, cuda_uuid *uuid);

/* Reads the environment. Returns 0, or an error number that *why explains. */
uint32_t softgpu_settings_read(struct softgpu_settings *settings, struct error *why);

#endif
