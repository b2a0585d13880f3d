/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/profile.h"

#include <string.h>

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* The figures that devices of this architecture share. */
#define HOPPER                                                                                     \
    .cc_major = 9, .cc_minor = 0, .sm_threads = 2048, .sm_blocks = 32,                             \
    .sm_shared_bytes = 228 << 10, .block_shared_optin_bytes = 227 << 10,                           \
    .block_shared_reserved_bytes = 1 << 10, .sm_alignment = 8, .sm_alignment_loose = 2

static const struct profile profiles[] = {
    /* An H200 with less memory, so that limits are met soon. */
    {.name = "",
     .device_name = "gpushare software GPU",
     HOPPER,
     .sms = 132,
     .memory_bytes = 8 * GIB,
     .copy_engines = 2,
     .l2_bytes = 32 << 20},
    {.name = "h200",
     .device_name = "gpushare software GPU (H200)",
     HOPPER,
     .sms = 132,
     .memory_bytes = 143771 * MIB,
     .copy_engines = 2,
     .l2_bytes = 50 << 20},
    {.name = "h100",
     .device_name = "gpushare software GPU (H100)",
     HOPPER,
     .sms = 132,
     .memory_bytes = 81559 * MIB,
     .sm_groups_lost = 1,
     .copy_engines = 3,
     .l2_bytes = 50 << 20},
    {.name = "mig",
     .device_name = "gpushare software GPU (H200 MIG 1g.18gb)",
     .instance = true,
     HOPPER,
     .sms = 16,
     .memory_bytes = 16896 * MIB,
     .copy_engines = 1,
     .l2_bytes = 6 << 20},
    {.name = "t4",
     .device_name = "gpushare software GPU (T4)",
     .cc_major = 7,
     .cc_minor = 5,
     .sms = 40,
     .memory_bytes = 15 * GIB,
     .sm_threads = 1024,
     .sm_blocks = 16,
     .sm_shared_bytes = 64 << 10,
     .block_shared_optin_bytes = 64 << 10,
     .block_shared_reserved_bytes = 0,
     .sm_alignment = 2,
     .sm_alignment_loose = 2,
     .copy_engines = 2,
     .l2_bytes = 4 << 20},
};

const struct profile *profile_find(const char *name)
{
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return NULL;
}

const char *profile_names(void)
{
    return "h200, h100, mig, t4";
}
