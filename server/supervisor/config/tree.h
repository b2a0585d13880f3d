/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_tree: a YAML text as a tree, in which every node knows its line.
 *
 * YAML that only an attacker has a use for is refused: anchors, aliases and tags, several
 * documents, keys that are no text or come twice, NUL bytes, and too much depth or size. Every
 * failure is one sentence "FILE:LINE: reason". Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_TREE_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define CONFIG_BYTES_MAX 1048576 /* bytes of a file */
#define CONFIG_NODES_MAX 65536
#define CONFIG_KEYS_MAX  4096 /* keys of one mapping */
#define CONFIG_DEPTH_MAX 8    /* mappings and lists inside one another */

enum config_kind { CONFIG_TEXT, CONFIG_LIST, CONFIG_MAP };

/* Nodes are singly linked: they are only added, at the end, and freed all at once. */
struct config_node {
    enum config_kind kind;
    bool plain;                /* it is a text without quotes */
    unsigned line;             /* counted from 1 */
    struct config_node *first; /* of a list: its items; of a map: key, value, key, value... */
    struct config_node *next;
    struct config_node *made; /* the node made before this one, for config_tree_free */
    unsigned keys;            /* of a map: number of keys */
    size_t length;            /* of a text: bytes */
    char text[];              /* of a text: no NUL inside, one at the end */
};

struct config_tree {
    struct config_node *root; /* NULL: the file is empty */
    struct config_node *made;
};

/* Reads a YAML text into a tree. file: for messages. Returns 0, and config_tree_free must follow;
 * or the number of an error, whose sentence names file and line. */
uint32_t config_tree_read(struct config_tree *tree, const char *file, const char *text,
                          size_t bytes, struct error *why);

/* Frees all nodes, and their texts with them. */
void config_tree_free(struct config_tree *tree);

/* Whether a node is a text without quotes that YAML calls null: nothing, ~ or null. */
bool config_tree_is_null(const struct config_node *node);

#endif
