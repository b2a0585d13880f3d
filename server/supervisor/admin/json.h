/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_json: the parts that answers of the admin socket are built of.
 *
 * If a value can't be made because memory is short, the whole object fails: an answer is sent whole
 * or not at all. Functions that return json_t return a new value that the caller owns, or NULL if
 * memory is short. Any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_JSON_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Significant digits of a number that is no integer: as many as a decimal fraction needs to come
 * back as it was written. More digits would show the tail of its binary form. */
#define ADMIN_JSON_DIGITS 15

struct admin_json {
    json_t *json;
    bool failed;
};

struct admin_json admin_json_new(void);

/* Adds a value and takes it over. A NULL value makes the object fail. */
void admin_json_put(struct admin_json *object, const char *name, json_t *value);

/* The finished object; NULL if anything in it failed, and then it is freed. */
json_t *admin_json_finish(struct admin_json *object);

/* An amount. null for PROTO_UNSET and for every amount above what JSON's integers can hold here. */
json_t *admin_json_amount(uint64_t value);

/* A time in seconds: with its nanoseconds; cut to milliseconds, for ages of connections. */
json_t *admin_json_seconds(uint64_t ns);
json_t *admin_json_clock(uint64_t ns);

/* Hundredths of a per cent, as per cent. */
json_t *admin_json_percent(uint32_t hundredths);

/* A text from a client or a driver. If it is no UTF-8, its bytes above 127 are replaced. */
json_t *admin_json_text(const char *text);

#endif
