/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/limits/limits.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/messages.h"
#include "common/printable.h"
#include "common/units.h"
#include "common/util.h"

#define FORM_MEMORY                                                                                \
    "a comma-separated list of DEVICE=SIZE, each device once, DEVICE an index from 0 or a GPU- "   \
    "or "                                                                                          \
    "MIG- UUID, SIZE a number with K, M, G or T (powers of 1024), such as "                        \
    "\"0=1G,1=512MB\""
#define FORM_VISIBLE                                                                               \
    "a comma-separated list of device indices from 0 and GPU- or MIG- UUIDs, each device once, "   \
    "or "                                                                                          \
    "nothing for no device"
#define FORM_PROFILE "the name of a profile, 1 to 63 bytes of UTF-8 without control characters"
#define FORM_NAME    "at most 63 bytes of UTF-8 without control characters"
#define FORM_SOCKET  "an absolute path of at most 107 bytes"

_Static_assert(LIMITS_NAME_MAX + 1 == sizeof(((struct proto_attach *)0)->name), "attach.name");

/* ---- refusals ---- */

/* Quotes a value in a sentence. Characters that a terminal or a log could misread are replaced,
 * and the value is cut, because the accepted form must still fit into the text of a `failed`
 * message. */
static void quote_value(char to[80], const char *value, size_t length)
{
    size_t shown = min(length, (size_t)64);
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)value[i];
        to[i] = c < 0x20 || c >= 0x7f || c == '"' ? '?' : (char)c;
    }
    strcpy(to + shown, length > shown ? "..." : "");
}

static uint32_t refuse_value(const char *variable, const char *value, const char *form,
                             struct error *why)
{
    char shown[80];
    quote_value(shown, value, strlen(value));
    return error_set(why, MESSAGE(variable_form), variable, shown, form);
}

static uint32_t refuse_long_list(const char *variable, const char *value, struct error *why)
{
    char shown[80];
    quote_value(shown, value, strlen(value));
    return error_set(why, MESSAGE(variable_list), variable, shown, DEVICES_MAX);
}

/* ---- items of lists ---- */

struct item {
    const char *text;
    size_t length;
};

/* Finds the next item before a comma, without the blanks around it. Returns false at the end. A
 * comma at the end of the list is followed by an empty item, which is then refused. */
static bool item_next(const char **rest, struct item *item)
{
    if (!*rest)
        return false;
    const char *comma = strchr(*rest, ',');
    item->text = *rest;
    item->length = comma ? (size_t)(comma - *rest) : strlen(*rest);
    *rest = comma ? comma + 1 : NULL;
    while (item->length && *item->text == ' ') {
        item->text++;
        item->length--;
    }
    while (item->length && item->text[item->length - 1] == ' ')
        item->length--;
    return true;
}

static char hex_lower(char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))
        return c;
    return c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : 0;
}

/* An index, or GPU- or MIG- and the beginning of a UUID: at least one hexadecimal digit, and dashes
 * exactly where a UUID's text has them. */
static bool selector_read(struct limits_selector *selector, struct item item)
{
    *selector = (struct limits_selector){0};
    if (item.length < 4 ||
        (strncasecmp(item.text, "GPU-", 4) != 0 && strncasecmp(item.text, "MIG-", 4) != 0)) {
        uint64_t ordinal;
        if (units_parse_number(item.text, item.length, UINT32_MAX, &ordinal) != 0)
            return false;
        selector->ordinal = (uint32_t)ordinal;
        return true;
    }
    size_t length = item.length - 4;
    if (length == 0 || length > 36)
        return false;
    selector->by_uuid = true;
    selector->instance = strncasecmp(item.text, "MIG-", 4) == 0;
    for (size_t i = 0; i < length; i++) {
        char c = item.text[4 + i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        selector->uuid[i] = dash ? c : hex_lower(c);
        if (dash ? c != '-' : !selector->uuid[i])
            return false;
    }
    return true;
}

static bool selector_equal(const struct limits_selector *a, const struct limits_selector *b)
{
    return a->by_uuid == b->by_uuid && a->ordinal == b->ordinal && strcmp(a->uuid, b->uuid) == 0;
}

static bool word_is(struct item item, const char *word)
{
    return item.length == strlen(word) && strncasecmp(item.text, word, item.length) == 0;
}

/* People and Slurm write these for "no device". CUDA treats any entry that is no device this
 * way. */
static bool item_ends_list(struct item item)
{
    return word_is(item, "-1") || word_is(item, "none") || word_is(item, "void") ||
           word_is(item, "NoDevFiles");
}

uint32_t limits_parse_visible(struct limits_visible *visible, const char *variable,
                              const char *value, struct error *why)
{
    const char *rest = value;
    struct item item;
    *visible = (struct limits_visible){.listed = true};
    if (*value == '\0')
        return 0;
    bool ended = false;
    while (item_next(&rest, &item)) {
        struct limits_selector selector;
        if (item_ends_list(item)) {
            ended = true;
            continue;
        }
        /* The devices behind such a word are not visible. A typing error among them is refused
         * all the same. */
        if (!selector_read(&selector, item))
            return refuse_value(variable, value, FORM_VISIBLE, why);
        if (ended)
            continue;
        for (unsigned i = 0; i < visible->count; i++)
            if (selector_equal(&visible->devices[i], &selector))
                return refuse_value(variable, value, FORM_VISIBLE, why);
        if (visible->count == DEVICES_MAX)
            return refuse_long_list(variable, value, why);
        visible->devices[visible->count++] = selector;
    }
    return 0;
}

uint32_t limits_parse_memory(struct limits_memory *memory, const char *variable, const char *value,
                             struct error *why)
{
    const char *rest = value;
    char room[DIALECT_FORM_ROOM];
    struct item item;
    memory->count = 0;
    while (item_next(&rest, &item)) {
        struct limits_selector selector;
        uint64_t bytes;
        const char *equals = memchr(item.text, '=', item.length);
        if (!equals)
            return refuse_value(variable, value, FORM_MEMORY, why);
        struct item left = {item.text, (size_t)(equals - item.text)};
        struct item right = {equals + 1, item.length - left.length - 1};
        /* The protocol would read PROTO_UNSET as "no limit". */
        if (dialect_unit_is_missing(right.text, right.length))
            return refuse_value(variable, value,
                                dialect_form(NULL, false, right.text, right.length, room), why);
        if (!selector_read(&selector, left) ||
            units_parse_size(right.text, right.length, &bytes) != 0 || bytes == PROTO_UNSET)
            return refuse_value(variable, value, FORM_MEMORY, why);
        for (unsigned i = 0; i < memory->count; i++)
            if (selector_equal(&memory->entries[i].device, &selector))
                return refuse_value(variable, value, FORM_MEMORY, why);
        if (memory->count == DEVICES_MAX)
            return refuse_long_list(variable, value, why);
        memory->entries[memory->count].device = selector;
        memory->entries[memory->count++].bytes = bytes;
    }
    return 0;
}

/* ---- names ---- */

bool limits_name_is_valid(const char *name)
{
    const char *at = name;
    while (*at) {
        size_t bytes = printable_bytes(at);
        if (!bytes)
            return false;
        at += bytes;
        if ((size_t)(at - name) > LIMITS_NAME_MAX)
            return false;
    }
    return true;
}

/* ---- the wish ---- */

struct reader {
    limits_get *get;
    void *context;
    struct error *why;
    const char *from;  /* the variable that was found */
    bool memory_named; /* a variable of ours named like the limit of memory was found */
};

static const char *look_up(struct reader *reader, const char *ours, const char *namesake)
{
    const char *value = reader->get(ours, reader->context);
    reader->from = value ? ours : NULL;
    if (!value && namesake && (value = reader->get(namesake, reader->context)))
        reader->from = namesake;
    return value;
}

static uint32_t refuse_read(struct reader *reader, const char *value, const char *form)
{
    return refuse_value(reader->from, value, form, reader->why);
}

static struct allowance_source by_self(enum proto_source source)
{
    return (struct allowance_source){ALLOWANCE_BY_SELF, source};
}

/* Adds a value that holds beside those that were read before. */
static void wish_tighten(struct limits_wish *wish, struct allowance *by, enum proto_source source)
{
    allowance_attribute(by, by_self(source));
    allowance_tighten(&wish->allowance, by);
}

/* The variable that is named like the value. */
static uint32_t read_own(struct limits_wish *wish, struct reader *reader, enum resource resource,
                         enum allowance_bound bound)
{
    const struct allowance_resource *row = allowance_resource(resource);
    struct dialect_amount amount;
    struct allowance by = allowance_none;
    char room[DIALECT_FORM_ROOM];
    const char *value = look_up(
        reader, bound == ALLOWANCE_REQUEST ? row->request_variable : row->limit_variable, NULL);
    if (!value)
        return 0;
    if (row->parse(value, strlen(value), &amount) != 0)
        return refuse_read(reader, value, allowance_form(resource, value, room));
    /* A request of 0 counts as unset, so that the administrator's guarantee stays. */
    if (bound == ALLOWANCE_REQUEST && !amount.value)
        return 0;
    allowance_put(&by, resource, bound, amount);
    wish_tighten(wish, &by, PROTO_SOURCE_VARIABLE);
    return 0;
}

/* The limit as MPS names it. MPS's own variable counts where no other names the limit. */
static uint32_t read_alias(struct limits_wish *wish, struct reader *reader, enum resource resource)
{
    const struct allowance_resource *row = allowance_resource(resource);
    struct dialect_amount amount;
    struct allowance by = allowance_none;
    char room[DIALECT_FORM_ROOM];
    bool named = allowance_has(&wish->allowance, resource, ALLOWANCE_LIMIT);
    if (!row->parse_alias)
        return 0;
    const char *value = look_up(reader, row->limit_alias, named ? NULL : row->limit_namesake);
    if (!value)
        return 0;
    if (row->parse_alias(value, strlen(value), &amount) != 0)
        return refuse_read(reader, value,
                           row->unit == DIALECT_BYTES
                               ? dialect_form(row->alias_form, false, value, strlen(value), room)
                               : row->alias_form);
    allowance_put(&by, resource, ALLOWANCE_LIMIT, amount);
    wish_tighten(wish, &by,
                 reader->from == row->limit_alias ? PROTO_SOURCE_ALIAS : PROTO_SOURCE_NAMESAKE);
    return 0;
}

static uint32_t read_fraction(struct limits_wish *wish, struct reader *reader)
{
    struct dialect_amount share;
    struct allowance by = allowance_none;
    const char *value = look_up(reader, ALLOWANCE_FRACTION_VARIABLE, NULL);
    if (!value)
        return 0;
    if (dialect_parse_share(value, strlen(value), &share) != 0)
        return refuse_read(reader, value, DIALECT_FORM_SHARE);
    by.part[RESOURCE_MEMORY].limit = by.time.request = share.value;
    wish_tighten(wish, &by, PROTO_SOURCE_FRACTION);
    return 0;
}

static uint32_t read_scalar(struct limits_wish *wish, struct reader *reader, enum scalar scalar)
{
    const struct allowance_scalar *row = allowance_scalar(scalar);
    struct allowance by = allowance_none;
    const char *value = look_up(reader, row->variable, row->namesake);
    if (!value)
        return 0;
    if (allowance_parse_scalar(scalar, value, strlen(value), &by.scalar[scalar]) != 0)
        return refuse_read(reader, value, row->form);
    wish_tighten(wish, &by,
                 reader->from == row->variable ? PROTO_SOURCE_VARIABLE : PROTO_SOURCE_NAMESAKE);
    return 0;
}

/* A client can't be guaranteed more than it may have. */
static uint32_t check_requests(const struct limits_wish *wish, struct error *why)
{
    struct allowance known = wish->allowance;
    struct allowance_excess excess;
    char asked[UNITS_TEXT], most[UNITS_TEXT];
    known.memory = allowance_none.memory;
    if (!allowance_exceeds(&known, &excess))
        return 0;
    return error_set(why, MESSAGE(variable_request),
                     allowance_variable(excess.resource, ALLOWANCE_REQUEST,
                                        (enum proto_source)excess.request_from.detail),
                     dialect_format(excess.request, asked),
                     allowance_variable(excess.resource, ALLOWANCE_LIMIT,
                                        (enum proto_source)excess.limit_from.detail),
                     dialect_format(excess.limit, most));
}

static uint32_t read_allowance(struct limits_wish *wish, struct reader *reader)
{
    uint32_t error = 0;
    for (enum resource i = 0; !error && i < RESOURCES; i++) {
        error = read_own(wish, reader, i, ALLOWANCE_REQUEST);
        if (!error)
            error = read_own(wish, reader, i, ALLOWANCE_LIMIT);
        if (!error)
            error = read_alias(wish, reader, i);
    }
    reader->memory_named = allowance_has(&wish->allowance, RESOURCE_MEMORY, ALLOWANCE_LIMIT);
    if (!error)
        error = read_fraction(wish, reader);
    for (enum scalar i = 0; !error && i < SCALARS; i++)
        error = read_scalar(wish, reader, i);
    return error ? error : check_requests(wish, reader->why);
}

static uint32_t read_lists(struct limits_wish *wish, struct reader *reader)
{
    const struct allowance_resource *memory = allowance_resource(RESOURCE_MEMORY);
    uint32_t error = 0;
    const char *value =
        look_up(reader, memory->limit_alias, reader->memory_named ? NULL : memory->limit_namesake);
    wish->memory_from = reader->from;
    wish->memory_source =
        reader->from == memory->limit_alias ? PROTO_SOURCE_ALIAS : PROTO_SOURCE_NAMESAKE;
    if (value)
        error = limits_parse_memory(&wish->memory, reader->from, value, reader->why);
    if (error)
        return error;
    value = look_up(reader, "GPUSHARE_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES");
    wish->visible_from = reader->from;
    if (value)
        error = limits_parse_visible(&wish->visible, reader->from, value, reader->why);
    return error;
}

static uint32_t read_texts(struct limits_wish *wish, struct reader *reader)
{
    const char *value = look_up(reader, "GPUSHARE_CLIENT_NAME", NULL);
    wish->name_from = reader->from;
    if (value && !limits_name_is_valid(value))
        return refuse_read(reader, value, FORM_NAME);
    if (value)
        strcpy(wish->name, value);

    value = look_up(reader, "GPUSHARE_PROFILE", NULL);
    wish->profile_from = reader->from;
    if (value && (!*value || !limits_name_is_valid(value)))
        return refuse_read(reader, value, FORM_PROFILE);
    if (value)
        strcpy(wish->profile, value);

    value = look_up(reader, "GPUSHARE_SOCKET", NULL);
    wish->socket_from = reader->from;
    if (value && (value[0] != '/' || strlen(value) > LIMITS_SOCKET_MAX))
        return refuse_read(reader, value, FORM_SOCKET);
    if (value)
        strcpy(wish->socket, value);
    return 0;
}

uint32_t limits_wish_read(struct limits_wish *wish, limits_get *get, void *context,
                          struct error *why)
{
    struct reader reader = {.get = get, .context = context, .why = why};
    memset(wish, 0, sizeof *wish);
    wish->allowance = allowance_none;
    uint32_t error = read_allowance(wish, &reader);
    if (!error)
        error = read_lists(wish, &reader);
    if (!error)
        error = read_texts(wish, &reader);
    return error;
}

/* ---- resolution ---- */

const char *limits_format_uuid(const uint8_t uuid[LIMITS_UUID_BYTES], char text[LIMITS_UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    char *to = text;
    memcpy(to, "GPU-", 4);
    to += 4;
    for (int i = 0; i < LIMITS_UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[uuid[i] >> 4];
        *to++ = digits[uuid[i] & 15];
    }
    *to = '\0';
    return text;
}

enum { FOUND_NONE = -1, FOUND_SEVERAL = -2 };

/* The index of the only device whose UUID begins with this text. GPUs and MIG instances have
 * UUIDs from one space, so the prefix GPU- or MIG- decides nothing. */
static int uuid_find(const char *beginning, const uint8_t (*uuids)[LIMITS_UUID_BYTES],
                     unsigned count)
{
    int found = FOUND_NONE;
    for (unsigned i = 0; i < count; i++) {
        char text[LIMITS_UUID_TEXT];
        limits_format_uuid(uuids[i], text);
        if (strncmp(text + 4, beginning, strlen(beginning)) != 0)
            continue;
        if (found != FOUND_NONE)
            return FOUND_SEVERAL;
        found = (int)i;
    }
    return found;
}

bool limits_selector_fits_several(const struct limits_selector *selector,
                                  const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count)
{
    return selector->by_uuid && uuid_find(selector->uuid, uuids, count) == FOUND_SEVERAL;
}

uint32_t limits_visible_resolve(const struct limits_wish *wish, struct limits_devices *devices,
                                struct error *why)
{
    unsigned found = 0, *indices = devices->indices;
    const unsigned count = min(devices->count, (unsigned)DEVICES_MAX);
    if (!wish->visible.listed) {
        for (; found < count; found++)
            indices[found] = found;
        devices->visible = found;
        return 0;
    }
    for (unsigned i = 0; i < wish->visible.count; i++) {
        const struct limits_selector *selector = &wish->visible.devices[i];
        int index = selector->by_uuid           ? uuid_find(selector->uuid, devices->uuids, count)
                    : selector->ordinal < count ? (int)selector->ordinal
                                                : FOUND_NONE;
        if (index < 0)
            break;
        for (unsigned j = 0; j < found; j++) {
            if (indices[j] != (unsigned)index)
                continue;
            return error_set(why, MESSAGE(variable_device_twice), wish->visible_from, index);
        }
        indices[found++] = (unsigned)index;
    }
    devices->visible = found;
    return 0;
}

/* The visible device that an entry means: its number; `visible` for a device that is not
 * visible; or a value of the FOUND_ constants. */
static int memory_find(const struct limits_selector *selector, const struct limits_devices *devices)
{
    if (!selector->by_uuid)
        return selector->ordinal >= devices->count ? FOUND_NONE
                                                   : (int)min(selector->ordinal, devices->visible);
    int index = uuid_find(selector->uuid, devices->uuids, devices->count);
    if (index < 0)
        return index;
    for (unsigned i = 0; i < devices->visible; i++)
        if (devices->indices[i] == (unsigned)index)
            return (int)i;
    return (int)devices->visible;
}

static const char *selector_show(const struct limits_selector *selector,
                                 char shown[LIMITS_SELECTOR_TEXT])
{
    if (selector->by_uuid)
        snprintf(shown, LIMITS_SELECTOR_TEXT, "UUID %s", selector->uuid);
    else
        snprintf(shown, LIMITS_SELECTOR_TEXT, "%u", selector->ordinal);
    return shown;
}

bool limits_memory_unseen(const struct limits_wish *wish, const struct limits_devices *devices,
                          char shown[LIMITS_SELECTOR_TEXT])
{
    for (unsigned i = 0; i < wish->memory.count; i++) {
        const struct limits_selector *selector = &wish->memory.entries[i].device;
        if (memory_find(selector, devices) != (int)devices->visible)
            continue;
        selector_show(selector, shown);
        return true;
    }
    return false;
}

uint32_t limits_memory_resolve(const struct limits_wish *wish, const struct limits_devices *devices,
                               uint64_t bytes[DEVICES_MAX], struct error *why)
{
    const char *from = wish->memory_from;
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        bytes[i] = PROTO_UNSET;
    for (unsigned i = 0; i < wish->memory.count; i++) {
        const struct limits_selector *selector = &wish->memory.entries[i].device;
        int device = memory_find(selector, devices);
        char shown[LIMITS_SELECTOR_TEXT];
        selector_show(selector, shown);
        if (device == FOUND_SEVERAL)
            return error_set(why, MESSAGE(variable_device_unclear), from, shown, devices->count);
        if (device < 0)
            return error_set(why, MESSAGE(variable_no_device), from, shown, devices->count);
        if ((unsigned)device >= devices->visible)
            continue;
        if (bytes[device] != PROTO_UNSET)
            return error_set(why, MESSAGE(variable_limit_twice), from, device);
        bytes[device] = wish->memory.entries[i].bytes;
    }
    return 0;
}

uint64_t limits_memory_listed(const struct limits_wish *wish, uint32_t device,
                              const uint8_t uuid[LIMITS_UUID_BYTES])
{
    char text[LIMITS_UUID_TEXT];
    limits_format_uuid(uuid, text);
    for (unsigned i = 0; i < wish->memory.count; i++) {
        const struct limits_selector *selector = &wish->memory.entries[i].device;
        if (selector->by_uuid ? !strncmp(text + 4, selector->uuid, strlen(selector->uuid))
                              : selector->ordinal == device)
            return wish->memory.entries[i].bytes;
    }
    return ALLOWANCE_UNSET;
}

struct allowance limits_listed(const struct limits_wish *wish, uint64_t listed)
{
    struct allowance to = wish->allowance, by = allowance_none;
    by.memory.limit = listed;
    allowance_attribute(&by, by_self(wish->memory_source));
    allowance_tighten(&to, &by);
    return to;
}

struct allowance limits_on_device(const struct limits_wish *wish, uint64_t memory, uint64_t listed)
{
    struct allowance to = limits_listed(wish, listed);
    allowance_resolve(&to, RESOURCE_MEMORY, memory);
    return to;
}
