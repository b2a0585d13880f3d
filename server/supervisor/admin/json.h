/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_json: what the answers of the admin socket are built of.
 *
 * A value that could not be made (memory is short) makes the whole object fail: an
 * answer is sent whole or not at all. Any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_JSON_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Digits of a number that is no integer: all that a decimal fraction needs to come back as it was
 * written, and none of the tail that its binary form would show with more. */
#define ADMIN_JSON_DIGITS 15

struct admin_json {
    json_t *json;
    bool failed;
};

struct admin_json admin_json_new(void);

/* Adds a new value, taking it over. */
void admin_json_put(struct admin_json *object, const char *name, json_t *value);

/* The object, the caller's; NULL if anything failed. */
json_t *admin_json_finish(struct admin_json *object);

/* An amount; null for PROTO_UNSET and what JSON's integers can't hold here. */
json_t *admin_json_amount(uint64_t value);

/* Seconds, whole nanoseconds kept; and for people's clocks, whole milliseconds. */
json_t *admin_json_seconds(uint64_t ns);
json_t *admin_json_clock(uint64_t ns);

/* Hundredths of a per cent as per cent. */
json_t *admin_json_percent(uint32_t hundredths);

/* Text that came from a client or a driver, made UTF-8 where it is none. */
json_t *admin_json_text(const char *text);

#endif
