/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libyaml reads the text, and this file builds the tree. libyaml's document loader
 * can't, without a loss: it forgets anchors and whether a tag was written, so neither could be
 * refused, and it allocates the whole document before depth, size or a key that occurs twice can
 * be checked. */
#include "server/supervisor/config/tree.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "common/messages.h"
#include "common/util.h"

struct builder {
    struct config_tree *tree;
    const char *file;
    struct error *why;
    unsigned nodes;
    unsigned depth;
    struct open {
        struct config_node *node, *last;
        bool value_next; /* the last child of this map is a key */
    } open[CONFIG_DEPTH_MAX];
    bool documents;
};

static void put_place(struct builder *builder, size_t line)
{
    error_prefix(builder->why, "%s:%zu: ", builder->file, line);
}
/* MESSAGE(name) and its arguments follow the line. The value is the number as it stands here, so
 * that an analyser of this file sees that it is not 0. */
#define refuse(...) refuse_with(__VA_ARGS__)
#define refuse_with(builder, line, number, ...)                                                    \
    (error_set((builder)->why, number, __VA_ARGS__), put_place((builder), (line)), (number))

bool config_tree_is_null(const struct config_node *node)
{
    return node->kind == CONFIG_TEXT && node->plain &&
           (!node->length || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

void config_tree_free(struct config_tree *tree)
{
    while (tree->made) {
        struct config_node *node = tree->made;
        tree->made = node->made;
        free(node);
    }
    tree->root = NULL;
}

static uint32_t node_make(struct builder *builder, enum config_kind kind, size_t line,
                          const char *text, size_t length, struct config_node **out)
{
    if (++builder->nodes > CONFIG_NODES_MAX)
        return refuse(builder, line, MESSAGE(config_values_max), CONFIG_NODES_MAX);
    struct config_node *node = calloc(1, sizeof *node + length + 1);
    if (!node)
        return refuse(builder, line, MESSAGE(config_no_memory));
    node->kind = kind;
    node->line = (unsigned)line;
    node->length = length;
    if (length)
        memcpy(node->text, text, length);
    node->made = builder->tree->made;
    builder->tree->made = node;
    *out = node;
    return 0;
}

static uint32_t check_key(struct builder *builder, const struct open *open, struct config_node *key)
{
    if (key->kind != CONFIG_TEXT)
        return refuse(builder, key->line, MESSAGE(config_key_text));
    if (++open->node->keys > CONFIG_KEYS_MAX)
        return refuse(builder, key->line, MESSAGE(config_keys_max), CONFIG_KEYS_MAX);
    for (const struct config_node *other = open->node->first; other; other = other->next->next)
        if (other->length == key->length && !memcmp(other->text, key->text, key->length))
            return refuse(builder, key->line, MESSAGE(config_key_twice), key->text, other->line);
    return 0;
}

static uint32_t node_add(struct builder *builder, struct config_node *node)
{
    if (!builder->depth) {
        builder->tree->root = node;
        return 0;
    }
    struct open *open = &builder->open[builder->depth - 1];
    if (open->node->kind == CONFIG_MAP) {
        uint32_t error = open->value_next ? 0 : check_key(builder, open, node);
        if (error)
            return error;
        open->value_next = !open->value_next;
    }
    if (open->last)
        open->last->next = node;
    else
        open->node->first = node;
    open->last = node;
    return 0;
}

static uint32_t node_begin(struct builder *builder, enum config_kind kind, size_t line)
{
    struct config_node *node = NULL;
    if (builder->depth == CONFIG_DEPTH_MAX)
        return refuse(builder, line, MESSAGE(config_depth_max), CONFIG_DEPTH_MAX);
    uint32_t error = node_make(builder, kind, line, NULL, 0, &node);
    if (!error)
        error = node_add(builder, node);
    if (!error)
        builder->open[builder->depth++] = (struct open){.node = node};
    return error;
}

static uint32_t scalar_read(struct builder *builder, const yaml_event_t *event, size_t line)
{
    struct config_node *node = NULL;
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(value, 0, length))
        return refuse(builder, line, MESSAGE(config_text_nul));
    uint32_t error = node_make(builder, CONFIG_TEXT, line, value, length, &node);
    if (error)
        return error;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return node_add(builder, node);
}

static uint32_t no_extras(struct builder *builder, const yaml_event_t *event, size_t line)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor || event->type == YAML_ALIAS_EVENT)
        return refuse(builder, line, MESSAGE(config_anchor));
    if (tag)
        return refuse(builder, line, MESSAGE(config_tag));
    return 0;
}

static uint32_t event_take(struct builder *builder, const yaml_event_t *event)
{
    size_t line = event->start_mark.line + 1;
    uint32_t error = no_extras(builder, event, line);
    if (error)
        return error;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->documents)
            return refuse(builder, line, MESSAGE(config_second_document));
        builder->documents = true;
        return 0;
    case YAML_MAPPING_START_EVENT:
        return node_begin(builder, CONFIG_MAP, line);
    case YAML_SEQUENCE_START_EVENT:
        return node_begin(builder, CONFIG_LIST, line);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        builder->depth--;
        return 0;
    case YAML_SCALAR_EVENT:
        return scalar_read(builder, event, line);
    default:
        return 0;
    }
}

static size_t line_of(const char *text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static uint32_t mistake_explain(struct builder *builder, const yaml_parser_t *parser,
                                const char *text, size_t bytes)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return refuse(builder, 1, MESSAGE(config_no_memory));
    /* The reader below the scanner counts bytes only. */
    size_t offset = min(parser->problem_offset, bytes);
    size_t line =
        parser->error == YAML_READER_ERROR ? line_of(text, offset) : parser->problem_mark.line + 1;
    const char *problem = parser->problem ? parser->problem : "unreadable";
    if (strstr(problem, "cannot start any token"))
        return refuse(builder, line, MESSAGE(config_not_yaml_tab), problem);
    return parser->context
               ? refuse(builder, line, MESSAGE(config_not_yaml_near), problem, parser->context)
               : refuse(builder, line, MESSAGE(config_not_yaml), problem);
}

static uint32_t tree_parse(struct builder *builder, yaml_parser_t *parser, const char *text,
                           size_t bytes)
{
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return mistake_explain(builder, parser, text, bytes);
        more = event.type != YAML_STREAM_END_EVENT;
        uint32_t error = event_take(builder, &event);
        yaml_event_delete(&event);
        if (error)
            return error;
    }
    return 0;
}

uint32_t config_tree_read(struct config_tree *tree, const char *file, const char *text,
                          size_t bytes, struct error *why)
{
    struct builder builder = {.tree = tree, .file = file, .why = why};
    *tree = (struct config_tree){0};
    if (bytes > CONFIG_BYTES_MAX)
        return refuse(&builder, 1, MESSAGE(config_bytes_max), CONFIG_BYTES_MAX);
    const char *nul = bytes ? memchr(text, 0, bytes) : NULL;
    if (nul)
        return refuse(&builder, line_of(text, (size_t)(nul - text)), MESSAGE(config_file_nul));
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return refuse(&builder, 1, MESSAGE(config_no_memory));
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    uint32_t error = tree_parse(&builder, &parser, text, bytes);
    yaml_parser_delete(&parser);
    if (error)
        config_tree_free(tree);
    return error;
}
