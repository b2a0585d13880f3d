/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Code that launches kernels from the device is found, and refused where it would widen partitions.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "protocol.h"
#include "server/worker/image/cubin.h"
#include "server/worker/code/device_launch.h"
#include "tests/unit/worker/fake.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define CALL                                                                                       \
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n"

static struct code_image text_image(const char *text)
{
    return (struct code_image){
        .kind = CODE_IMAGE_PTX, .bytes = (const uint8_t *)text, .count = strlen(text)};
}

static const char *found_in(const char *text)
{
    struct code_image image = text_image(text);
    const char *found = device_launch_find(&image);
    return found ? found : "";
}

static void launches_of_a_text_are_found(void **state)
{
    (void)state;
    assert_string_equal(found_in(HEAD CALL), "__cudaCDP2LaunchDevice");
    assert_string_equal(found_in(HEAD ".entry k() { call (r), cudaLaunchDevice, (a, b); }"),
                        "cudaLaunchDevice");
    assert_string_equal(found_in(HEAD "// " CALL ".entry k() { ret; }"), "");
    assert_string_equal(found_in(HEAD ".entry my_cudaLaunchDevice() { ret; }"), "");
    assert_string_equal(found_in(""), "");
}

/* A cubin with one symbol. */
struct file {
    Elf64_Ehdr elf;
    Elf64_Shdr sections[3];
    Elf64_Sym symbols[2];
    char names[64];
};

static struct file file_with(const char *name)
{
    struct file file = {
        .elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                .e_shoff = offsetof(struct file, sections),
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = 3},
        .sections = {{0},
                     {.sh_type = SHT_SYMTAB,
                      .sh_offset = offsetof(struct file, symbols),
                      .sh_size = sizeof file.symbols,
                      .sh_link = 2},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(struct file, names),
                      .sh_size = sizeof file.names}},
        .symbols = {{0}, {.st_name = 1}},
    };
    strcpy(file.names + 1, name);
    return file;
}

static bool names_launcher(const struct file *file, size_t size)
{
    return cubin_names((const uint8_t *)file, size, "__cudaCDP2LaunchDevice");
}

static void launches_of_a_cubin_are_found(void **state)
{
    (void)state;
    struct file file = file_with("__cudaCDP2LaunchDeviceV2");
    assert_true(names_launcher(&file, sizeof file));
    struct code_image image = {
        .kind = CODE_IMAGE_CUBIN, .bytes = (const uint8_t *)&file, .count = sizeof file};
    assert_string_equal(device_launch_find(&image), "__cudaCDP2LaunchDevice");
    file = file_with("parent");
    assert_false(names_launcher(&file, sizeof file));
    assert_null(device_launch_find(&image));
}

/* A cubin with several tables of symbols, of which the last has ours. */
static void launches_are_found_in_every_table_of_symbols(void **state)
{
    (void)state;
    struct file whole = file_with("__cudaCDP2LaunchDeviceV2");
    for (size_t tables = 2; tables <= 8; tables++) {
        struct {
            struct file file;
            Elf64_Shdr sections[10];
        } many = {.file = whole};
        Elf64_Shdr empty = whole.sections[1];
        empty.sh_size = 0;
        for (size_t i = 0; i < tables; i++)
            many.sections[i] = empty;
        many.sections[tables - 1] = whole.sections[1];
        many.sections[tables] = whole.sections[2];
        for (size_t i = 0; i < tables; i++)
            many.sections[i].sh_link = (uint32_t)tables;
        many.file.elf.e_shoff = sizeof many.file;
        many.file.elf.e_shnum = (uint16_t)(tables + 1);
        many.file.elf.e_shstrndx = (uint16_t)tables;
        assert_true(cubin_names((const uint8_t *)&many, sizeof many, "__cudaCDP2LaunchDevice"));
        /* More tables than anybody makes are not read. */
        assert_int_equal(cubin_names((const uint8_t *)&many, sizeof many, "other"), tables > 4);
    }
}

/* Every number of such a file is the client's. */
static void damaged_cubins_are_survived(void **state)
{
    (void)state;
    struct file whole = file_with("__cudaCDP2LaunchDeviceV2"), file;
    for (size_t size = 0; size < offsetof(struct file, names) + 20; size++) {
        uint8_t cut[sizeof whole];
        memcpy(cut, &whole, size);
        assert_false(cubin_names(cut, size, "__cudaCDP2LaunchDevice"));
    }
    file = whole;
    file.symbols[1].st_name = UINT32_MAX;
    assert_false(names_launcher(&file, sizeof file));
    file = whole;
    file.sections[1].sh_link = 3;
    assert_false(names_launcher(&file, sizeof file));
    file = whole;
    file.sections[1].sh_offset = UINT64_MAX;
    assert_false(names_launcher(&file, sizeof file));
    file = whole;
    file.elf.e_shnum = UINT16_MAX;
    file.sections[1].sh_type = SHT_PROGBITS;
    assert_false(names_launcher(&file, sizeof file));
}

static cuda_result green_entry(cuda_green_ctx green)
{
    (void)green;
    return CUDA_OK;
}

static void it_is_refused_where_partitions_would_widen(void **state)
{
    (void)state;
    struct cuda_driver cuda = fake_driver();
    struct gpu gpu = {.cuda = &cuda};
    struct code_image image = text_image(HEAD CALL);
    struct error why = {0};
    cuda.cuGreenCtxDestroy = green_entry;
    assert_true(cuda_driver_has_green_contexts(&cuda));
    gpu.info.compute_major = 9;
    assert_int_equal(device_launch_check(&image, &gpu, &why), PROTO_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(why.text, "__cudaCDP2LaunchDevice"));
    assert_non_null(strstr(why.text, "dynamic parallelism"));
    gpu.info.compute_major = 8;
    assert_int_equal(device_launch_check(&image, &gpu, &why), 0);
    gpu.info.compute_major = 9;
    cuda.cuGreenCtxDestroy = NULL;
    assert_int_equal(device_launch_check(&image, &gpu, &why), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_of_a_text_are_found),
        cmocka_unit_test(launches_of_a_cubin_are_found),
        cmocka_unit_test(launches_are_found_in_every_table_of_symbols),
        cmocka_unit_test(damaged_cubins_are_survived),
        cmocka_unit_test(it_is_refused_where_partitions_would_widen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
