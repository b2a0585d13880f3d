/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/known_image.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/util.h"
#include "server/worker/image/rewrite.h"
#include "server/worker/image/symbols.h"

struct known_image {
    struct known_image *next; /* in the table */
    unsigned holds;           /* the table's, and those of modules; under the lock */
    struct code_name name;
    struct proto_worker_module_needs needs;
    size_t tree_bytes;
    bool loaded; /* the members below are set, once and for all */
    struct code_name text;
    char *constant;
    uint64_t base;
    struct symbols *symbols;
};

void known_images_open(struct known_images *images, size_t max)
{
    *images = (struct known_images){.max = max};
    pthread_mutex_init(&images->lock, NULL);
    images->open = hash_key_make(&images->keys[0]) == 0 && hash_key_make(&images->keys[1]) == 0;
}

static size_t image_bytes(const struct known_image *image)
{
    return sizeof *image + (image->symbols ? symbols_bytes(image->symbols) : 0);
}

/* Under the lock. */
static void drop_hold(struct known_image *image)
{
    if (--image->holds)
        return;
    symbols_free(image->symbols);
    free(image->constant);
    free(image);
}

/* Drops the oldest until `more` bytes fit into the table. Under the lock. */
static void make_room(struct known_images *images, size_t more)
{
    struct known_image *image;
    while ((image = images->oldest) && images->bytes > saturating_sub(images->max, more)) {
        images->oldest = image->next;
        images->bytes -= image_bytes(image);
        drop_hold(image);
    }
}

void known_images_close(struct known_images *images)
{
    if (!images->open)
        return;
    make_room(images, SIZE_MAX);
    images->open = false;
    pthread_mutex_destroy(&images->lock);
}

static struct code_name name_of(const struct known_images *images, const void *bytes, size_t count)
{
    struct code_name name = {.length = count};
    for (unsigned i = 0; i < 2; i++)
        name.hashes[i] =
            hash_end(&images->keys[i], hash_add_bytes(&images->keys[i], HASH_BEGIN, bytes, count));
    return name;
}

/* As the youngest. Under the lock. */
static void append_image(struct known_images *images, struct known_image *image)
{
    struct known_image **end = &images->oldest;
    while (*end)
        end = &(*end)->next;
    image->next = NULL;
    *end = image;
}

/* Under the lock. */
static struct known_image *find_image(struct known_images *images, const struct code_name *name)
{
    for (struct known_image **at = &images->oldest; *at; at = &(*at)->next) {
        struct known_image *image = *at;
        if (!code_name_equal(&image->name, name))
            continue;
        *at = image->next;
        append_image(images, image);
        return image;
    }
    return NULL;
}

struct known_image *known_image_find(struct known_images *images, const void *bytes, size_t count,
                                     struct proto_worker_module_needs *needs)
{
    if (!images->open)
        return NULL;
    const struct code_name name = name_of(images, bytes, count);
    pthread_mutex_lock(&images->lock);
    struct known_image *image = find_image(images, &name);
    if (image) {
        image->holds++;
        *needs = image->needs;
    }
    pthread_mutex_unlock(&images->lock);
    return image;
}

struct known_image *known_image_add(struct known_images *images, const void *bytes, size_t count,
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
    *image = (struct known_image){.holds = 1,
                                  .name = name_of(images, bytes, count),
                                  .needs = *needs,
                                  .tree_bytes = rewrite_tree_bytes(rewrite)};
    pthread_mutex_lock(&images->lock);
    struct known_image *earlier = find_image(images, &image->name);
    if (earlier) {
        free(image);
        image = earlier;
        image->holds++;
    } else if (image_bytes(image) <= images->max) {
        image->holds++;
        make_room(images, image_bytes(image));
        append_image(images, image);
        images->bytes += image_bytes(image);
    }
    pthread_mutex_unlock(&images->lock);
    return image;
}

static bool in_table(const struct known_images *images, const struct known_image *image)
{
    const struct known_image *at = images->oldest;
    while (at && at != image)
        at = at->next;
    return at != NULL;
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
        if (in_table(images, image))
            images->bytes += symbols_bytes(kept);
        make_room(images, 0);
    }
    pthread_mutex_unlock(&images->lock);
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
