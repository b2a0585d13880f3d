/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/limits/limits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/units.h"
#include "common/util.h"

#define FORM_MEMORY                                                                                \
    "a comma-separated list of DEVICE=SIZE, each device once, DEVICE an index from 0 or a GPU- "   \
    "or "                                                                                          \
    "MIG- UUID, SIZE a number of bytes or one with K, M, G or T (powers of 1024), such as "        \
    "\"0=1G,1=512MB\""
#define FORM_VISIBLE                                                                               \
    "a comma-separated list of device indices from 0 and GPU- or MIG- UUIDs, each device once, "   \
    "or "                                                                                          \
    "nothing for no device"
#define FORM_PERCENTAGE                                                                            \
    "a number above 0 and up to 100 with at most two digits after the point, without a % sign"
#define FORM_SIZE     "a number of bytes, or one with K, M, G or T (powers of 1024), such as \"512M\""
#define FORM_PRIORITY "a whole number from 0 (normal) to 1000 (lowest)"
#define FORM_PROFILE  "the name of a profile, 1 to 63 bytes of UTF-8 without control characters"
#define FORM_NAME     "at most 63 bytes of UTF-8 without control characters"
#define FORM_SOCKET   "an absolute path of at most 107 bytes"

_Static_assert(LIMITS_NAME_MAX + 1 == sizeof(((struct proto_attach *)0)->name), "attach.name");

/* ---- refusals ---- */

/* A value is quoted with what a terminal or log could trip over replaced, and cut: the form must
 * still fit the `failed` message's text. */
static void quote(char to[80], const char *value, size_t length)
{
    size_t shown = min(length, (size_t)64);
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)value[i];
        to[i] = c < 0x20 || c >= 0x7f || c == '"' ? '?' : (char)c;
    }
    strcpy(to + shown, length > shown ? "..." : "");
}

static int refuse(const char *variable, const char *value, const char *form, char *why,
                  size_t why_size)
{
    char shown[80];
    quote(shown, value, strlen(value));
    if (why_size)
        snprintf(why, why_size, "%s=\"%s\" is not %s", variable, shown, form);
    return -EINVAL;
}

__attribute__((format(printf, 5, 6))) static int refuse_because(const char *variable,
                                                                const char *value, char *why,
                                                                size_t why_size, const char *format,
                                                                ...)
{
    char shown[80], reason[200];
    va_list arguments;
    quote(shown, value, strlen(value));
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (why_size)
        snprintf(why, why_size, "%s=\"%s\": %s", variable, shown, reason);
    return -EINVAL;
}

/* ---- items of lists ---- */

struct item {
    const char *text;
    size_t length;
};

/* The next item before a comma, without the blanks around it; false at the end. A comma at the end
 * is followed by an empty item. */
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

/* The words of people and Slurm for "no device"; CUDA takes anything that is no device so. */
static bool item_ends_list(struct item item)
{
    return word_is(item, "-1") || word_is(item, "none") || word_is(item, "void") ||
           word_is(item, "NoDevFiles");
}

int limits_parse_visible(struct limits_visible *visible, const char *variable, const char *value,
                         char *why, size_t why_size)
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
        /* Later devices are not visible, but a typing error among them is refused all the same. */
        if (!selector_read(&selector, item))
            return refuse(variable, value, FORM_VISIBLE, why, why_size);
        if (ended)
            continue;
        for (unsigned i = 0; i < visible->count; i++)
            if (selector_equal(&visible->devices[i], &selector))
                return refuse(variable, value, FORM_VISIBLE, why, why_size);
        if (visible->count == LIMITS_DEVICES_MAX)
            return refuse_because(variable, value, why, why_size,
                                  "at most %d devices may be listed", LIMITS_DEVICES_MAX);
        visible->devices[visible->count++] = selector;
    }
    return 0;
}

int limits_parse_memory(struct limits_memory *memory, const char *variable, const char *value,
                        char *why, size_t why_size)
{
    const char *rest = value;
    struct item item;
    memory->count = 0;
    while (item_next(&rest, &item)) {
        struct limits_selector selector;
        uint64_t bytes;
        const char *equals = memchr(item.text, '=', item.length);
        if (!equals)
            return refuse(variable, value, FORM_MEMORY, why, why_size);
        struct item left = {item.text, (size_t)(equals - item.text)};
        struct item right = {equals + 1, item.length - left.length - 1};
        /* PROTO_UNSET would read as no limit at all. */
        if (!selector_read(&selector, left) ||
            units_parse_size(right.text, right.length, &bytes) != 0 || bytes == PROTO_UNSET)
            return refuse(variable, value, FORM_MEMORY, why, why_size);
        for (unsigned i = 0; i < memory->count; i++)
            if (selector_equal(&memory->entries[i].device, &selector))
                return refuse(variable, value, FORM_MEMORY, why, why_size);
        if (memory->count == LIMITS_DEVICES_MAX)
            return refuse_because(variable, value, why, why_size,
                                  "at most %d devices may be listed", LIMITS_DEVICES_MAX);
        memory->entries[memory->count].device = selector;
        memory->entries[memory->count++].bytes = bytes;
    }
    return 0;
}

/* ---- names ---- */

/* Bytes of one valid, shortest-form UTF-8 character that is no control character; 0 if it is none.
 */
static size_t character_bytes(const unsigned char *at)
{
    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f;
    size_t more = at[0] >= 0xf0 ? 3 : at[0] >= 0xe0 ? 2 : 1;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    uint32_t code = at[0] & (0x3fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool shortest = more == 1 || code >= (more == 2 ? 0x800u : 0x10000u);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return shortest && !surrogate && code >= 0xa0 && code <= 0x10ffff ? more + 1 : 0;
}

bool limits_name_is_valid(const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    while (*at) {
        size_t bytes = character_bytes(at);
        if (!bytes)
            return false;
        at += bytes;
        if ((size_t)(at - (const unsigned char *)name) > LIMITS_NAME_MAX)
            return false;
    }
    return true;
}

void limits_clean_name(char *name)
{
    while (*name) {
        size_t bytes = character_bytes((const unsigned char *)name);
        if (!bytes)
            *name = '?';
        name += bytes ? bytes : 1;
    }
}

/* ---- the wish ---- */

struct reader {
    limits_get *get;
    void *context;
    char *why;
    size_t why_size;
    const char *from; /* the variable that was found */
};

static const char *look_up(struct reader *reader, const char *ours, const char *namesake)
{
    const char *value = reader->get(ours, reader->context);
    reader->from = value ? ours : NULL;
    if (!value && namesake && (value = reader->get(namesake, reader->context)))
        reader->from = namesake;
    return value;
}

static int refuse_read(struct reader *reader, const char *value, const char *form)
{
    return refuse(reader->from, value, form, reader->why, reader->why_size);
}

/* The limits by the names that they have everywhere else, beside those that MPS gave them; of both
 * the tighter one, and MPS's own variable gives way to ours. */
static int read_limits(struct limits_wish *wish, struct reader *reader)
{
    struct dialect_amount amount;
    const char *value = look_up(reader, allowance_resource(RESOURCE_THREADS)->limit_variable, NULL);
    if (value && dialect_parse_share(value, strlen(value), &amount) != 0)
        return refuse_read(reader, value, DIALECT_FORM_SHARE);
    bool gives_way =
        !wish->thread_percentage_from || strncmp(wish->thread_percentage_from, "CUDA_", 5) == 0;
    if (value && (gives_way || amount.value < wish->thread_percentage)) {
        wish->thread_percentage = (uint32_t)amount.value;
        wish->thread_percentage_from = reader->from;
    }

    value = look_up(reader, allowance_resource(RESOURCE_HOST_MEMORY)->limit_variable, NULL);
    if (value && dialect_parse_size(value, strlen(value), &amount) != 0)
        return refuse_read(reader, value, FORM_SIZE);
    if (value && amount.value < wish->host_memory) {
        wish->host_memory = amount.value;
        wish->host_memory_from = reader->from;
    }

    value = look_up(reader, allowance_resource(RESOURCE_MEMORY)->limit_variable, NULL);
    wish->memory_limit_from = reader->from;
    if (value && dialect_parse_amount(value, strlen(value), &wish->memory_limit) != 0)
        return refuse_read(reader, value, DIALECT_FORM_AMOUNT);
    return 0;
}

static int read_amounts(struct limits_wish *wish, struct reader *reader)
{
    uint64_t number;
    const char *value =
        look_up(reader, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    wish->thread_percentage_from = reader->from;
    if (value && units_parse_percentage(value, strlen(value), &wish->thread_percentage) != 0)
        return refuse_read(reader, value, FORM_PERCENTAGE);

    value = look_up(reader, "GPUSHARE_PINNED_HOST_MEM_LIMIT", NULL);
    wish->host_memory_from = reader->from;
    if (value && (units_parse_size(value, strlen(value), &wish->host_memory) != 0 ||
                  wish->host_memory == PROTO_UNSET))
        return refuse_read(reader, value, FORM_SIZE);
    int result = read_limits(wish, reader);
    if (result < 0)
        return result;

    value = look_up(reader, "GPUSHARE_CLIENT_PRIORITY", "CUDA_MPS_CLIENT_PRIORITY");
    wish->priority_from = reader->from;
    if (value) {
        if (units_parse_number(value, strlen(value), LIMITS_PRIORITY_MAX, &number) != 0)
            return refuse_read(reader, value, FORM_PRIORITY);
        wish->priority = (uint32_t)number;
    }
    return 0;
}

static int read_memory_requests(struct limits_wish *wish, struct reader *reader)
{
    const char *value =
        look_up(reader, allowance_resource(RESOURCE_MEMORY)->request_variable, NULL);
    wish->memory_request_from = reader->from;
    if (value && dialect_parse_amount(value, strlen(value), &wish->memory_request) != 0)
        return refuse_read(reader, value, DIALECT_FORM_AMOUNT);

    value = look_up(reader, allowance_resource(RESOURCE_HOST_MEMORY)->request_variable, NULL);
    wish->host_request_from = reader->from;
    struct dialect_amount host = {DIALECT_BYTES, 0};
    if (value && dialect_parse_size(value, strlen(value), &host) != 0)
        return refuse_read(reader, value, FORM_SIZE);
    wish->host_request = host.value;
    if (wish->host_request <= wish->host_memory)
        return 0;
    char limit[UNITS_TEXT];
    return refuse_because(wish->host_request_from, value, reader->why, reader->why_size,
                          "%s limits it to %s", wish->host_memory_from,
                          units_format_size(wish->host_memory, limit));
}

static int read_share(struct reader *reader, const char *variable, uint32_t *share,
                      const char **from)
{
    struct dialect_amount amount;
    const char *value = look_up(reader, variable, NULL);
    *from = reader->from;
    if (!value)
        return 0;
    if (dialect_parse_share(value, strlen(value), &amount) != 0)
        return refuse_read(reader, value, DIALECT_FORM_SHARE);
    *share = (uint32_t)amount.value;
    return 0;
}

/* Nobody can be guaranteed more than it wants to have at most. */
static int check_request(uint32_t request, const char *from, uint32_t limit, const char *limit_from,
                         struct reader *reader)
{
    char asked[UNITS_TEXT], most[UNITS_TEXT];
    if (!request || !limit || request <= limit)
        return 0;
    if (reader->why_size)
        snprintf(reader->why, reader->why_size, "%s requests %s %%, and %s limits it to %s %%",
                 from, units_format_percentage(request, asked), limit_from,
                 units_format_percentage(limit, most));
    return -EINVAL;
}

static int read_shares(struct limits_wish *wish, struct reader *reader)
{
    int result = read_share(reader, allowance_resource(RESOURCE_THREADS)->request_variable,
                            &wish->thread_request, &wish->thread_request_from);
    if (result == 0)
        result = read_share(reader, allowance_resource(RESOURCE_TIME)->request_variable,
                            &wish->time_request, &wish->time_request_from);
    if (result == 0)
        result = read_share(reader, allowance_resource(RESOURCE_TIME)->limit_variable,
                            &wish->time_limit, &wish->time_limit_from);
    if (result == 0)
        result = read_share(reader, "GPUSHARE_FRACTION", &wish->fraction, &wish->fraction_from);
    if (result == 0 && wish->fraction &&
        (!wish->time_request || wish->fraction < wish->time_request)) {
        wish->time_request = wish->fraction;
        wish->time_request_from = wish->fraction_from;
    }
    if (result == 0)
        result = check_request(wish->thread_request, wish->thread_request_from,
                               wish->thread_percentage, wish->thread_percentage_from, reader);
    if (result == 0)
        result = check_request(wish->time_request, wish->time_request_from, wish->time_limit,
                               wish->time_limit_from, reader);
    if (result == 0 && wish->memory_request.unit == DIALECT_SHARE)
        result = check_request((uint32_t)wish->memory_request.value, wish->memory_request_from,
                               wish->fraction, wish->fraction_from, reader);
    if (result == 0 && wish->memory_request.unit == DIALECT_SHARE &&
        wish->memory_limit.unit == DIALECT_SHARE)
        result = check_request((uint32_t)wish->memory_request.value, wish->memory_request_from,
                               (uint32_t)wish->memory_limit.value, wish->memory_limit_from, reader);
    return result;
}

static int read_lists(struct limits_wish *wish, struct reader *reader)
{
    int result = 0;
    const char *value =
        look_up(reader, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    wish->memory_from = reader->from;
    if (value)
        result =
            limits_parse_memory(&wish->memory, reader->from, value, reader->why, reader->why_size);
    if (result < 0)
        return result;
    value = look_up(reader, "GPUSHARE_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES");
    wish->visible_from = reader->from;
    if (value)
        result = limits_parse_visible(&wish->visible, reader->from, value, reader->why,
                                      reader->why_size);
    return result;
}

static int read_texts(struct limits_wish *wish, struct reader *reader)
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

int limits_wish_read(struct limits_wish *wish, limits_get *get, void *context, char *why,
                     size_t why_size)
{
    struct reader reader = {.get = get, .context = context, .why = why, .why_size = why_size};
    memset(wish, 0, sizeof *wish);
    wish->host_memory = PROTO_UNSET;
    int result = read_amounts(wish, &reader);
    if (result == 0)
        result = read_memory_requests(wish, &reader);
    if (result == 0)
        result = read_shares(wish, &reader);
    if (result == 0)
        result = read_lists(wish, &reader);
    if (result == 0)
        result = read_texts(wish, &reader);
    return result;
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

/* The index of the one device whose UUID begins so. Devices and MIG instances share the space of
 * UUIDs, so the prefix before it decides nothing. */
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

int limits_visible_resolve(const struct limits_wish *wish,
                           const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count,
                           unsigned indices[LIMITS_DEVICES_MAX], char *why, size_t why_size)
{
    unsigned visible = 0;
    if (count > LIMITS_DEVICES_MAX)
        count = LIMITS_DEVICES_MAX;
    if (!wish->visible.listed) {
        for (; visible < count; visible++)
            indices[visible] = visible;
        return (int)visible;
    }
    for (unsigned i = 0; i < wish->visible.count; i++) {
        const struct limits_selector *selector = &wish->visible.devices[i];
        int index = selector->by_uuid           ? uuid_find(selector->uuid, uuids, count)
                    : selector->ordinal < count ? (int)selector->ordinal
                                                : FOUND_NONE;
        if (index < 0)
            break;
        for (unsigned j = 0; j < visible; j++) {
            if (indices[j] != (unsigned)index)
                continue;
            if (why_size)
                snprintf(why, why_size, "%s names device %d twice: name each device once",
                         wish->visible_from ? wish->visible_from : "the list of devices", index);
            return -EINVAL;
        }
        indices[visible++] = (unsigned)index;
    }
    return (int)visible;
}

/* The visible device that an entry means: its number, `visible` for one that is not visible, or a
 * FOUND_ value. */
static int memory_find(const struct limits_selector *selector,
                       const uint8_t (*uuids)[LIMITS_UUID_BYTES], unsigned count,
                       const unsigned *indices, unsigned visible)
{
    if (!selector->by_uuid) {
        if (selector->ordinal >= count)
            return FOUND_NONE;
        return selector->ordinal < visible ? (int)selector->ordinal : (int)visible;
    }
    int index = uuid_find(selector->uuid, uuids, count);
    if (index < 0)
        return index;
    for (unsigned i = 0; i < visible; i++)
        if (indices[i] == (unsigned)index)
            return (int)i;
    return (int)visible;
}

int limits_memory_resolve(const struct limits_wish *wish, const uint8_t (*uuids)[LIMITS_UUID_BYTES],
                          unsigned count, const unsigned *indices, unsigned visible,
                          uint64_t bytes[LIMITS_DEVICES_MAX], char *why, size_t why_size)
{
    const char *from = wish->memory_from ? wish->memory_from : "the device memory limit";
    for (unsigned i = 0; i < LIMITS_DEVICES_MAX; i++)
        bytes[i] = PROTO_UNSET;
    for (unsigned i = 0; i < wish->memory.count; i++) {
        const struct limits_selector *selector = &wish->memory.entries[i].device;
        int device = memory_find(selector, uuids, count, indices, visible);
        char shown[48];
        if (selector->by_uuid)
            snprintf(shown, sizeof shown, "UUID %s", selector->uuid);
        else
            snprintf(shown, sizeof shown, "%u", selector->ordinal);
        if (device < 0) {
            if (why_size)
                snprintf(why, why_size,
                         "%s limits device %s, which %s: the server has %u device%s, numbered "
                         "from 0",
                         from, shown,
                         device == FOUND_SEVERAL ? "could be one of several" : "does not exist",
                         count, count == 1 ? "" : "s");
            return -EINVAL;
        }
        if ((unsigned)device >= visible)
            continue;
        if (bytes[device] != PROTO_UNSET) {
            if (why_size)
                snprintf(why, why_size, "%s limits device %d twice: name each device once", from,
                         device);
            return -EINVAL;
        }
        bytes[device] = wish->memory.entries[i].bytes;
    }
    return 0;
}

/* ---- tightening ---- */

uint64_t limits_tighter(uint64_t granted, uint64_t asked)
{
    /* PROTO_UNSET is the largest value, so it never wins against a limit. */
    return min(granted, asked);
}

uint32_t limits_tighter_percentage(uint32_t granted, uint32_t asked)
{
    if (granted == 0 || asked == 0)
        return granted + asked;
    return min(granted, asked);
}

uint32_t limits_tighter_priority(uint32_t granted, uint32_t asked)
{
    return max(granted, asked);
}

uint64_t limits_lower_request(uint64_t a, uint64_t b)
{
    if (!a || !b)
        return a ? a : b;
    return min(a, b);
}

uint64_t limits_tighter_amount(uint64_t granted, struct dialect_amount amount, uint64_t bytes)
{
    return amount.unit == DIALECT_UNSET ? granted
                                        : limits_tighter(granted, limits_amount(amount, bytes));
}

uint64_t limits_amount(struct dialect_amount amount, uint64_t bytes)
{
    if (amount.unit == DIALECT_SHARE)
        return allowance_part(bytes, (uint32_t)amount.value);
    return amount.unit == DIALECT_BYTES ? amount.value : 0;
}
