/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/decode/container.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* As nvcc writes them: EM_CUDA, its ABI, and the architecture in the flags. */
enum { MACHINE_CUDA = 190, OSABI_CUDA = 51, ABI_VERSION = 7, ARCH_MASK = 0xff };

/* The names of the sections: the first is none. */
static const char names[] = "\0.shstrtab\0.softgpu.ptx\0.softgpu.info";

enum { NAME_OF_NAMES = 1, NAME_OF_PTX = 11, NAME_OF_INFO = 24 };
enum { SECTION_NONE, SECTION_NAMES, SECTION_PTX, SECTION_INFO, SECTIONS };

struct head {
    Elf64_Ehdr elf;
    Elf64_Shdr sections[SECTIONS];
    char names[sizeof(names)];
};

static Elf64_Shdr make_section(uint32_t name, uint32_t type, uint64_t offset, uint64_t size)
{
    return (Elf64_Shdr){
        .sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size, .sh_addralign = 1};
}

void *container_make(const struct container *container, size_t *size)
{
    const uint32_t arch = container->arch;
    const size_t length = container->length, behind = sizeof(struct head) + length;
    struct head head = {.elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                                            ELFDATA2LSB, EV_CURRENT, OSABI_CUDA, ABI_VERSION},
                                .e_type = ET_EXEC,
                                .e_machine = MACHINE_CUDA,
                                .e_version = EV_CURRENT,
                                .e_shoff = offsetof(struct head, sections),
                                .e_flags = arch | arch << 16,
                                .e_ehsize = sizeof(Elf64_Ehdr),
                                .e_shentsize = sizeof(Elf64_Shdr),
                                .e_shnum = SECTIONS,
                                .e_shstrndx = SECTION_NAMES}};
    char *image = malloc(behind + container->described);

    if (!image)
        return NULL;
    memcpy(head.names, names, sizeof(names));
    head.sections[SECTION_NAMES] =
        make_section(NAME_OF_NAMES, SHT_STRTAB, offsetof(struct head, names), sizeof(names));
    head.sections[SECTION_PTX] = make_section(NAME_OF_PTX, SHT_PROGBITS, sizeof(head), length);
    head.sections[SECTION_INFO] =
        make_section(NAME_OF_INFO, SHT_PROGBITS, behind, container->described);
    memcpy(image, &head, sizeof(head));
    memcpy(image + sizeof(head), container->text, length);
    memcpy(image + behind, container->description, container->described);
    *size = behind + container->described;
    return image;
}

bool container_is_elf(const void *image)
{
    return memcmp(image, ELFMAG, SELFMAG) == 0;
}

bool container_read(const void *image, struct container *container)
{
    const char *bytes = image;
    struct head head;

    /* A cubin has at least a program header or more sections than ours, so that the fixed part
     * can be read of every image with this many. */
    memcpy(&head.elf, bytes, sizeof(head.elf));
    if (head.elf.e_machine != MACHINE_CUDA || head.elf.e_shnum != SECTIONS ||
        head.elf.e_shoff != offsetof(struct head, sections))
        return false;
    memcpy(&head, bytes, sizeof(head));
    if (memcmp(head.names, names, sizeof(names)) != 0 ||
        head.sections[SECTION_PTX].sh_offset != sizeof(head))
        return false;
    const Elf64_Shdr *section = &head.sections[SECTION_INFO];
    const uint64_t length = head.sections[SECTION_PTX].sh_size;
    if (section->sh_offset != sizeof(head) + length)
        return false;
    *container = (struct container){
        .text = bytes + sizeof(head),
        .length = length,
        .arch = head.elf.e_flags & ARCH_MASK,
        .description = bytes + section->sh_offset,
        .described = section->sh_size,
    };
    return true;
}

bool container_read_within(const void *image, size_t bytes, struct container *container)
{
    if (bytes < sizeof(struct head) || !container_is_elf(image) ||
        !container_read(image, container))
        return false;
    /* Sums of what a hostile image says could overflow. */
    const size_t room = bytes - sizeof(struct head);

    return container->length <= room && container->described <= room - container->length;
}
