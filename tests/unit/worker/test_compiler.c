/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a compiler that hangs must be ended after its second, within ten */
/* light: it waits for compilers that hang */
/* PTX compiled in a process apart: on the software GPU, whose linker does as a text says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ipc/shm.h"
#include "protocol.h"
#include "server/worker/calls/activity.h"
#include "server/worker/code/compiler.h"

#define TEXT(comment, name)                                                                        \
    "// " comment "\n.version 7.0\n.target sm_80\n.address_size 64\n"                              \
    ".visible .entry " name "()\n{\nret;\n}\n"
#define CODE_MAX (UINT64_C(1) << 20)
#define ROOM     (UINT64_C(1) << 20)
#define SECONDS  UINT64_C(1000000000)

static char program[512], driver[512];

static struct compiler compiler;
static struct shm shm;
static struct compiler_result result;
static struct error why;
static const struct compiler_caller one = {1, 1};

static void start(uint32_t seconds, uint64_t memory)
{
    const struct compiler_options options = {
        .store = -1, .program = program, .driver = driver, .seconds = seconds, .memory = memory};
    memset(&compiler, 0, sizeof compiler);
    assert_int_equal(compiler_open(&compiler, &options, &why), 0);
}

static uint32_t make(uint32_t owner, const char *text)
{
    why = (struct error){0};
    return compiler_make(&compiler, (struct compiler_caller){owner, owner}, text, CODE_MAX, ROOM,
                         &result, &why);
}

static void made(uint32_t owner, const char *text, bool found)
{
    uint32_t error = make(owner, text);
    if (error)
        print_message("%s\n", why.text);
    assert_int_equal(error, 0);
    assert_int_equal(result.result, CUDA_OK);
    assert_false(result.absent);
    assert_false(result.busy);
    assert_non_null(result.compiled);
    assert_int_equal(result.found, found);
    assert_memory_equal(compiled_code(result.compiled), "\177ELF", 4);
    compiled_release(result.compiled);
}

static int teardown(void **state)
{
    (void)state;
    compiler_close(&compiler);
    compiler_close(&compiler);
    unsetenv("SOFTGPU_INIT_ERROR");
    unsetenv("SOFTGPU_NO_JIT");
    return 0;
}

static void a_text_is_compiled_once_for_everybody(void **state)
{
    (void)state;
    start(0, 0);
    made(1, TEXT("one", "k"), false);
    made(2, TEXT("one", "k"), true);
    made(2, TEXT("two", "k"), false);
    assert_int_equal(compiler.made, 2);
    assert_int_equal(compiler.found, 1);
}

static void code_that_nobody_loads_has_the_room_that_is_left(void **state)
{
    (void)state;
    start(0, 0);
    made(1, TEXT("one", "k"), false);
    compiler_trim(&compiler, 0);
    made(1, TEXT("one", "k"), false);
    assert_int_equal(compiler_make(&compiler, one, TEXT("two", "k"), CODE_MAX, 10, &result, &why),
                     0);
    compiled_release(result.compiled);
    made(1, TEXT("two", "k"), false);
    /* Used code stays longest. */
    uint64_t both = compiler.cache.bytes;
    made(1, TEXT("one", "k"), true);
    compiler_trim(&compiler, both - 1);
    made(1, TEXT("one", "k"), true);
    made(1, TEXT("two", "k"), false);
}

static void code_has_a_limit(void **state)
{
    (void)state;
    start(0, 0);
    assert_int_equal(compiler_make(&compiler, one, TEXT("one", "k"), 10, ROOM, &result, &why),
                     PROTO_ERROR_SERVER_RESOURCES);
    assert_non_null(strstr(why.text, "--image-memory"));
    assert_null(result.compiled);
}

static void a_refusal_comes_with_the_compilers_words(void **state)
{
    (void)state;
    start(0, 0);
    assert_int_equal(make(1, TEXT("bad", "k") ".visible .entry j() { nonsense; }\n"), 0);
    assert_int_equal(result.result, CUDA_ERR_INVALID_PTX);
    assert_null(result.compiled);
    assert_non_null(strstr(result.log, "nonsense"));
}

static void *hang(void *error)
{
    struct compiler_result its;
    struct error *its_why = error;
    compiler_make(&compiler, one, TEXT("softgpu: hang", "k"), CODE_MAX, ROOM, &its, its_why);
    assert_null(its.compiled);
    return NULL;
}

static void wait_until_it_works(void)
{
    while (!compiler_works(&compiler, 1, NULL))
        usleep(1000);
}

static void a_compiler_that_hangs_costs_its_owner_its_time(void **state)
{
    (void)state;
    struct error its = {0};
    pthread_t thread;
    start(1, 0);
    made(2, TEXT("known", "k"), false);
    uint64_t begun = clock_now();
    assert_int_equal(pthread_create(&thread, NULL, hang, &its), 0);
    wait_until_it_works();
    assert_int_equal(make(1, TEXT("another", "k")), 0);
    assert_true(result.busy);
    assert_null(result.compiled);
    made(1, TEXT("known", "k"), true);
    made(2, TEXT("of another owner", "k"), false);
    assert_true(compiler_works(&compiler, 1, NULL));
    pthread_join(thread, NULL);
    assert_true(clock_now() - begun < 10 * SECONDS);
    assert_int_equal(its.number, PROTO_ERROR_SERVER_RESOURCES);
    assert_non_null(strstr(its.text, "within 1 s"));
    assert_non_null(strstr(its.text, "--compile-time"));
    assert_false(compiler_works(&compiler, 1, NULL));
    made(1, TEXT("another", "k"), false);
}

static void a_text_at_work_is_waited_for(void **state)
{
    (void)state;
    struct error its = {0};
    pthread_t thread;
    start(1, 0);
    assert_int_equal(pthread_create(&thread, NULL, hang, &its), 0);
    wait_until_it_works();
    assert_int_equal(make(2, TEXT("softgpu: hang", "k")), 0);
    assert_true(result.busy);
    assert_true(compiler_works(&compiler, 2, &result.text));
    assert_false(compiler_works(&compiler, 2, NULL));
    pthread_join(thread, NULL);
    assert_false(compiler_works(&compiler, 2, &result.text));
}

static void a_compilation_ends_when_nobody_waits_for_it(void **state)
{
    (void)state;
    struct error its = {0};
    struct code_name text;
    pthread_t thread;
    start(1000, 0);
    assert_int_equal(pthread_create(&thread, NULL, hang, &its), 0);
    wait_until_it_works();
    assert_true(compiler_text_of(&compiler, 1, &text));
    assert_false(compiler_text_of(&compiler, 2, &text));
    compiler_abandon(&compiler, 2);
    assert_true(compiler_works(&compiler, 1, &text));
    compiler_abandon(&compiler, 1);
    pthread_join(thread, NULL);
    assert_int_equal(its.number, PROTO_ERROR_CONNECTION_LOST);
    made(1, TEXT("another", "k"), false);
}

static uint32_t counted(enum activity_count what)
{
    const struct activity_page *page = shm.base;
    return atomic_load(&page->count[what]);
}

static void compilations_are_counted(void **state)
{
    (void)state;
    assert_true(shm_create(&shm, "activity", sizeof(struct activity_page)) >= 0);
    assert_true(activity_open(shm.fd) >= 0);
    start(1, UINT64_C(64) << 20);
    made(1, TEXT("one", "k"), false);
    made(2, TEXT("one", "k"), true);
    make(1, TEXT("softgpu: hang", "k"));
    make(1, TEXT("softgpu: grow", "k"));
    assert_int_equal(counted(ACTIVITY_COMPILING), 0);
    assert_int_equal(counted(ACTIVITY_COMPILED), 1);
    assert_int_equal(counted(ACTIVITY_COMPILE_KNOWN), 1);
    assert_int_equal(counted(ACTIVITY_COMPILE_OVER_TIME), 1);
    assert_int_equal(counted(ACTIVITY_COMPILE_OVER_MEMORY), 1);
}

static void whoever_stops_waits_for_no_compiler(void **state)
{
    (void)state;
    struct error its = {0};
    pthread_t thread;
    start(1000, 0);
    assert_int_equal(pthread_create(&thread, NULL, hang, &its), 0);
    wait_until_it_works();
    compiler_stop(&compiler);
    pthread_join(thread, NULL);
    assert_int_equal(its.number, PROTO_ERROR_CONNECTION_LOST);
}

static void a_compiler_that_takes_much_memory_is_refused_it(void **state)
{
    (void)state;
    start(0, UINT64_C(64) << 20);
    assert_int_equal(make(1, TEXT("softgpu: grow", "k")), PROTO_ERROR_SERVER_RESOURCES);
    print_message("%s\n", why.text);
    assert_non_null(strstr(why.text, "64"));
    assert_non_null(strstr(why.text, "--compile-memory"));
    made(1, TEXT("another", "k"), false);
}

static void a_compiler_that_crashes_refuses_its_text_alone(void **state)
{
    (void)state;
    start(0, 0);
    assert_int_equal(make(1, TEXT("softgpu: crash", "k")), PROTO_ERROR_SERVER_RESOURCES);
    assert_non_null(strstr(why.text, "crashed"));
    made(1, TEXT("another", "k"), false);
}

/* The caller compiles by itself then, and the text is not to blame. */
static void no_process_is_no_refusal(void **state)
{
    (void)state;
    start(0, 0);
    setenv("SOFTGPU_INIT_ERROR", "802", 1);
    assert_int_equal(make(1, TEXT("one", "k")), 0);
    assert_true(result.absent);
    assert_null(result.compiled);
    unsetenv("SOFTGPU_INIT_ERROR");
    made(1, TEXT("one", "k"), false);
    compiler_close(&compiler);
    const struct compiler_options options = {
        .program = "/nonexistent", .driver = driver, .store = -1};
    assert_int_equal(compiler_open(&compiler, &options, &why), 0);
    assert_int_equal(make(1, TEXT("one", "k")), 0);
    assert_true(result.absent);
}

static void a_missing_compiler_is_the_drivers_refusal(void **state)
{
    (void)state;
    start(0, 0);
    setenv("SOFTGPU_NO_JIT", "1", 1);
    assert_int_equal(make(1, TEXT("one", "k")), 0);
    assert_false(result.absent);
    assert_int_equal(result.result, CUDA_ERR_JIT_COMPILER_NOT_FOUND);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        T(a_text_is_compiled_once_for_everybody),
        T(code_that_nobody_loads_has_the_room_that_is_left),
        T(code_has_a_limit),
        T(a_refusal_comes_with_the_compilers_words),
        T(a_compiler_that_hangs_costs_its_owner_its_time),
        T(a_text_at_work_is_waited_for),
        T(a_compilation_ends_when_nobody_waits_for_it),
        T(compilations_are_counted),
        T(whoever_stops_waits_for_no_compiler),
        T(a_compiler_that_takes_much_memory_is_refused_it),
        T(a_compiler_that_crashes_refuses_its_text_alone),
        T(no_process_is_no_refusal),
        T(a_missing_compiler_is_the_drivers_refusal),
    };
    const char *build = getenv("BUILD");
    snprintf(program, sizeof program, "%s/libexec/gpushare-worker", build ? build : "build");
    snprintf(driver, sizeof driver, "%s/lib/softgpu/libcuda.so.1", build ? build : "build");
    if (access(program, X_OK) < 0 || access(driver, R_OK) < 0) {
        fprintf(stderr, "%s and %s are not built\n", program, driver);
        return 77;
    }
    setenv("SOFTGPU_LINK_OBEYS", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
