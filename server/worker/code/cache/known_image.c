/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/cache/known_image.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/util.h"
#include "server/worker/image/rewrite.h"
#include "server/worker/image/symbols.h"

struct known_image {
    struct code_link link; /* in the table, while that holds it */
    struct list_link use;
    unsigned holds; /* the table's, and those of modules; under the lock */
    struct proto_worker_module_needs needs;
    size_t tree_bytes;
    bool loaded; /* the members below are set, once and for all */
    struct code_name text;
    char *constant;
    uint64_t base;
    struct symbols *symbols;
};

/* An image that was loaded, as the next worker finds it: this, the constant's name with its NUL,
 * the symbols. Another build may have noted it, or may find it: a change of these structs that
 * leaves their sizes, or of what they mean, changes FORM. */
struct noted {
    uint64_t form;
    struct proto_worker_module_needs needs;
    struct code_name text;
    uint64_t tree_bytes, base, constant_bytes, symbols_bytes;
};

#define FORM (UINT64_C(1) << 32 | sizeof(struct noted))

void known_images_open(struct known_images *images, size_t max)
{
    *images = (struct known_images){.max = max};
    pthread_mutex_init(&images->lock, NULL);
    code_index_open(&images->index);
    list_init(&images->by_use);
    images->open = hash_key_make(&images->keys[0]) == 0 && hash_key_make(&images->keys[1]) == 0;
}

void known_images_share(struct known_images *images, struct code_cache *cache)
{
    images->cache = cache;
    memcpy(images->keys, cache->keys, sizeof images->keys);
    images->open = true;
}

static size_t image_bytes(const struct known_image *image)
{
    return sizeof *image + (image->symbols ? symbols_bytes(image->symbols) : 0);
}

static void free_image(struct known_image *image)
{
    symbols_free(image->symbols);
    free(image->constant);
    free(image);
}

/* Under the lock. */
static void drop_hold(struct known_image *image)
{
    if (--image->holds == 0)
        free_image(image);
}

static bool in_table(const struct known_image *image)
{
    return list_is_linked(&image->use);
}

/* Drops the oldest until `more` bytes fit into the table. Under the lock. */
static void make_room(struct known_images *images, size_t more)
{
    while (!list_is_empty(&images->by_use) && images->bytes > saturating_sub(images->max, more)) {
        struct known_image *image = LIST_FIRST(&images->by_use, struct known_image, use);
        list_remove(&image->use);
        code_index_remove(&images->index, &image->link);
        images->bytes -= image_bytes(image);
        drop_hold(image);
    }
}

void known_images_close(struct known_images *images)
{
    if (!images->open)
        return;
    make_room(images, SIZE_MAX);
    code_index_close(&images->index);
    images->open = false;
    pthread_mutex_destroy(&images->lock);
}

struct code_name known_image_name(const struct known_images *images, const void *bytes,
                                  size_t count)
{
    return code_name_make(images->keys, CODE_KIND_IMAGE, bytes, count);
}

/* It is the youngest then, and has a hold for the caller. Under the lock. */
static struct known_image *find_image(struct known_images *images, const struct code_name *name)
{
    struct code_link *link = code_index_find(&images->index, name);
    if (!link)
        return NULL;
    struct known_image *image = container_of(link, struct known_image, link);
    list_remove(&image->use);
    list_append(&images->by_use, &image->use);
    image->holds++;
    return image;
}

/* The image has a hold for the caller. Another thread may have added the same meanwhile: returns
 * the one that stays. */
static struct known_image *add_image(struct known_images *images, struct known_image *image)
{
    pthread_mutex_lock(&images->lock);
    struct known_image *earlier = find_image(images, &image->link.name);
    if (earlier) {
        drop_hold(image);
        image = earlier;
    } else if (image_bytes(image) <= images->max) {
        image->holds++;
        make_room(images, image_bytes(image));
        code_index_add(&images->index, &image->link);
        list_append(&images->by_use, &image->use);
        images->bytes += image_bytes(image);
    }
    pthread_mutex_unlock(&images->lock);
    return image;
}

/* ---- for the next worker ---- */

static void note_image(const struct known_images *images, const struct known_image *image)
{
    struct noted noted = {.form = FORM,
                          .needs = image->needs,
                          .text = image->text,
                          .tree_bytes = image->tree_bytes,
                          .base = image->base,
                          .constant_bytes = image->constant ? strlen(image->constant) + 1 : 0,
                          .symbols_bytes = symbols_bytes(image->symbols)};
    size_t bytes = sizeof noted + noted.constant_bytes + noted.symbols_bytes;
    char *all = malloc(bytes);
    if (!all)
        return;
    memcpy(all, &noted, sizeof noted);
    if (image->constant)
        memcpy(all + sizeof noted, image->constant, noted.constant_bytes);
    memcpy(all + sizeof noted + noted.constant_bytes, image->symbols, noted.symbols_bytes);
    code_cache_note(images->cache, &image->link.name, all, bytes);
    free(all);
}

/* all, bytes: what the store has, as somebody put it there. */
static struct known_image *image_from(const struct code_name *name, const char *all, size_t bytes)
{
    struct noted noted;
    if (bytes < sizeof noted)
        return NULL;
    memcpy(&noted, all, sizeof noted);
    const char *constant = all + sizeof noted;
    size_t rest = bytes - sizeof noted;
    if (noted.form != FORM || noted.constant_bytes > rest ||
        noted.symbols_bytes != rest - noted.constant_bytes ||
        (noted.constant_bytes && constant[noted.constant_bytes - 1]))
        return NULL;
    struct known_image *image = malloc(sizeof *image);
    if (!image)
        return NULL;
    *image = (struct known_image){
        .link.name = *name,
        .holds = 1,
        .needs = noted.needs,
        .tree_bytes = noted.tree_bytes,
        .loaded = true,
        .text = noted.text,
        .constant = noted.constant_bytes ? strdup(constant) : NULL,
        .base = noted.base,
        .symbols = symbols_restore(constant + noted.constant_bytes, noted.symbols_bytes)};
    if (image->symbols && (image->constant || !noted.constant_bytes))
        return image;
    free_image(image);
    return NULL;
}

static struct known_image *recall_image(struct known_images *images, const struct code_name *name)
{
    size_t bytes;
    char *all = images->cache ? code_cache_recall(images->cache, name, &bytes) : NULL;
    struct known_image *image = all ? image_from(name, all, bytes) : NULL;
    free(all);
    return image ? add_image(images, image) : NULL;
}

/* ---- for modules ---- */

struct known_image *known_image_find(struct known_images *images, const struct code_name *name,
                                     struct proto_worker_module_needs *needs)
{
    if (!images->open)
        return NULL;
    pthread_mutex_lock(&images->lock);
    struct known_image *image = find_image(images, name);
    pthread_mutex_unlock(&images->lock);
    if (!image)
        image = recall_image(images, name);
    if (image)
        *needs = image->needs;
    return image;
}

struct known_image *known_image_add(struct known_images *images, const struct code_name *name,
                                    const struct rewrite *rewrite,
                                    const struct proto_worker_module_needs *needs)
{
    if (!images->open || needs->unsaved != PROTO_UNSAVED_NOTHING || needs->resident_bytes ||
        rewrite_unread(rewrite) || rewrite_first_that_stays(rewrite) ||
        rewrite_has_constants(rewrite))
        return NULL;
    struct known_image *image = malloc(sizeof *image);
    if (!image)
        return NULL;
    *image = (struct known_image){
        .link.name = *name, .holds = 1, .needs = *needs, .tree_bytes = rewrite_tree_bytes(rewrite)};
    return add_image(images, image);
}

void known_image_loaded(struct known_images *images, struct known_image *image,
                        const struct code_name *text, const struct rewrite *rewrite,
                        const struct symbols *symbols)
{
    const char *constant = rewrite_constant(rewrite);
    /* Without the constant the place of the variables stands in the text. */
    if (!image || (rewrite_global_bytes(rewrite) && !constant))
        return;
    struct symbols *kept = symbols_copy(symbols, 0);
    char *name = constant ? strdup(constant) : NULL;
    bool first = false;
    pthread_mutex_lock(&images->lock);
    if (image->loaded || !kept || (constant && !name)) {
        symbols_free(kept);
        free(name);
    } else {
        image->loaded = true;
        image->text = *text;
        image->constant = name;
        image->base = rewrite_base(rewrite);
        image->symbols = kept;
        if (in_table(image))
            images->bytes += symbols_bytes(kept);
        make_room(images, 0);
        first = true;
    }
    pthread_mutex_unlock(&images->lock);
    /* The caller has a hold, and the members don't change any more. */
    if (first && images->cache)
        note_image(images, image);
}

bool known_image_code(struct known_images *images, struct known_image *image, uint64_t base,
                      struct known_code *code)
{
    if (!image)
        return false;
    pthread_mutex_lock(&images->lock);
    bool loaded = image->loaded;
    pthread_mutex_unlock(&images->lock);
    if (!loaded)
        return false;
    *code = (struct known_code){.text = image->text,
                                .constant = image->constant,
                                .symbols = symbols_copy(image->symbols, base - image->base),
                                .global_bytes = image->needs.global_bytes,
                                .tree_bytes = image->tree_bytes};
    return code->symbols != NULL;
}

void known_image_release(struct known_images *images, struct known_image *image)
{
    if (!image)
        return;
    pthread_mutex_lock(&images->lock);
    drop_hold(image);
    pthread_mutex_unlock(&images->lock);
}
