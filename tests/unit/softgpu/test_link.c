/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The linker, what it makes, and which images a device or a driver cannot take. Every
 * case is a process, for settings are read once.
 */
#include "tests/unit/softgpu/kernels.h"

#include <pthread.h>
#include <signal.h>

#include "server/softgpu/decode/container.h"
#include "server/softgpu/exec/description.h"

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

/* count adds 1 to the module's own variable. */
static const char counter_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                  ".visible .global .align 4 .u32 own = 40;\n"
                                  ".visible .entry count()\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
                                  "mov.u64 %a, own;\natom.global.add.u32 %v, [%a], 1;\nret;\n}\n";

struct counter {
    cuda_module module;
    cuda_function count;
    cuda_device_ptr own;
};

static struct counter load_counter(const void *image)
{
    struct counter counter;
    CHECK(cuModuleLoadData(&counter.module, image) == CUDA_OK);
    CHECK(cuModuleGetFunction(&counter.count, counter.module, "count") == CUDA_OK);
    CHECK(cuModuleGetGlobal_v2(&counter.own, NULL, counter.module, "own") == CUDA_OK);
    return counter;
}

static uint32_t count_with(const struct counter *counter)
{
    uint32_t value = 0;
    CHECK(cuLaunchKernel(counter->count, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CUDA_OK);
    CHECK(cuCtxSynchronize() == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(&value, counter->own, sizeof(value)) == CUDA_OK);
    return value;
}

/* They have decoded code in common, and no variable. */
static void body_same(void)
{
    struct counter all[4];
    cuda_link link;
    void *image;
    size_t size;

    CHECK(kernels_open() == 0);
    link = new_link();
    CHECK(add_ptx(link, counter_ptx) == CUDA_OK);
    CHECK(cuLinkComplete(link, &image, &size) == CUDA_OK);
    for (int i = 0; i < 4; i++)
        all[i] = load_counter(image);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            CHECK(all[i].own != all[k].own && all[i].count != all[k].count);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k <= i; k++)
            CHECK(count_with(&all[i]) == 41 + k);
    /* The first to come may be the first to go. */
    for (int gone = 0; gone < 4; gone++) {
        CHECK(cuModuleUnload(all[gone].module) == CUDA_OK);
        for (int i = gone + 1; i < 4; i++)
            CHECK(count_with(&all[i]) == 42u + (uint32_t)i + (uint32_t)gone);
    }
    struct counter again = load_counter(image);
    CHECK(count_with(&again) == 41);
    CHECK(cuLinkDestroy(link) == CUDA_OK);
}

static void modules_of_one_image_have_variables_of_their_own(void **state)
{
    (void)state;
    in_child(body_same);
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
    CHECK(cuLinkAddData_v2(link, CUDA_JIT_INPUT_OBJECT, ptx("x"), 1, "x", 0, NULL, NULL) ==
          CUDA_ERR_NOT_SUPPORTED);
    CHECK(cuLinkAddData_v2(link, (cuda_jit_input)77, ptx("x"), 1, "x", 0, NULL, NULL) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(add_ptx(link, TEXT("7.0", "sm_70")) == CUDA_OK);
    CHECK(add_ptx(link, TEXT("7.0", "sm_70")) == CUDA_ERR_INVALID_SOURCE);
    CHECK(strstr(log, "'empty'") != NULL);
}

static void what_cannot_be_linked_is_refused(void **state)
{
    (void)state;
    in_child(body_refusals);
}

/* An input that ends too soon, in memory of its own size. */
static cuda_result add_cut(cuda_link link, const void *image, size_t bytes)
{
    void *cut = malloc(bytes);

    memcpy(cut, image, bytes);
    cuda_result result =
        cuLinkAddData_v2(link, CUDA_JIT_INPUT_CUBIN, cut, bytes, "cut", 0, NULL, NULL);
    free(cut);
    return result;
}

static cuda_result load(const void *image)
{
    cuda_module module;

    return cuModuleLoadData(&module, image);
}

static void body_made(void)
{
    cuda_link first, second;
    void *image;
    size_t size;

    CHECK(kernels_open() == 0);
    first = new_link();
    CHECK(add_ptx(first, TEXT("7.0", "sm_70")) == CUDA_OK);
    CHECK(cuLinkComplete(first, &image, &size) == CUDA_OK);
    second = new_link();
    for (size_t bytes = 1; bytes < size; bytes++)
        CHECK(add_cut(second, image, bytes) != CUDA_OK);
    CHECK(add_cut(second, image, size) == CUDA_OK);
    CHECK(cuLinkDestroy(first) == CUDA_OK);
    CHECK(add_ptx(second, counter_ptx) == CUDA_OK);
    for (size_t bytes = 1; bytes <= 4; bytes++)
        CHECK(add_cut(second, "\177ELF", bytes) != CUDA_OK);
    CHECK(cuLinkComplete(second, &image, &size) == CUDA_OK);
    CHECK(load(image) == CUDA_OK);
}

static void a_linked_image_is_an_input_if_it_is_whole(void **state)
{
    (void)state;
    in_child(body_made);
}

static void *make_image(const struct container *container)
{
    size_t size;
    void *image = container_make(container, &size);

    CHECK(image != NULL);
    return image;
}

/* As no linker would make it: it says of any text that it has no kernel and no variable. */
static void *make_container(const char *text, uint32_t arch)
{
    const struct description nothing = {.kernel_count = 0};

    return make_image(&(struct container){.text = text,
                                          .length = strlen(text),
                                          .arch = arch,
                                          .description = &nothing,
                                          .described = sizeof(nothing)});
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

#define VARIABLES                                                                                  \
    ".version 7.0\n.target sm_70\n.address_size 64\n"                                              \
    ".global .u32 counter = 7;\n.const .u32 limits[4] = {1, 2, 3, 4};\n"                           \
    ".visible .entry first()\n{\n.shared .b8 block[48];\nret;\n}\n"                                \
    ".visible .entry second(.param .u64 p)\n{\nret;\n}\n"

static void *link_text(const char *text)
{
    cuda_link link = new_link();
    void *image;

    CHECK(add_ptx(link, text) == CUDA_OK);
    CHECK(cuLinkComplete(link, &image, NULL) == CUDA_OK);
    return image;
}

static uint32_t read_word(cuda_module module, const char *name, uint64_t at)
{
    cuda_device_ptr address;
    uint32_t value = 0;

    CHECK(cuModuleGetGlobal_v2(&address, NULL, module, name) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(&value, address + at, sizeof(value)) == CUDA_OK);
    return value;
}

/* One image, loaded twice: each has variables of its own, with their initial values. */
static void body_variables(void)
{
    const uint32_t changed = 8;
    cuda_device_ptr address;
    cuda_module one, other;
    void *image;

    CHECK(kernels_open() == 0);
    image = link_text(VARIABLES);
    CHECK(cuModuleLoadData(&one, image) == CUDA_OK);
    CHECK(cuModuleLoadData(&other, image) == CUDA_OK);
    CHECK(cuModuleGetGlobal_v2(&address, NULL, one, "counter") == CUDA_OK);
    CHECK(cuMemcpyHtoD_v2(address, &changed, sizeof(changed)) == CUDA_OK);
    CHECK(read_word(one, "counter", 0) == changed);
    CHECK(read_word(other, "counter", 0) == 7);
    CHECK(read_word(other, "limits", 12) == 4);
    CHECK(cuModuleUnload(one) == CUDA_OK);
    CHECK(read_word(other, "limits", 0) == 1);
}

static void each_copy_of_a_linked_image_has_its_own_variables(void **state)
{
    (void)state;
    in_child(body_variables);
}

/* The linker's words are enough for all but code. */
static void body_kernels(void)
{
    cuda_module module;
    cuda_function kernels_found[3] = {NULL}, second;
    unsigned count;
    size_t offset, size;
    const char *name;
    int shared;

    CHECK(kernels_open() == 0);
    CHECK(cuModuleLoadData(&module, link_text(VARIABLES)) == CUDA_OK);
    CHECK(cuModuleGetFunctionCount(&count, module) == CUDA_OK && count == 2);
    CHECK(cuModuleEnumerateFunctions(kernels_found, 3, module) == CUDA_OK && !kernels_found[2]);
    CHECK(cuFuncGetAttribute(&shared, CUDA_FUNC_SHARED_SIZE_BYTES, kernels_found[0]) == CUDA_OK);
    CHECK(shared == 48);
    CHECK(cuFuncSetAttribute(kernels_found[0], CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             (int)device_profile()->block_shared_optin_bytes - 47) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(cuFuncSetAttribute(kernels_found[0], CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             (int)device_profile()->block_shared_optin_bytes - 48) == CUDA_OK);
    CHECK(cuFuncGetName(&name, kernels_found[1]) == CUDA_OK && strcmp(name, "second") == 0);
    CHECK(cuModuleGetFunction(&second, module, "second") == CUDA_OK && second == kernels_found[1]);
    CHECK(cuFuncGetParamInfo(second, 0, &offset, &size) == CUDA_OK && offset == 0 && size == 8);
    CHECK(cuFuncGetAttribute(&shared, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernels_found[0]) ==
          CUDA_OK);
    CHECK(shared == (int)device_profile()->block_shared_optin_bytes - 48);
}

static void a_linked_image_has_its_kernels(void **state)
{
    (void)state;
    in_child(body_kernels);
}

/* A linked image of these variables and their kernels. Its words may be changed. */
struct linked {
    struct container container;
    struct description *description;
    struct description_kernel *kernels;
};

static struct linked link_variables(const char *text)
{
    struct linked linked;

    CHECK(container_read(link_text(text), &linked.container));
    linked.description = malloc(linked.container.described);
    memcpy(linked.description, linked.container.description, linked.container.described);
    linked.container.description = linked.description;
    linked.kernels = (struct description_kernel *)(void *)(linked.description + 1);
    return linked;
}

static cuda_module load_container(const struct container *container)
{
    cuda_module module;

    CHECK(cuModuleLoadData(&module, make_image(container)) == CUDA_OK);
    return module;
}

/* Loads an image. The driver believes its description until its code is needed. */
static void try_container(const struct container *container, cuda_result wanted)
{
    cuda_module module = load_container(container);
    cuda_device_ptr address;
    cuda_function first;

    CHECK(cuModuleGetFunction(&first, module, "first") == CUDA_OK);
    CHECK(launch(first, 1, 1, NULL, NULL) == wanted);
    CHECK(cuModuleGetGlobal_v2(&address, NULL, module, "counter") == wanted);
    CHECK(cuModuleUnload(module) == CUDA_OK);
}

/* As the linker describes TEXT. */
static const struct {
    struct description description;
    struct description_kernel empty;
    char names[8]; /* the description has six of them */
} one_kernel = {.description = {.kernel_count = 1, .name_bytes = 6},
                .empty = {.registers = 1, .max_threads = 1024, .ptx_version = 70, .target = 70},
                .names = "empty"};

static void body_no_jit(void)
{
    setenv("SOFTGPU_NO_JIT", "1", 1);
    CHECK(kernels_open() != 0);
    CHECK(load(kernels_ptx) == CUDA_ERR_JIT_COMPILER_NOT_FOUND);
    CHECK(add_ptx(new_link(), kernels_ptx) == CUDA_ERR_JIT_COMPILER_NOT_FOUND);
    cuda_module module = load_container(
        &(struct container){.text = TEXT("7.0", "sm_70"),
                            .length = sizeof(TEXT("7.0", "sm_70")) - 1,
                            .arch = 90,
                            .description = &one_kernel,
                            .described = offsetof(__typeof__(one_kernel), names) + 6});
    cuda_function empty;
    CHECK(cuModuleGetFunction(&empty, module, "empty") == CUDA_OK);
    CHECK(launch(empty, 1, 1, NULL, NULL) == CUDA_OK);
}

static void without_a_compiler_only_linked_images_load(void **state)
{
    (void)state;
    in_child(body_no_jit);
}

static void body_liars(void)
{
    static const size_t places[] = {
        offsetof(struct description_kernel, static_shared_bytes),
        offsetof(struct description_kernel, local_bytes),
        offsetof(struct description_kernel, const_bytes),
        offsetof(struct description_kernel, parameter_bytes),
        offsetof(struct description_kernel, registers),
        offsetof(struct description_kernel, max_threads),
        offsetof(struct description_kernel, ptx_version),
        offsetof(struct description_kernel, target),
    };
    struct linked liar;

    CHECK(kernels_open() == 0);
    liar = link_variables(VARIABLES);
    try_container(&liar.container, CUDA_OK);
    liar.description->const_bytes = 12;
    try_container(&liar.container, CUDA_ERR_INVALID_IMAGE);
    liar = link_variables(VARIABLES);
    liar.description->global_bytes = 8;
    try_container(&liar.container, CUDA_ERR_INVALID_IMAGE);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        liar = link_variables(VARIABLES);
        *(uint32_t *)(void *)((char *)&liar.kernels[1] + places[i]) += 1;
        try_container(&liar.container, CUDA_ERR_INVALID_IMAGE);
    }
    liar = link_variables(VARIABLES);
    liar.description->global_bytes = UINT64_C(1) << 50;
    CHECK(load(make_image(&liar.container)) == CUDA_ERR_OUT_OF_MEMORY);
    CHECK(load(make_container(VARIABLES, 90)) == CUDA_OK);
    cuda_device_ptr address;
    cuda_module module =
        load_container(&(struct container){.text = VARIABLES,
                                           .length = sizeof(VARIABLES) - 1,
                                           .arch = 90,
                                           .description = &(struct description){0},
                                           .described = sizeof(struct description)});
    CHECK(cuModuleGetGlobal_v2(&address, NULL, module, "counter") == CUDA_ERR_INVALID_IMAGE);
}

static void an_image_that_is_not_what_it_says_is_of_no_use(void **state)
{
    (void)state;
    in_child(body_liars);
}

static void refuse_damage(const struct linked *damaged)
{
    CHECK(load(make_image(&damaged->container)) == CUDA_ERR_INVALID_IMAGE);
}

static void body_damaged(void)
{
    struct linked damaged;

    CHECK(kernels_open() == 0);
    damaged = link_variables(VARIABLES);
    for (size_t bytes = 0; bytes < damaged.container.described; bytes++) {
        struct linked cut = damaged;
        cut.container.described = bytes;
        refuse_damage(&cut);
    }
    damaged.description->kernel_count = UINT32_MAX;
    refuse_damage(&damaged);
    damaged = link_variables(VARIABLES);
    damaged.kernels[1].name = damaged.description->name_bytes;
    refuse_damage(&damaged);
    damaged = link_variables(VARIABLES);
    damaged.kernels[1].parameter = damaged.description->parameter_count + 1;
    refuse_damage(&damaged);
    damaged = link_variables(VARIABLES);
    damaged.kernels[1].parameter_count = UINT32_MAX;
    refuse_damage(&damaged);
    damaged = link_variables(VARIABLES);
    ((char *)damaged.description)[damaged.container.described - 1] = 'x';
    refuse_damage(&damaged);
}

static void a_damaged_description_is_refused(void **state)
{
    (void)state;
    in_child(body_damaged);
}

/* The last line is gone: a brace that nothing closes. */
static cuda_module load_unreadable(const char *text)
{
    struct linked linked = link_variables(text);

    linked.container.length -= 3;
    return load_container(&linked.container);
}

/* No code is read before it is needed; but of a long text before a launch. */
static void body_late(void)
{
    static char text[sizeof(VARIABLES) + (64 << 10)];
    cuda_function second;
    cuda_module module;
    size_t offset, size;
    int threads;
    const char *name;

    CHECK(kernels_open() == 0);
    module = load_unreadable(VARIABLES);
    CHECK(cuModuleGetFunction(&second, module, "second") == CUDA_OK);
    CHECK(cuModuleGetFunction(&second, module, "third") == CUDA_ERR_NOT_FOUND);
    CHECK(cuModuleGetFunction(&second, module, "second") == CUDA_OK);
    CHECK(cuFuncGetName(&name, second) == CUDA_OK && strcmp(name, "second") == 0);
    CHECK(cuFuncGetParamInfo(second, 0, &offset, &size) == CUDA_OK && offset == 0 && size == 8);
    CHECK(cuFuncGetParamInfo(second, 1, &offset, &size) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuFuncGetAttribute(&threads, CUDA_FUNC_MAX_THREADS_PER_BLOCK, second) == CUDA_OK);
    CHECK(threads == 1024);
    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&threads, second, 1024, 0) == CUDA_OK);
    CHECK(threads >= 1);
    CHECK(launch(second, 1, 1, NULL, NULL) == CUDA_ERR_INVALID_PTX);
    memset(text, ' ', sizeof(text) - sizeof(VARIABLES));
    strcpy(text + sizeof(text) - sizeof(VARIABLES), VARIABLES);
    CHECK(cuModuleGetFunction(&second, load_unreadable(text), "second") == CUDA_ERR_INVALID_PTX);
}

static void code_is_decoded_when_it_is_needed(void **state)
{
    (void)state;
    in_child(body_late);
}

/* Another thread may need the same code at the same moment. */
static void *find_kernel(void *module)
{
    cuda_function found = NULL;
    size_t bytes;

    CHECK(cuCtxSetCurrent(kernels.context) == CUDA_OK);
    CHECK(cuModuleGetFunction(&found, module, "store") == CUDA_OK);
    CHECK(cuModuleGetGlobal_v2(NULL, &bytes, module, "no variable") == CUDA_ERR_NOT_FOUND);
    return found;
}

static void body_together(void)
{
    enum { THREADS = 8, ROUNDS = 20 };
    pthread_t threads[THREADS];
    void *image;

    CHECK(kernels_open() == 0);
    image = link_text(kernels_ptx);
    for (int round = 0; round < ROUNDS; round++) {
        cuda_module module;
        void *found[THREADS];

        CHECK(cuModuleLoadData(&module, image) == CUDA_OK);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, find_kernel, module) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], &found[i]) == 0 && found[i] && found[i] == found[0]);
        CHECK(cuModuleUnload(module) == CUDA_OK);
    }
}

static void threads_may_need_code_at_once(void **state)
{
    (void)state;
    in_child(body_together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linked_image_runs),
        cmocka_unit_test(modules_of_one_image_have_variables_of_their_own),
        cmocka_unit_test(what_cannot_be_linked_is_refused),
        cmocka_unit_test(a_linked_image_is_an_input_if_it_is_whole),
        cmocka_unit_test(without_a_compiler_only_linked_images_load),
        cmocka_unit_test(the_compiler_obeys_a_text_if_it_is_told_to),
        cmocka_unit_test(ptx_can_be_newer_than_the_driver),
        cmocka_unit_test(an_image_can_be_too_new_for_the_device),
        cmocka_unit_test(a_foreign_cubin_is_refused),
        cmocka_unit_test(each_copy_of_a_linked_image_has_its_own_variables),
        cmocka_unit_test(a_linked_image_has_its_kernels),
        cmocka_unit_test(an_image_that_is_not_what_it_says_is_of_no_use),
        cmocka_unit_test(a_damaged_description_is_refused),
        cmocka_unit_test(code_is_decoded_when_it_is_needed),
        cmocka_unit_test(threads_may_need_code_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
