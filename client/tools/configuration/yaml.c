/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/configuration/yaml.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

enum { WIDTH = 120 };

/* The emitter takes the event over, also when it fails. made: whether there was memory for it. */
static int emit(yaml_emitter_t *emitter, yaml_event_t *event, int made)
{
    return made && yaml_emitter_emit(emitter, event) ? 0 : -1;
}

/* plain: YAML may read it as something else than a text. */
static int emit_text(yaml_emitter_t *emitter, const char *text, size_t length, bool plain)
{
    yaml_event_t event;
    return emit(emitter, &event,
                yaml_scalar_event_initialize(
                    &event, NULL, NULL, (const yaml_char_t *)text, (int)length, plain, true,
                    plain ? YAML_ANY_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE));
}

static bool looks_null(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(text, nulls[i]) == 0)
            return true;
    return false;
}

static int emit_scalar(yaml_emitter_t *emitter, const json_t *value)
{
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        return emit_text(emitter, text, json_string_length(value), !looks_null(text));
    }
    if (json_is_null(value))
        return emit_text(emitter, "null", strlen("null"), true);
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    int result = text ? emit_text(emitter, text, strlen(text), true) : -1;
    free(text);
    return result;
}

/* An inner mapping of scalars alone stands in one line. */
static bool is_flat(const json_t *value)
{
    void *at = json_object_iter((json_t *)value);
    for (; at; at = json_object_iter_next((json_t *)value, at)) {
        const json_t *inner = json_object_iter_value(at);
        if (json_is_object(inner) || json_is_array(inner))
            return false;
    }
    return true;
}

static int emit_value(yaml_emitter_t *emitter, const json_t *value, unsigned depth);

static int emit_map(yaml_emitter_t *emitter, const json_t *map, unsigned depth)
{
    yaml_event_t event;
    const bool flow = json_object_size(map) == 0 || (depth > 0 && is_flat(map));
    int result =
        emit(emitter, &event,
             yaml_mapping_start_event_initialize(
                 &event, NULL, NULL, 1, flow ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE));
    void *at = json_object_iter((json_t *)map);
    for (; at && result == 0; at = json_object_iter_next((json_t *)map, at)) {
        const char *key = json_object_iter_key(at);
        result = emit_text(emitter, key, strlen(key), !looks_null(key));
        if (result == 0)
            result = emit_value(emitter, json_object_iter_value(at), depth + 1);
    }
    return result < 0 ? result : emit(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static int emit_list(yaml_emitter_t *emitter, const json_t *list, unsigned depth)
{
    yaml_event_t event;
    const json_t *item;
    bool flow = true;
    for (size_t i = 0; (item = json_array_get(list, i)); i++)
        flow &= !json_is_object(item) && !json_is_array(item);
    int result = emit(emitter, &event,
                      yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                           flow ? YAML_FLOW_SEQUENCE_STYLE
                                                                : YAML_BLOCK_SEQUENCE_STYLE));
    for (size_t i = 0; result == 0 && (item = json_array_get(list, i)); i++)
        result = emit_value(emitter, item, depth + 1);
    return result < 0 ? result : emit(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

/* The server's answer is bounded in depth by the reader of JSON. */
static int emit_value(yaml_emitter_t *emitter, const json_t *value, unsigned depth)
{
    if (json_is_object(value))
        return emit_map(emitter, value, depth);
    return json_is_array(value) ? emit_list(emitter, value, depth) : emit_scalar(emitter, value);
}

static int emit_document(yaml_emitter_t *emitter, const json_t *value)
{
    yaml_event_t event;
    int result =
        emit(emitter, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    if (result == 0)
        result = emit(emitter, &event,
                      yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    if (result == 0)
        result = emit_value(emitter, value, 0);
    if (result == 0)
        result = emit(emitter, &event, yaml_document_end_event_initialize(&event, 1));
    return result < 0 ? result : emit(emitter, &event, yaml_stream_end_event_initialize(&event));
}

int yaml_write(FILE *out, const json_t *value)
{
    yaml_emitter_t emitter;
    if (!yaml_emitter_initialize(&emitter))
        return -1;
    yaml_emitter_set_output_file(&emitter, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, WIDTH);
    int result = emit_document(&emitter, value);
    yaml_emitter_delete(&emitter);
    return result;
}
