/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libyaml reads the text, and this file builds the tree. libyaml's document loader
 * can't, without a loss: it forgets anchors and whether a tag was written, so neither could be
 * refused, and it allocates the whole document before depth, size or a key that occurs twice can
 * be checked. */
#include "server/supervisor/config/tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "common/util.h"

struct builder {
    struct config_tree *tree;
    const char *file;
    char *why;
    size_t why_size;
    unsigned nodes;
    unsigned depth;
    struct open {
        struct config_node *node, *last;
        bool value_next; /* the last child of this map is a key */
    } open[CONFIG_DEPTH_MAX];
    bool documents;
};

__attribute__((format(printf, 3, 4))) static void say(struct builder *builder, size_t line,
                                                      const char *format, ...)
{
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (builder->why_size)
        snprintf(builder->why, builder->why_size, "%s:%zu: %s", builder->file, line, reason);
}
/* The error stands here and not in say(), where an analyser doesn't see that it is one. */
#define refuse(builder, error, ...) (say(builder, __VA_ARGS__), (error))

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

static int node_make(struct builder *builder, enum config_kind kind, size_t line, const char *text,
                     size_t length, struct config_node **out)
{
    if (++builder->nodes > CONFIG_NODES_MAX)
        return refuse(builder, -EINVAL, line, "more than %d values in one file", CONFIG_NODES_MAX);
    struct config_node *node = calloc(1, sizeof *node + length + 1);
    if (!node)
        return refuse(builder, -ENOMEM, line, "memory is short");
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

static int check_key(struct builder *builder, const struct open *open, struct config_node *key)
{
    if (key->kind != CONFIG_TEXT)
        return refuse(builder, -EINVAL, key->line, "a key must be a word");
    if (++open->node->keys > CONFIG_KEYS_MAX)
        return refuse(builder, -EINVAL, key->line, "more than %d keys in one mapping",
                      CONFIG_KEYS_MAX);
    for (const struct config_node *other = open->node->first; other; other = other->next->next)
        if (other->length == key->length && !memcmp(other->text, key->text, key->length))
            return refuse(builder, -EINVAL, key->line,
                          "\"%.64s\" stands here twice, first in "
                          "line %u",
                          key->text, other->line);
    return 0;
}

static int node_add(struct builder *builder, struct config_node *node)
{
    if (!builder->depth) {
        builder->tree->root = node;
        return 0;
    }
    struct open *open = &builder->open[builder->depth - 1];
    if (open->node->kind == CONFIG_MAP) {
        int result = open->value_next ? 0 : check_key(builder, open, node);
        if (result < 0)
            return result;
        open->value_next = !open->value_next;
    }
    if (open->last)
        open->last->next = node;
    else
        open->node->first = node;
    open->last = node;
    return 0;
}

static int node_begin(struct builder *builder, enum config_kind kind, size_t line)
{
    struct config_node *node = NULL;
    if (builder->depth == CONFIG_DEPTH_MAX)
        return refuse(builder, -EINVAL, line, "nested more than %d deep", CONFIG_DEPTH_MAX);
    int result = node_make(builder, kind, line, NULL, 0, &node);
    if (result == 0)
        result = node_add(builder, node);
    if (result == 0)
        builder->open[builder->depth++] = (struct open){.node = node};
    return result;
}

static int scalar_read(struct builder *builder, const yaml_event_t *event, size_t line)
{
    struct config_node *node = NULL;
    const char *value = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(value, 0, length))
        return refuse(builder, -EINVAL, line, "a text may not hold a NUL byte");
    int result = node_make(builder, CONFIG_TEXT, line, value, length, &node);
    if (result < 0)
        return result;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return node_add(builder, node);
}

static int no_extras(struct builder *builder, const yaml_event_t *event, size_t line)
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
        return refuse(builder, -EINVAL, line,
                      "anchors and aliases (& and *) are not understood: name a profile, and put "
                      "a text that begins so in quotes");
    if (tag)
        return refuse(builder, -EINVAL, line, "tags (!) are not understood");
    return 0;
}

static int event_take(struct builder *builder, const yaml_event_t *event)
{
    size_t line = event->start_mark.line + 1;
    int result = no_extras(builder, event, line);
    if (result < 0)
        return result;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (builder->documents)
            return refuse(builder, -EINVAL, line, "a second document begins: a file has one");
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

static int mistake_explain(struct builder *builder, const yaml_parser_t *parser, const char *text,
                           size_t bytes)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return refuse(builder, -ENOMEM, 1, "memory is short");
    /* The reader below the scanner counts bytes only. */
    size_t offset = min(parser->problem_offset, bytes);
    size_t line =
        parser->error == YAML_READER_ERROR ? line_of(text, offset) : parser->problem_mark.line + 1;
    const char *problem = parser->problem ? parser->problem : "unreadable";
    const char *context = parser->context ? parser->context : "";
    if (strstr(problem, "cannot start any token"))
        context = "(indent with blanks, not with tabs)";
    return refuse(builder, -EINVAL, line, "not YAML: %s%s%s", problem, *context ? " " : "",
                  context);
}

static int tree_parse(struct builder *builder, yaml_parser_t *parser, const char *text,
                      size_t bytes)
{
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return mistake_explain(builder, parser, text, bytes);
        more = event.type != YAML_STREAM_END_EVENT;
        int result = event_take(builder, &event);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
    }
    return 0;
}

int config_tree_read(struct config_tree *tree, const char *file, const char *text, size_t bytes,
                     char *why, size_t why_size)
{
    struct builder builder = {.tree = tree, .file = file, .why = why, .why_size = why_size};
    *tree = (struct config_tree){0};
    if (bytes > CONFIG_BYTES_MAX)
        return refuse(&builder, -EINVAL, 1, "the file has more than %d bytes", CONFIG_BYTES_MAX);
    const char *nul = bytes ? memchr(text, 0, bytes) : NULL;
    if (nul)
        return refuse(&builder, -EINVAL, line_of(text, (size_t)(nul - text)),
                      "a NUL byte: is this a text file?");
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return refuse(&builder, -ENOMEM, 1, "memory is short");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    int result = tree_parse(&builder, &parser, text, bytes);
    yaml_parser_delete(&parser);
    if (result < 0)
        config_tree_free(tree);
    return result;
}
