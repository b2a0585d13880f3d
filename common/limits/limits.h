/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * limits: the wishes and limits that an environment asks for, in one form for client and server.
 *
 * The functions have no state. The environment comes in through a callback, and devices through a
 * table of UUIDs. In a client the result is a wish, which can only tighten; in the server it is
 * default and ceiling.
 *
 * The names of a resource's variables stand in its row (common/limits/allowance.h): for a limit
 * gpushare's own, an alias that is named as MPS names its own, and CUDA's namesake. A scalar's row
 * has its variable, and CUDA's namesake where there is one. Further variables belong to neither;
 * GPUSHARE_VISIBLE_DEVICES has a namesake too (CUDA_VISIBLE_DEVICES).
 *
 * Of gpushare's two names of one limit the tighter value holds; CUDA's namesake is read where
 * neither is set.
 *
 * GPUSHARE_FRACTION is a limit of the device's memory and a request of its time. A request above
 * the limit that is asked for with it is refused.
 *
 * An empty value is malformed, except for the devices (none is visible) and the
 * name (there is none). Every failure is INVALID_ENVIRONMENT with a sentence that names
 * variable, value and accepted form. Any thread.
 */
#ifndef GPUSHARE_COMMON_LIMITS_LIMITS_H
#define GPUSHARE_COMMON_LIMITS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/devices_max.h"
#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/limits/dialect.h"
#include "protocol.h"

#define LIMITS_NAME_MAX   63  /* bytes of a client's name, without the NUL */
#define LIMITS_SOCKET_MAX 107 /* bytes of a socket's path, without the NUL: sun_path's room */
#define LIMITS_UUID_BYTES 16

/* One entry of a list, which names a device. */
struct limits_selector {
    bool by_uuid;
    bool instance;    /* the text begins with MIG-; only the driver is told so */
    uint32_t ordinal; /* unless by_uuid */
    char uuid[40];    /* the text behind GPU- or MIG-, in lower case: a UUID or its beginning */
};

/* A list of visible devices, in the order in which the client numbers them. */
struct limits_visible {
    bool listed; /* false: the variable is unset and every device is visible */
    unsigned count;
    struct limits_selector devices[DEVICES_MAX];
};

/* A list of device memory limits. */
struct limits_memory {
    unsigned count;
    struct {
        struct limits_selector device; /* an ordinal counts the visible devices only */
        uint64_t bytes;
    } entries[DEVICES_MAX];
};

/* Everything that an environment asks for. The `_from` members name the variable from which a
 * value came, or are NULL; static. */
struct limits_wish {
    struct allowance allowance;  /* of each device; its sources are ALLOWANCE_BY_SELF */
    struct limits_memory memory; /* limits of some devices' memory */
    struct limits_visible visible;
    char name[LIMITS_NAME_MAX + 1];     /* "": none */
    char socket[LIMITS_SOCKET_MAX + 1]; /* "": not asked */
    char profile[LIMITS_NAME_MAX + 1];  /* "": none; a client's */
    enum proto_source memory_source;    /* which variable has the list */
    /* The variables that were read, or NULL; `memory_from` and `visible_from` are set wherever
     * `memory` has entries and `visible` is listed. */
    const char *memory_from, *visible_from, *name_from, *socket_from, *profile_from;
};

/* As getenv, with a context: returns the value, or NULL if the variable is unset. */
typedef const char *limits_get(const char *name, void *context);

/* Fills *wish from the variables that get knows. 0 or INVALID_ENVIRONMENT. */
uint32_t limits_wish_read(struct limits_wish *wish, limits_get *get, void *context,
                          struct error *why);

/* Whether what a selector says is the beginning of several devices' UUIDs. uuids: count of them. */
bool limits_selector_fits_several(const struct limits_selector *selector,
                                  const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count);

/* A table of devices, and those of them that are visible. */
struct limits_devices {
    const uint8_t (*uuids)[LIMITS_UUID_BYTES]; /* the table */
    unsigned count;                            /* its devices, at most DEVICES_MAX */
    unsigned visible;
    unsigned indices[DEVICES_MAX]; /* in the table, of the device that a client calls i */
};

/*
 * Finds the visible devices of a table, whose uuids and count are set. As with
 * CUDA_VISIBLE_DEVICES the list ends before the first device that does not exist, or whose UUID
 * fits more than one. 0, or INVALID_ENVIRONMENT (a device named twice).
 */
uint32_t limits_visible_resolve(const struct limits_wish *wish, struct limits_devices *devices,
                                struct error *why);

/*
 * The device memory limit of each visible device in the list: bytes[i], PROTO_UNSET where none was
 * asked. devices: from limits_visible_resolve. A limit for a device of the
 * table that is not visible has no effect; one for a device that the table lacks, and
 * two for one device, are refused. 0 or INVALID_ENVIRONMENT.
 */
uint32_t limits_memory_resolve(const struct limits_wish *wish, const struct limits_devices *devices,
                               uint64_t bytes[DEVICES_MAX], struct error *why);

/* Whether the list has an entry for a device that is not visible, which has no effect; then *shown
 * names the first one. For a list that limits_memory_resolve took. */
enum { LIMITS_SELECTOR_TEXT = 48 };
bool limits_memory_unseen(const struct limits_wish *wish, const struct limits_devices *devices,
                          char shown[LIMITS_SELECTOR_TEXT]);

/* The entry of the list for one device, in bytes, given its number among the visible ones and its
 * UUID; ALLOWANCE_UNSET: there is none. For a list that limits_memory_resolve took. */
uint64_t limits_memory_listed(const struct limits_wish *wish, uint32_t device,
                              const uint8_t uuid[LIMITS_UUID_BYTES]);

/* The wish for a device whose limit in the list is `listed` (PROTO_UNSET: none). */
struct allowance limits_listed(const struct limits_wish *wish, uint64_t listed);

/* The same on a device of so many bytes of memory: in bytes, without parts of memory. */
struct allowance limits_on_device(const struct limits_wish *wish, uint64_t memory, uint64_t listed);

/* The parts of limits_wish_read, for values that come from elsewhere (a command line). `variable`
 * stands in the sentence. 0 or INVALID_ENVIRONMENT. */
uint32_t limits_parse_visible(struct limits_visible *visible, const char *variable,
                              const char *value, struct error *why);
uint32_t limits_parse_memory(struct limits_memory *memory, const char *variable, const char *value,
                             struct error *why);

/* Whether this is a valid name of a client: at most LIMITS_NAME_MAX bytes of UTF-8 without
 * control characters. */
bool limits_name_is_valid(const char *name);

/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" and its NUL. Returns text. */
#define LIMITS_UUID_TEXT 41
const char *limits_format_uuid(const uint8_t uuid[LIMITS_UUID_BYTES], char text[LIMITS_UUID_TEXT]);

#endif
