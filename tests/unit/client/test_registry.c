/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The runtime's images while the driver, which this file plays, takes its time to load one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/registry.h"
#include "common/clock.h"
#include "common/units.h"
#include "tests/support/patience.h"

/* ---- the driver ---- */

/* The words are no magic number, so the driver is given their addresses. */
static const uint32_t texts[] = {1, 2};
static const char hosts[2][16];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned loading, most; /* threads in cuModuleLoadData, and the most at one time */
    unsigned wanted;        /* so many at once let one another go */
    unsigned loads, unloads;
    unsigned failures; /* the next loads fail */
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns false if the others did not come while anybody would wait for them. */
static bool await_others(void)
{
    const struct timespec late =
        clock_timespec(clock_now() + (uint64_t)(patience_seconds(10) * (double)UNITS_SECOND));
    while (driver.most < driver.wanted)
        if (pthread_cond_timedwait(&driver.changed, &driver.lock, &late) == ETIMEDOUT)
            return false;
    return true;
}

static cuda_result load(cuda_module *module, const void *image)
{
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&driver.lock);
    driver.loads++;
    if (++driver.loading > driver.most)
        driver.most = driver.loading;
    pthread_cond_broadcast(&driver.changed);
    if (!await_others())
        result = CUDA_ERR_NOT_READY;
    if (driver.failures) {
        driver.failures--;
        result = CUDA_ERR_OUT_OF_MEMORY;
    }
    driver.loading--;
    pthread_mutex_unlock(&driver.lock);
    *module = (cuda_module)(uintptr_t)image;
    return result;
}

static cuda_result unload(cuda_module module)
{
    (void)module;
    driver.unloads++;
    return CUDA_OK;
}

static cuda_result function_of(cuda_function *function, cuda_module module, const char *name)
{
    (void)name;
    *function = (cuda_function)module;
    return CUDA_OK;
}

static int begin(void **state)
{
    pthread_condattr_t monotonic;
    (void)state;
    driver.loads = driver.unloads = driver.most = driver.wanted = driver.failures = 0;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&driver.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    runtime_driver = (struct runtime_driver){
        .cuModuleLoadData = load, .cuModuleUnload = unload, .cuModuleGetFunction = function_of};
    return 0;
}

/* ---- programs ---- */

static char context_room;
#define CONTEXT ((cuda_context)(void *)&context_room)

struct user {
    pthread_t thread;
    const void *host;
    cudart_error error;
    cuda_function loaded;
};

static void *use(void *argument)
{
    struct user *user = argument;
    user->error =
        registry_function_load(registry_function_find(user->host), CONTEXT, &user->loaded);
    return NULL;
}

static void start(struct user *user, const void *host)
{
    *user = (struct user){.host = host};
    assert_int_equal(pthread_create(&user->thread, NULL, use, user), 0);
}

static struct registry_image *add(unsigned number)
{
    struct registry_image *image = registry_image_add(&texts[number]);
    assert_non_null(image);
    registry_function_add(image, hosts[number], "kernel");
    return image;
}

static void images_are_loaded_at_the_same_time(void **state)
{
    (void)state;
    struct registry_image *images[] = {add(0), add(1)};
    struct user users[2];
    driver.wanted = 2; /* each load waits for the other one to begin */
    for (unsigned i = 0; i < 2; i++)
        start(&users[i], hosts[i]);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].error, CUDART_OK);
        assert_ptr_equal(users[i].loaded, &texts[i]);
    }
    assert_int_equal(driver.loads, 2);
    for (unsigned i = 0; i < 2; i++)
        registry_image_remove(images[i]);
}

/* The threads begin while the driver holds the first one's load up, until the others are started.
 */
static void an_image_is_loaded_once_for_all_threads(void **state)
{
    (void)state;
    struct registry_image *image = add(0);
    struct user users[4];
    pthread_mutex_lock(&driver.lock);
    for (unsigned i = 0; i < 4; i++)
        start(&users[i], hosts[0]);
    pthread_mutex_unlock(&driver.lock);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].error, CUDART_OK);
        assert_ptr_equal(users[i].loaded, &texts[0]);
    }
    assert_int_equal(driver.loads, 1);
    registry_image_remove(image);
}

static void a_failed_load_is_tried_again(void **state)
{
    (void)state;
    struct registry_image *image = add(0);
    struct user users[2];
    driver.failures = 1;
    pthread_mutex_lock(&driver.lock);
    for (unsigned i = 0; i < 2; i++)
        start(&users[i], hosts[0]);
    pthread_mutex_unlock(&driver.lock);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(users[i].thread, NULL);
    assert_int_equal(users[0].error + users[1].error, CUDART_MEMORY_ALLOCATION);
    assert_int_equal(driver.loads, 2);
    registry_image_remove(image);
}

struct removal {
    struct registry_image *image;
    atomic_bool over;
};

static void *take_away(void *argument)
{
    struct removal *removal = argument;
    registry_image_remove(removal->image);
    atomic_store(&removal->over, true);
    return NULL;
}

/* A thread that uses an image which another thread removes makes a mistake; but the image is not
 * freed below the driver. */
static void an_image_is_removed_after_its_load(void **state)
{
    (void)state;
    const struct timespec look = {.tv_nsec = 20 * 1000 * 1000};
    struct removal removal = {.image = add(0)};
    struct user user;
    pthread_t remover;
    driver.wanted = 2;
    start(&user, hosts[0]);
    pthread_mutex_lock(&driver.lock);
    while (!driver.loading)
        pthread_cond_wait(&driver.changed, &driver.lock);
    pthread_mutex_unlock(&driver.lock);
    assert_int_equal(pthread_create(&remover, NULL, take_away, &removal), 0);
    nanosleep(&look, NULL);
    assert_false(atomic_load(&removal.over));
    pthread_mutex_lock(&driver.lock);
    driver.wanted = 0;
    pthread_cond_broadcast(&driver.changed);
    pthread_mutex_unlock(&driver.lock);
    pthread_join(user.thread, NULL);
    pthread_join(remover, NULL);
    assert_int_equal(user.error, CUDART_OK);
    assert_int_equal(driver.unloads, 0); /* without a context to make current */
    assert_null(registry_function_find(hosts[0]));
}

static void a_context_that_is_reset_has_its_images_loaded_again(void **state)
{
    (void)state;
    struct registry_image *image = add(0);
    struct user user;
    for (unsigned i = 1; i <= 2; i++) {
        start(&user, hosts[0]);
        pthread_join(user.thread, NULL);
        assert_int_equal(user.error, CUDART_OK);
        assert_int_equal(driver.loads, i);
        registry_context_forget(CONTEXT);
    }
    registry_image_remove(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(images_are_loaded_at_the_same_time, begin),
        cmocka_unit_test_setup(an_image_is_loaded_once_for_all_threads, begin),
        cmocka_unit_test_setup(a_failed_load_is_tried_again, begin),
        cmocka_unit_test_setup(an_image_is_removed_after_its_load, begin),
        cmocka_unit_test_setup(a_context_that_is_reset_has_its_images_loaded_again, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
