/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/exec/module_share.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/softgpu/exec/module_private.h"

enum { ALIGN = 64 /* of constants, as the decoder makes them */ };

struct module_origin {
    struct module_origin *next;
    struct module *decoded; /* never placed */
    size_t users;           /* modules that have its parts */
    size_t length;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module_origin *origins;

/* Of its own it has the constants, where the addresses of variables stand. */
static struct code *copy_code(const struct code *from)
{
    struct code *code = malloc(sizeof(*code));
    if (!code)
        return NULL;
    *code = *from;
    code->constant_capacity = (from->constant_bytes + ALIGN - 1) / ALIGN * ALIGN;
    code->constants = aligned_alloc(ALIGN, code->constant_capacity);
    if (!code->constants) {
        free(code);
        return NULL;
    }
    memcpy(code->constants, from->constants, from->constant_bytes);
    return code;
}

static bool copy_codes(struct module *m, const struct module *from)
{
    const uint32_t count = from->ptx->function_count;
    m->codes = calloc((size_t)count + 1, sizeof(*m->codes));
    for (uint32_t i = 0; m->codes && i < count; i++) {
        struct code *code = from->codes[i];
        m->codes[i] = code && code->relocation_count ? copy_code(code) : code;
        if (code && !m->codes[i])
            return false;
    }
    return m->codes != NULL;
}

static bool copy_functions(struct module *m, const struct module *from)
{
    m->functions = calloc(from->function_count + 1, sizeof(*m->functions));
    for (size_t i = 0; m->functions && i < from->function_count; i++) {
        m->functions[i] = from->functions[i];
        m->functions[i].module = m;
        m->functions[i].code = m->codes[m->functions[i].ptx->id];
    }
    return m->functions != NULL;
}

static void free_own(struct module *m)
{
    const struct module *from = m->origin->decoded;
    for (uint32_t i = 0; m->codes && i < from->ptx->function_count; i++)
        if (m->codes[i] && m->codes[i] != from->codes[i]) {
            free(m->codes[i]->constants);
            free(m->codes[i]);
        }
    free(m->codes);
    free(m->functions);
    free(m);
}

static void leave_share(struct module *m)
{
    struct module_origin *origin = m->origin;
    free_own(m);
    pthread_mutex_lock(&lock);
    bool last = --origin->users == 0;
    struct module_origin **link = &origins;
    while (last && *link != origin)
        link = &(*link)->next;
    if (last)
        *link = origin->next;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    module_destroy(origin->decoded);
    free(origin);
}

/* Under the lock. */
static struct module *make_user(struct module_origin *origin)
{
    struct module *m = malloc(sizeof(*m));
    if (!m)
        return NULL;
    *m = *origin->decoded;
    m->origin = origin;
    m->leave = leave_share;
    m->functions = NULL;
    if (!copy_codes(m, origin->decoded) || !copy_functions(m, origin->decoded)) {
        free_own(m);
        return NULL;
    }
    origin->users++;
    return m;
}

struct module *module_share_find(const char *text, size_t length)
{
    struct module *m = NULL;
    pthread_mutex_lock(&lock);
    struct module_origin *origin = origins;
    while (origin && (origin->length != length || memcmp(origin->text, text, length) != 0))
        origin = origin->next;
    if (origin)
        m = make_user(origin);
    pthread_mutex_unlock(&lock);
    return m;
}

struct module *module_share_offer(const char *text, size_t length, struct module *decoded)
{
    struct module_origin *origin = malloc(sizeof(*origin) + length);
    struct module *m = NULL;
    if (!origin)
        return decoded;
    *origin = (struct module_origin){.decoded = decoded, .length = length};
    memcpy(origin->text, text, length);
    pthread_mutex_lock(&lock);
    m = make_user(origin);
    if (m) {
        origin->next = origins;
        origins = origin;
    }
    pthread_mutex_unlock(&lock);
    if (!m)
        free(origin);
    return m ? m : decoded;
}
