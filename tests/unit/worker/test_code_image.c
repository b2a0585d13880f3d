/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Kinds of images, the part of a fatbin that is taken, and a cubin's words on its kernels. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/error.h"
#include "common/cuda/fatbin.h"
#include "protocol.h"
#include "server/worker/image/cubin.h"
#include "server/worker/image/code_image.h"

static struct code_image image;
static struct error why = {0};
static size_t most = SIZE_MAX;

static uint32_t read_bytes(const void *bytes, size_t count, uint64_t said)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, count), count);
    uint32_t error = code_image_open(&image, fd, said, &why);
    if (!error)
        error = code_image_unpack(&image, 90, most, &why);
    close(fd);
    return error;
}

static void ptx_text(void **state)
{
    (void)state;
    static const char text[] = "// made by hand\n.version 8.0\n.target sm_90\n";
    assert_int_equal(read_bytes(text, sizeof text, sizeof text), 0);
    assert_int_equal(image.kind, CODE_IMAGE_PTX);
    assert_int_equal(image.count, sizeof text - 1);
    assert_string_equal((char *)image.bytes, text);
    code_image_release(&image);
    code_image_release(&image);
}

static void text_that_is_no_image_is_refused(void **state)
{
    (void)state;
    assert_int_equal(read_bytes("hello", 5, 5), PROTO_ERROR_INVALID_IMAGE);
    assert_int_equal(read_bytes(".version 8.0\n\0.target", 21, 21), PROTO_ERROR_INVALID_PTX);
    assert_int_equal(read_bytes("\0\0\0\0", 4, 4), PROTO_ERROR_INVALID_IMAGE);
    assert_int_equal(read_bytes(".version 8.0", 12, 4096), PROTO_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(why.text, "shorter"));
    assert_int_equal(read_bytes("x", 1, 0), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(read_bytes("x", 1, (uint64_t)PROTO_IMAGE_MAX + 1), PROTO_ERROR_INVALID_VALUE);
    assert_null(image.bytes);
}

/* ---- fatbins ---- */

static uint8_t container[4096];
static size_t container_bytes;

static void container_open(void)
{
    const uint32_t magic = FATBIN_MAGIC;
    const uint16_t version = 1, header = 16;
    memset(container, 0, sizeof container);
    memcpy(container, &magic, 4);
    memcpy(container + 4, &version, 2);
    memcpy(container + 6, &header, 2);
    container_bytes = 16;
}

static void container_add_bytes(uint16_t kind, uint32_t arch, const void *payload, size_t length)
{
    uint8_t *entry = container + container_bytes;
    const uint16_t version = 0x101;
    const uint32_t header = 64;
    const uint64_t bytes = (length + 7) & ~(size_t)7, flags = 0x11;
    memcpy(entry, &kind, 2);
    memcpy(entry + 2, &version, 2);
    memcpy(entry + 4, &header, 4);
    memcpy(entry + 8, &bytes, 8);
    memcpy(entry + 28, &arch, 4);
    memcpy(entry + 40, &flags, 8);
    memcpy(entry + 64, payload, length);
    container_bytes += 64 + bytes;
    uint64_t size = container_bytes - 16;
    memcpy(container + 8, &size, 8);
}

static void container_add(uint16_t kind, uint32_t arch, const char *payload)
{
    container_add_bytes(kind, arch, payload, strlen(payload) + 1);
}

/* A cubin with nothing in it but its flags. */
struct empty_cubin {
    Elf64_Ehdr elf;
    Elf64_Shdr none;
};

static struct empty_cubin empty_cubin(uint32_t flags)
{
    struct empty_cubin cubin = {.elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                                        .e_shoff = offsetof(struct empty_cubin, none),
                                        .e_shentsize = sizeof(Elf64_Shdr),
                                        .e_shnum = 1,
                                        .e_flags = flags}};
    return cubin;
}

static void container_add_cubin(uint32_t arch)
{
    struct empty_cubin cubin = empty_cubin(arch);
    container_add_bytes(FATBIN_CUBIN, arch, &cubin, sizeof cubin);
}

static void takes_bytes(enum code_image_kind kind, const void *payload, size_t length)
{
    uint32_t error = read_bytes(container, container_bytes, container_bytes);
    if (error)
        print_message("%s\n", why.text);
    assert_int_equal(error, 0);
    assert_int_equal(image.kind, kind);
    assert_memory_equal(image.bytes, payload, length);
    code_image_release(&image);
}

static void takes(enum code_image_kind kind, const char *payload)
{
    takes_bytes(kind, payload, strlen(payload));
}

static void the_best_ptx_of_a_fatbin_is_taken(void **state)
{
    (void)state;
    container_open();
    container_add_cubin(90);
    container_add(FATBIN_PTX, 75, ".version 75");
    container_add(FATBIN_PTX, 80, ".version 80");
    container_add(FATBIN_PTX, 100, ".version 100");
    takes(CODE_IMAGE_PTX, ".version 80");
}

static void without_ptx_the_fitting_cubin_is_taken(void **state)
{
    (void)state;
    container_open();
    container_add_cubin(80);
    container_add_cubin(90);
    container_add(FATBIN_PTX, 100, ".version 100");
    container_add_cubin(100);
    struct empty_cubin cubin = empty_cubin(90);
    takes_bytes(CODE_IMAGE_CUBIN, &cubin, sizeof cubin);
}

static void a_fatbin_for_other_devices_is_refused_in_words(void **state)
{
    (void)state;
    container_open();
    container_add_cubin(80);
    assert_int_equal(read_bytes(container, container_bytes, container_bytes),
                     PROTO_ERROR_NO_BINARY_FOR_GPU);
    assert_non_null(strstr(why.text, "9.0"));
}

static void a_damaged_fatbin_is_refused(void **state)
{
    (void)state;
    container_open();
    container_add(FATBIN_PTX, 80, ".version 80");
    assert_int_equal(read_bytes(container, container_bytes - 8, container_bytes - 8),
                     PROTO_ERROR_INVALID_IMAGE);
}

static void a_fatbin_that_can_not_be_unpacked_is_refused_in_words(void **state)
{
    (void)state;
    const uint32_t compressed = 8;
    const uint64_t lz4 = FATBIN_FLAG_LZ4, huge = (uint64_t)FATBIN_PAYLOAD_MAX + 1;
    container_open();
    container_add(FATBIN_PTX, 80, ".version 80");
    memcpy(container + 16 + 16, &compressed, 4); /* by a method that has no flag */
    assert_int_equal(read_bytes(container, container_bytes, container_bytes),
                     PROTO_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(why.text, "-no-compress"));
    memcpy(container + 16 + 40, &lz4, 8);
    memcpy(container + 16 + 56, &huge, 8);
    assert_int_equal(read_bytes(container, container_bytes, container_bytes),
                     PROTO_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(why.text, "claims to hold more"));
    const uint64_t small = 1000;
    memcpy(container + 16 + 56, &small, 8);
    assert_int_equal(read_bytes(container, container_bytes, container_bytes),
                     PROTO_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(why.text, "damaged"));
}

static void what_is_called_a_cubin_is_an_elf_file(void **state)
{
    (void)state;
    container_open();
    container_add(FATBIN_CUBIN, 90, ".version 8.0");
    assert_int_equal(read_bytes(container, container_bytes, container_bytes),
                     PROTO_ERROR_INVALID_IMAGE);
    assert_non_null(strstr(why.text, "no ELF file"));
    assert_null(image.bytes);
    assert_int_equal(read_bytes("\177ELF", 4, 4), PROTO_ERROR_INVALID_IMAGE);
}

/* ---- cubins ---- */

struct cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    char names[64];
    uint8_t code[16];
    uint8_t info[4 + 4 + 3 * 16];
};

static void put_record(uint8_t *at, uint16_t ordinal, uint16_t offset, uint32_t size)
{
    const uint32_t head = 4 | 0x17 << 8 | 12 << 16;
    const uint32_t words[3] = {0, ordinal | (uint32_t)offset << 16, size << 18 | 0x1f000};
    memcpy(at, &head, 4);
    memcpy(at + 4, words, 12);
}

static struct cubin make_cubin(void)
{
    struct cubin cubin;
    memset(&cubin, 0, sizeof cubin);
    memcpy(cubin.header.e_ident, ELFMAG, SELFMAG);
    cubin.header.e_ident[EI_CLASS] = ELFCLASS64;
    cubin.header.e_shoff = offsetof(struct cubin, sections);
    cubin.header.e_shentsize = sizeof(Elf64_Shdr);
    cubin.header.e_shnum = 4;
    cubin.header.e_shstrndx = 1;
    static const char names[] = "\0.shstrtab\0.text.kernel\0.nv.info.kernel";
    memcpy(cubin.names, names, sizeof names);
    cubin.sections[1] = (Elf64_Shdr){
        .sh_name = 1, .sh_offset = offsetof(struct cubin, names), .sh_size = sizeof cubin.names};
    cubin.sections[2] = (Elf64_Shdr){
        .sh_name = 11, .sh_offset = offsetof(struct cubin, code), .sh_size = sizeof cubin.code};
    cubin.sections[3] = (Elf64_Shdr){
        .sh_name = 24, .sh_offset = offsetof(struct cubin, info), .sh_size = sizeof cubin.info};
    /* A record with its value in the head, and the last ordinal first, as nvcc has it. */
    const uint32_t small = 3 | 0x19 << 8 | 24 << 16, none = 1 | 0x2a << 8;
    memcpy(cubin.info, &small, 4);
    put_record(cubin.info + 4, 2, 16, 8);
    put_record(cubin.info + 20, 1, 4, 12);
    put_record(cubin.info + 36, 0, 0, 4);
    memcpy(cubin.info + 52, &none, 4);
    return cubin;
}

static uint32_t pairs[2 * PROTO_PARAMETER_COUNT_MAX], count;
static uint64_t end;

static void layout_of_a_cubin(void **state)
{
    (void)state;
    struct cubin cubin = make_cubin();
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kernel", pairs, &count, &end), 0);
    const uint32_t expected[6] = {0, 4, 4, 12, 16, 8};
    assert_int_equal(count, 3);
    assert_memory_equal(pairs, expected, sizeof expected);
    assert_int_equal(end, 24);
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kerne", pairs, &count, &end), -ENOENT);
}

static void missing_and_double_parameters_are_damage(void **state)
{
    (void)state;
    struct cubin cubin = make_cubin();
    put_record(cubin.info + 20, 3, 4, 12);
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kernel", pairs, &count, &end),
        -EINVAL);
    put_record(cubin.info + 20, 65535, 4, 12);
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kernel", pairs, &count, &end),
        -EINVAL);
}

/* Above 4 KiB parameters have an attribute of their own, in which a pointer has a byte more. */
static void layout_with_a_large_parameter(void **state)
{
    (void)state;
    struct cubin cubin = make_cubin();
    const uint32_t all = 3 | 0x19 << 8 | 8020u << 16, large = 4 | 0x45 << 8 | 12 << 16;
    const uint32_t record[] = {large, 0, 2 | 16 << 16, 8004 | 5u << 24};
    memcpy(cubin.info, &all, sizeof all);
    memcpy(cubin.info + 4, record, sizeof record);
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kernel", pairs, &count, &end), 0);
    const uint32_t expected[6] = {0, 4, 4, 12, 16, 8004};
    assert_int_equal(count, 3);
    assert_memory_equal(pairs, expected, sizeof expected);
    assert_int_equal(end, 8020);
}

/* A record that says a parameter in a way which nobody knows yet. */
static void a_parameter_that_is_not_read_is_not_left_out(void **state)
{
    (void)state;
    struct cubin cubin = make_cubin();
    const uint32_t unknown = 4 | 0x99 << 8 | 12 << 16;
    memcpy(cubin.info + 4, &unknown, sizeof unknown);
    /* Two are left, and their 16 bytes are not all that the kernel takes. */
    const uint32_t all = 3 | 0x19 << 8 | 32 << 16;
    memcpy(cubin.info, &all, sizeof all);
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kernel", pairs, &count, &end),
        -EINVAL);
    const uint32_t less = 3 | 0x19 << 8 | 12 << 16;
    memcpy(cubin.info, &less, sizeof less);
    assert_int_equal(
        cubin_layout((const uint8_t *)&cubin, sizeof cubin, "kernel", pairs, &count, &end),
        -EINVAL);
}

/* Every truncation, and every byte set to extremes, in memory that ends where the image does. */
static void damaged_cubins_are_read_within_bounds(void **state)
{
    (void)state;
    struct cubin whole = make_cubin();
    for (size_t size = 0; size <= sizeof whole; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, &whole, size);
        int result = cubin_layout(copy, size, "kernel", pairs, &count, &end);
        assert_true(size == sizeof whole ? result == 0 : result <= 0);
        free(copy);
    }
    const size_t bytes = sizeof whole;
    static const uint8_t extremes[] = {0, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < sizeof whole; at++)
        for (size_t e = 0; e < sizeof extremes; e++) {
            uint8_t *copy = malloc(bytes);
            memcpy(copy, &whole, bytes);
            copy[at] = extremes[e];
            int result = cubin_layout(copy, sizeof whole, "kernel", pairs, &count, &end);
            assert_true(result <= 0 && count <= PROTO_PARAMETER_COUNT_MAX);
            free(copy);
        }
}

static bool is_whole(const struct cubin *cubin)
{
    return cubin_is_whole((const uint8_t *)cubin, sizeof *cubin);
}

static void a_cubin_has_all_that_it_names(void **state)
{
    (void)state;
    struct cubin whole = make_cubin(), cubin = whole;
    whole.sections[2].sh_type = whole.sections[3].sh_type = SHT_PROGBITS;
    assert_true(is_whole(&whole));
    cubin = whole;
    cubin.sections[2].sh_offset = sizeof cubin;
    assert_false(is_whole(&cubin));
    cubin.sections[2].sh_type = SHT_NOBITS;
    assert_true(is_whole(&cubin));
    cubin.sections[2].sh_type = SHT_LOPROC + 9;
    assert_true(is_whole(&cubin));
    cubin.sections[2].sh_type = SHT_LOPROC; /* .nv.info */
    assert_false(is_whole(&cubin));
    cubin = whole;
    cubin.sections[3].sh_size = UINT64_MAX;
    assert_false(is_whole(&cubin));
    cubin = whole;
    cubin.header.e_shnum = 200;
    assert_false(is_whole(&cubin));
    cubin = whole;
    cubin.header.e_shentsize = 40;
    assert_false(is_whole(&cubin));
    cubin = whole;
    cubin.header.e_shstrndx = 4;
    assert_false(is_whole(&cubin));
    cubin = whole;
    cubin.header.e_phnum = 1;
    cubin.header.e_phentsize = sizeof(Elf64_Phdr);
    cubin.header.e_phoff = sizeof cubin - sizeof(Elf64_Phdr);
    assert_true(is_whole(&cubin));
    cubin.header.e_phoff++;
    assert_false(is_whole(&cubin));
}

/* Where the sections are too many for the header, or the client says so. */
static void variables_are_counted_where_the_first_section_has_the_numbers(void **state)
{
    (void)state;
    struct cubin cubin = make_cubin();
    const uint8_t *bytes = (const uint8_t *)&cubin;
    static const char names[] = "\0.shstrtab\0.nv.global\0.nv.global.init";
    memcpy(cubin.names, names, sizeof names);
    cubin.sections[2] = (Elf64_Shdr){.sh_name = 11, .sh_type = SHT_NOBITS, .sh_size = 1 << 30};
    cubin.sections[3].sh_name = 22;
    const uint64_t all = (UINT64_C(1) << 30) + sizeof cubin.info;
    assert_int_equal(cubin_variable_bytes(bytes, sizeof cubin), all);
    cubin.header.e_shnum = 0;
    cubin.header.e_shstrndx = SHN_XINDEX;
    assert_int_equal(cubin_variable_bytes(bytes, sizeof cubin), UINT64_MAX);
    assert_false(is_whole(&cubin));
    cubin.sections[0].sh_size = 4;
    cubin.sections[0].sh_link = 1;
    assert_true(is_whole(&cubin));
    assert_int_equal(cubin_variable_bytes(bytes, sizeof cubin), all);
    cubin.header.e_shentsize = 40;
    assert_int_equal(cubin_variable_bytes(bytes, sizeof cubin), UINT64_MAX);
    assert_int_equal(cubin_variable_bytes(bytes, 63), UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptx_text),
        cmocka_unit_test(text_that_is_no_image_is_refused),
        cmocka_unit_test(the_best_ptx_of_a_fatbin_is_taken),
        cmocka_unit_test(without_ptx_the_fitting_cubin_is_taken),
        cmocka_unit_test(a_fatbin_for_other_devices_is_refused_in_words),
        cmocka_unit_test(a_damaged_fatbin_is_refused),
        cmocka_unit_test(a_fatbin_that_can_not_be_unpacked_is_refused_in_words),
        cmocka_unit_test(what_is_called_a_cubin_is_an_elf_file),
        cmocka_unit_test(a_cubin_has_all_that_it_names),
        cmocka_unit_test(variables_are_counted_where_the_first_section_has_the_numbers),
        cmocka_unit_test(layout_of_a_cubin),
        cmocka_unit_test(missing_and_double_parameters_are_damage),
        cmocka_unit_test(layout_with_a_large_parameter),
        cmocka_unit_test(a_parameter_that_is_not_read_is_not_left_out),
        cmocka_unit_test(damaged_cubins_are_read_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
