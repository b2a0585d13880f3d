/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: jansson makes and writes every value. json_pack() would save the three functions at
 * the top, but no compiler checks its format against its arguments, and an object whose members
 * depend on a condition can't be packed in one call. */
#include "server/supervisor/admin/json.h"

#include "common/units.h"

struct admin_json admin_json_new(void)
{
    json_t *json = json_object();
    return (struct admin_json){json, !json};
}

void admin_json_put(struct admin_json *object, const char *name, json_t *value)
{
    if (json_object_set_new(object->json, name, value) < 0)
        object->failed = true;
}

json_t *admin_json_finish(struct admin_json *object)
{
    if (!object->failed)
        return object->json;
    json_decref(object->json);
    return NULL;
}

json_t *admin_json_amount(uint64_t value)
{
    return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

json_t *admin_json_seconds(uint64_t ns)
{
    return json_real((double)ns / 1e9);
}

json_t *admin_json_clock(uint64_t ns)
{
    uint64_t milliseconds = ns / UNITS_MS;
    return json_real((double)milliseconds / 1e3);
}

json_t *admin_json_percent(uint32_t hundredths)
{
    return json_real(hundredths / 100.0);
}

json_t *admin_json_text(const char *text)
{
    json_t *json = json_string(text);
    if (json)
        return json;
    char clean[512];
    size_t i = 0;
    for (; i < sizeof clean - 1 && text[i]; i++)
        clean[i] = (unsigned char)text[i] >= 0x80 ? '?' : text[i];
    clean[i] = '\0';
    return json_string(clean);
}
