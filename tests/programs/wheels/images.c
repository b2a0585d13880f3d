/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * images: what a worker would read of the machine code in a library of CUDA's.
 *
 *     images FOLDER LIBRARY...
 *
 * Each container of the libraries is unpacked. Each cubin goes into FOLDER, as N.cubin, and each of
 * its kernels becomes a line "N KERNEL COUNT BYTES OFFSET:SIZE,...": its parameters as
 * cubin_layout() reads them. kernels.py compares them with its own reading. A container or cubin
 * that can't be read ends the program.
 */
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cuda/fatbin.h"
#include "server/worker/image/cubin.h"

static void write_cubin(const char *folder, unsigned number, const char *bytes, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%u.cubin", folder, number);
    FILE *file = fopen(path, "wbx");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        err(1, "%s", path);
}

/* Each kernel has a section of code with its name. */
static void print_kernels(unsigned number, const uint8_t *cubin, size_t size)
{
    static uint32_t pairs[2 * PROTO_PARAMETER_COUNT_MAX];
    const Elf64_Ehdr *file = (const void *)cubin;
    const Elf64_Shdr *sections = (const void *)(cubin + file->e_shoff);
    const char *names = (const char *)cubin + sections[file->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < file->e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        uint32_t count;
        uint64_t end;
        if (strncmp(name, ".text.", 6) != 0)
            continue;
        int result = cubin_layout(cubin, size, name + 6, pairs, &count, &end);
        if (result < 0) {
            printf("%u %s %d\n", number, name + 6, result);
            continue;
        }
        printf("%u %s %u %llu ", number, name + 6, count, (unsigned long long)end);
        for (uint32_t k = 0; k < count; k++)
            printf("%s%u:%u", k ? "," : "", pairs[2 * k], pairs[2 * k + 1]);
        putchar('\n');
    }
}

static void read_entry(const char *folder, const struct fatbin_entry *entry)
{
    static unsigned number;
    char *payload;
    size_t bytes;
    int result = fatbin_payload(entry, &payload, &bytes);
    if (result < 0)
        errx(1, "an entry for %u can't be unpacked: %s", entry->arch, strerror(-result));
    if (entry->kind == FATBIN_CUBIN) {
        if (!cubin_is_whole((const uint8_t *)payload, bytes))
            errx(1, "cubin %u, for %u, is not whole", number, entry->arch);
        write_cubin(folder, number, payload, bytes);
        print_kernels(number, (const uint8_t *)payload, bytes);
        number++;
    }
    free(payload);
}

static void read_library(const char *folder, const char *path)
{
    const uint32_t magic = FATBIN_MAGIC;
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        err(1, "%s", path);
    size_t size = (size_t)status.st_size;
    uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        err(1, "%s", path);
    for (size_t at = 0; at + FATBIN_HEADER_BYTES <= size; at += 8) {
        struct fatbin fatbin;
        struct fatbin_entry entry;
        int result;
        if (memcmp(bytes + at, &magic, sizeof magic) != 0 ||
            fatbin_open(&fatbin, bytes + at, size - at) < 0)
            continue;
        while ((result = fatbin_next(&fatbin, &entry)) > 0)
            if (entry.kind == FATBIN_CUBIN || entry.kind == FATBIN_PTX)
                read_entry(folder, &entry);
        if (result < 0)
            errx(1, "%s: the container at %zu is damaged", path, at);
        at += (fatbin_size(bytes + at) - 1) & ~(size_t)7;
    }
    munmap(bytes, size);
    close(fd);
}

int main(int count, char **words)
{
    if (count < 3)
        errx(2, "say a folder and libraries: images FOLDER LIBRARY...");
    for (int i = 2; i < count; i++)
        read_library(words[1], words[i]);
    return 0;
}
