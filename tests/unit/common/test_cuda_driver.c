/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"

#include "common/error.h"
#include "protocol.h"

static char scratch[] = "/tmp/gpushare-cuda-driver-XXXXXX";

static int make_scratch(void **state)
{
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

static unsigned built;

static int remove_scratch(void **state)
{
    char path[128];

    (void)state;
    for (unsigned i = 0; i < built; i++) {
        snprintf(path, sizeof(path), "%s/library%u.so", scratch, i);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/source.c", scratch);
    unlink(path);
    return rmdir(scratch);
}

/*
 * Builds a shared library from C text and returns its path: a new one for each,
 * for a driver once opened stays mapped.
 */
static const char *build_library(const char *source)
{
    static char library[128];
    char path[128], command[512];
    const char *compiler = getenv("CC");
    FILE *file;

    snprintf(path, sizeof(path), "%s/source.c", scratch);
    snprintf(library, sizeof(library), "%s/library%u.so", scratch, built++);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(source, file) >= 0);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof(command), "%s -shared -fPIC -o %s %s", compiler ? compiler : "cc",
             library, path);
    assert_int_equal(system(command), 0);
    return library;
}

static void relative_path_is_refused(void **state)
{
    struct cuda_driver driver;
    struct error why = {0};

    (void)state;
    assert_int_equal(cuda_driver_open(&driver, "libcuda.so.1", &why), PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, "libcuda.so.1"));
    assert_int_equal(cuda_driver_open(&driver, NULL, &why), PROTO_ERROR_NO_DEVICE);
    assert_null(driver.cuInit);
}

static void missing_file_is_named(void **state)
{
    struct cuda_driver driver;
    struct error why = {0};

    (void)state;
    assert_int_equal(cuda_driver_open(&driver, "/nonexistent/libcuda.so.1", &why),
                     PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, "/nonexistent/libcuda.so.1"));
    assert_null(driver.library);
}

static void library_that_is_no_driver_is_refused(void **state)
{
    struct cuda_driver driver;
    struct error why = {0};

    (void)state;
    assert_int_equal(
        cuda_driver_open(&driver, build_library("int nothing(void) { return 0; }"), &why),
        PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, "cuGetProcAddress_v2"));
}

static void own_dropin_is_refused(void **state)
{
    struct cuda_driver driver;
    struct error why = {0};

    (void)state;
    assert_int_equal(
        cuda_driver_open(&driver,
                         build_library("int gpushare_dropin_marker; int cuGetProcAddress_v2(void) "
                                       "{ return 0; }"),
                         &why),
        PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, "drop-in"));
    assert_null(driver.library);
}

/* A driver that answers every question, save for those named in `lacking`. */
static const char *driver_lacking(const char *lacking)
{
    char source[1024];

    snprintf(
        source, sizeof(source),
        "#include <string.h>\n"
        "static int entry(void) { return 7; }\n"
        "int cuGetProcAddress_v2(const char *n, void **f, int v, unsigned long fl, int *s)\n"
        "{ (void)v; (void)fl; *s = 0; if (strstr(\" %s \", n)) { *f = 0; *s = 1; return 500; }\n"
        "  *f = (void *)entry; return 0; }\n",
        lacking);
    return build_library(source);
}

static void missing_required_entry_is_named(void **state)
{
    struct cuda_driver driver;
    struct error why = {0};

    (void)state;
    assert_int_equal(cuda_driver_open(&driver, driver_lacking("cuMemSetAccess"), &why),
                     PROTO_ERROR_NO_DEVICE);
    assert_non_null(strstr(why.text, "cuMemSetAccess"));
    assert_null(driver.cuInit);
}

static void an_examiner_opens_a_driver_that_lacks_a_required_entry(void **state)
{
    struct cuda_driver driver;
    struct error why = {0};

    (void)state;
    assert_int_equal(cuda_driver_open_partly(&driver, driver_lacking("cuLaunchKernel"), &why), 0);
    assert_null(driver.cuLaunchKernel);
    assert_non_null(driver.cuInit);
    cuda_driver_close(&driver);
    assert_int_equal(cuda_driver_open_partly(&driver, "/nowhere/libcuda.so.1", &why),
                     PROTO_ERROR_NO_DEVICE);
}

static void missing_optional_entry_stays_null(void **state)
{
    struct cuda_driver driver;
    struct error why;

    (void)state;
    assert_int_equal(cuda_driver_open(&driver, driver_lacking("cuGreenCtxStreamCreate"), &why), 0);
    assert_null(driver.cuGreenCtxStreamCreate);
    assert_non_null(driver.cuGreenCtxCreate);
    assert_false(cuda_driver_has_green_contexts(&driver));
    assert_int_equal(driver.cuInit(0), 7);
    cuda_driver_close(&driver);
    assert_null(driver.cuInit);
    cuda_driver_close(&driver);
}

static void errors_have_names_and_sentences(void **state)
{
    (void)state;
    assert_string_equal(cuda_driver_error_name(CUDA_OK), "CUDA_SUCCESS");
    assert_string_equal(cuda_driver_error_name(CUDA_ERR_ILLEGAL_ADDRESS),
                        "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_null(cuda_driver_error_name((cuda_result)12345));
    assert_non_null(cuda_driver_error_sentence((cuda_result)12345));
    assert_string_equal(cuda_driver_error_sentence(CUDA_OK), "no error");
}

static void only_errors_that_lose_the_context_are_sticky(void **state)
{
    static const int sticky[] = {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911};
    static const int passing[] = {0, 1, 2, 201, 218, 400, 500, 600, 701, 712, 720, 801, 912, 12345};

    (void)state;
    for (size_t i = 0; i < sizeof(sticky) / sizeof(sticky[0]); i++)
        assert_true(cuda_driver_error_is_sticky((cuda_result)sticky[i]));
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
        assert_false(cuda_driver_error_is_sticky((cuda_result)passing[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relative_path_is_refused),
        cmocka_unit_test(missing_file_is_named),
        cmocka_unit_test(library_that_is_no_driver_is_refused),
        cmocka_unit_test(own_dropin_is_refused),
        cmocka_unit_test(missing_required_entry_is_named),
        cmocka_unit_test(an_examiner_opens_a_driver_that_lacks_a_required_entry),
        cmocka_unit_test(missing_optional_entry_stays_null),
        cmocka_unit_test(errors_have_names_and_sentences),
        cmocka_unit_test(only_errors_that_lose_the_context_are_sticky),
    };

    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
