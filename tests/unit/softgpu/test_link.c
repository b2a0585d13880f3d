/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The linker, what it makes, and which images a device or a driver cannot take. Every
 * case is a process, for settings are read once.
 */
#include "tests/unit/softgpu/kernels.h"

#include <signal.h>

#include "server/softgpu/decode/container.h"

#define TEXT(version, target)                                                                      \
    ".version " version "\n.target " target "\n.address_size 64\n"                                 \
    ".visible .entry empty()\n{\n    ret;\n}\n"

static void *ptx(const char *text)
{
    return (void *)(uintptr_t)text;
}

static cuda_link new_link(void)
{
    cuda_link link;

    CHECK(cuLinkCreate_v2(0, NULL, NULL, &link) == CUDA_OK);
    return link;
}

static cuda_result add_ptx(cuda_link link, const char *text)
{
    return cuLinkAddData_v2(link, CUDA_JIT_INPUT_PTX, ptx(text), strlen(text) + 1, "text", 0, NULL,
                            NULL);
}

static void body_link(void)
{
    uint32_t value = 0;
    cuda_device_ptr words;
    cuda_module module;
    cuda_function store;
    unsigned wanted = 4711;
    void *params[] = {&words, &wanted};
    cuda_link link;
    size_t size;
    void *image, *kept;

    CHECK(kernels_open() == 0);
    CHECK(cuMemAlloc_v2(&words, 4096) == CUDA_OK);
    link = new_link();
    CHECK(add_ptx(link, kernels_ptx) == CUDA_OK);
    CHECK(cuLinkComplete(link, &image, &size) == CUDA_OK);
    CHECK(container_is_elf(image) && size > sizeof(kernels_ptx));
    /* The image goes with its link. */
    kept = malloc(size);
    memcpy(kept, image, size);
    CHECK(cuLinkDestroy(link) == CUDA_OK);
    CHECK(cuLinkDestroy(link) == CUDA_ERR_INVALID_HANDLE);
    CHECK(cuModuleLoadData(&module, kept) == CUDA_OK);
    free(kept);
    CHECK(cuModuleGetFunction(&store, module, "store") == CUDA_OK);
    CHECK(launch(store, 1, 1, NULL, params) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(&value, words, 4) == CUDA_OK);
    CHECK(value == wanted);
}

static void a_linked_image_runs(void **state)
{
    (void)state;
    in_child(body_link);
}

static void body_refusals(void)
{
    char log[256] = "";
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    cuda_link link;
    void *image;
    size_t size;

    CHECK(kernels_open() == 0);
    CHECK(cuLinkCreate_v2(2, options, values, &link) == CUDA_OK);
    CHECK(cuLinkComplete(link, &image, &size) == CUDA_ERR_INVALID_VALUE);
    CHECK(add_ptx(link, ".version 7.0\n.target sm_70\n.address_size 64\nnonsense\n") ==
          CUDA_ERR_INVALID_PTX);
    CHECK(strstr(log, "line 4") != NULL);
    CHECK((uintptr_t)values[1] == strlen(log) + 1);
    CHECK(cuLinkAddData_v2(link, CUDA_JIT_INPUT_CUBIN, ptx("x"), 1, "x", 0, NULL, NULL) ==
          CUDA_ERR_NOT_SUPPORTED);
    CHECK(cuLinkAddData_v2(link, (cuda_jit_input)77, ptx("x"), 1, "x", 0, NULL, NULL) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(add_ptx(link, TEXT("7.0", "sm_70")) == CUDA_OK);
    CHECK(add_ptx(link, TEXT("7.0", "sm_70")) == CUDA_ERR_NOT_SUPPORTED);
}

static void what_cannot_be_linked_is_refused(void **state)
{
    (void)state;
    in_child(body_refusals);
}

static void *make_container(const char *text, uint32_t arch)
{
    size_t size;
    void *image = container_make(text, strlen(text), arch, &size);

    CHECK(image != NULL);
    return image;
}

static cuda_result load(const void *image)
{
    cuda_module module;

    return cuModuleLoadData(&module, image);
}

static void body_no_jit(void)
{
    setenv("SOFTGPU_NO_JIT", "1", 1);
    CHECK(kernels_open() != 0);
    CHECK(load(kernels_ptx) == CUDA_ERR_JIT_COMPILER_NOT_FOUND);
    CHECK(add_ptx(new_link(), kernels_ptx) == CUDA_ERR_JIT_COMPILER_NOT_FOUND);
    CHECK(load(make_container(kernels_ptx, 90)) == CUDA_OK);
}

static void without_a_compiler_only_linked_images_load(void **state)
{
    (void)state;
    in_child(body_no_jit);
}

#define SAYS(what) "// softgpu: " what "\n" TEXT("7.0", "sm_80")

static void body_obeys(void)
{
    setenv("SOFTGPU_LINK_OBEYS", "1", 1);
    CHECK(kernels_open() == 0);
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    CHECK(load(SAYS("slow")) == CUDA_OK);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    CHECK((ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000 >= 499);
    /* Compiled code is ready. */
    CHECK(load(make_container(SAYS("crash"), 80)) == CUDA_ERR_NO_BINARY_FOR_GPU);
    CHECK(load(make_container(SAYS("crash"), 90)) == CUDA_OK);
}

static void obeys_and_ends(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        setenv("SOFTGPU_LINK_OBEYS", "1", 1);
        kernels_open();
        load(SAYS("crash"));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void body_obeys_not(void)
{
    CHECK(kernels_open() == 0);
    CHECK(load(SAYS("crash")) == CUDA_OK);
}

static void the_compiler_obeys_a_text_if_it_is_told_to(void **state)
{
    (void)state;
    in_child(body_obeys);
    obeys_and_ends();
    in_child(body_obeys_not);
}

static void body_old_driver(void)
{
    setenv("SOFTGPU_DRIVER_VERSION", "12000", 1);
    CHECK(kernels_open() == 0);
    CHECK(load(TEXT("8.0", "sm_90")) == CUDA_OK);
    CHECK(load(TEXT("8.1", "sm_90")) == CUDA_ERR_UNSUPPORTED_PTX_VERSION);
}

static void body_new_driver(void)
{
    CHECK(kernels_open() == 0);
    CHECK(load(TEXT("8.1", "sm_90")) == CUDA_OK);
}

static void ptx_can_be_newer_than_the_driver(void **state)
{
    (void)state;
    in_child(body_old_driver);
    in_child(body_new_driver);
}

static void body_t4(void)
{
    setenv("SOFTGPU_PROFILE", "t4", 1);
    CHECK(kernels_open() == 0);
    CHECK(load(TEXT("8.0", "sm_75")) == CUDA_OK);
    CHECK(load(TEXT("8.0", "sm_80")) == CUDA_ERR_INVALID_PTX);
    CHECK(load(make_container(kernels_ptx, 75)) == CUDA_OK);
    CHECK(load(make_container(kernels_ptx, 70)) == CUDA_OK);
    CHECK(load(make_container(kernels_ptx, 90)) == CUDA_ERR_NO_BINARY_FOR_GPU);
}

static void an_image_can_be_too_new_for_the_device(void **state)
{
    (void)state;
    in_child(body_t4);
}

static void body_foreign(void)
{
    unsigned char *image = make_container(kernels_ptx, 90);

    CHECK(kernels_open() == 0);
    image[60]++; /* e_shnum */
    CHECK(load(image) == CUDA_ERR_NO_BINARY_FOR_GPU);
    image[60]--;
    CHECK(load(image) == CUDA_OK);
}

static void a_foreign_cubin_is_refused(void **state)
{
    (void)state;
    in_child(body_foreign);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linked_image_runs),
        cmocka_unit_test(what_cannot_be_linked_is_refused),
        cmocka_unit_test(without_a_compiler_only_linked_images_load),
        cmocka_unit_test(the_compiler_obeys_a_text_if_it_is_told_to),
        cmocka_unit_test(ptx_can_be_newer_than_the_driver),
        cmocka_unit_test(an_image_can_be_too_new_for_the_device),
        cmocka_unit_test(a_foreign_cubin_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
