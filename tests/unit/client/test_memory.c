/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A host buffer for which the process has no memory left to note it down. */
#include "tests/unit/client/fixture.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

static bool dry; /* there is no memory for tables that grow */

/* A sanitizer allocates before it can be called. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_DROUGHT skip()
#else
#define NO_DROUGHT (void)0

void *reallocarray(void *old, size_t count, size_t bytes)
{
    size_t all;
    if (!dry && !__builtin_mul_overflow(count, bytes, &all))
        return realloc(old, all);
    errno = ENOMEM;
    return NULL;
}
#endif

/* Whether the process can read this address, as the kernel sees it. */
static bool is_mapped(const void *address)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    ssize_t written = write(pipes[1], address, 1);
    assert_true(written == 1 || errno == EFAULT);
    close(pipes[0]);
    close(pipes[1]);
    return written == 1;
}

static void a_buffer_that_cannot_be_noted_is_not_left_mapped(void **state)
{
    (void)state;
    struct fixture f;
    char *last = NULL, *next = NULL;
    void *buffer = NULL;
    NO_DROUGHT;
    fixture_start(&f, NULL);
    OK(gpushare_host_alloc(f.gpu, 4096, &buffer));
    assert_true(is_mapped(buffer));
    /* The fake gives the next addresses each time. After some of them the table is full. */
    gpushare_error error = GPUSHARE_SUCCESS;
    dry = true;
    for (int i = 0; i < 32 && !error; i++) {
        last = buffer;
        next = last + 4096;
        error = gpushare_host_alloc(f.gpu, 4096, &buffer);
    }
    dry = false;
    assert_int_equal(error, GPUSHARE_ERROR_OUT_OF_MEMORY);
    assert_true(is_mapped(last));
    assert_false(is_mapped(next));
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_that_cannot_be_noted_is_not_left_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
