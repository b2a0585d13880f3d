/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/explain.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cuda/fatbin.h"
#include "common/messages.h"
#include "common/util.h"

/* A file in memory. It may be anything, so each read is checked against its size. */
struct file {
    const unsigned char *data;
    size_t bytes;
    mode_t mode;
};

/* Its parts that matter for gpushare run. */
struct findings {
    bool shared_runtime, old_runtime, driver, asks_tables;
    char library[64]; /* the one that asks for tables, or is too old */
    unsigned ptx, cubins, highest_ptx;
};

/* ---- the file ---- */

static bool copy(const struct file *file, uint64_t at, void *to, size_t bytes)
{
    if (at > file->bytes || file->bytes - at < bytes)
        return false;
    memcpy(to, file->data + at, bytes);
    return true;
}

/* A text that ends within the file, or "". */
static const char *text_at(const struct file *file, uint64_t at)
{
    if (at >= file->bytes || !memchr(file->data + at, '\0', file->bytes - at))
        return "";
    return (const char *)file->data + at;
}

static bool section_at(const struct file *file, const Elf64_Ehdr *head, uint64_t index,
                       Elf64_Shdr *section)
{
    return index < head->e_shnum &&
           copy(file, head->e_shoff + index * sizeof *section, section, sizeof *section);
}

/* ---- what is in it ---- */

static void note_library(struct findings *findings, const char *name)
{
    /* The libraries that link the runtime statically and ask the driver for its tables. */
    static const char *const asking[] = {"libcublas",   "libcudnn",  "libcufft", "libcusparse",
                                         "libcusolver", "libcurand", "libnccl"};
    if (!strncmp(name, "libcuda.so", 10))
        findings->driver = true;
    if (!strncmp(name, "libcudart.so.", 13)) {
        findings->shared_runtime = true;
        if (strcmp(name, "libcudart.so.12") != 0 && strcmp(name, "libcudart.so.13") != 0) {
            findings->old_runtime = true;
            snprintf(findings->library, sizeof findings->library, "%s", name);
        }
    }
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (!strncmp(name, asking[i], strlen(asking[i]))) {
            findings->asks_tables = true;
            snprintf(findings->library, sizeof findings->library, "%s", name);
        }
}

static void read_needed(const struct file *file, const Elf64_Shdr *dynamic,
                        const Elf64_Shdr *strings, struct findings *findings)
{
    Elf64_Dyn entry;
    for (uint64_t at = 0; at + sizeof entry <= dynamic->sh_size; at += sizeof entry) {
        if (!copy(file, dynamic->sh_offset + at, &entry, sizeof entry) || entry.d_tag == DT_NULL)
            return;
        if (entry.d_tag == DT_NEEDED)
            note_library(findings, text_at(file, strings->sh_offset + entry.d_un.d_val));
    }
}

/* The section has one container after another, each at a multiple of eight. */
static void read_fatbins(const struct file *file, const Elf64_Shdr *section,
                         struct findings *findings)
{
    uint64_t at = section->sh_offset, end;
    if (__builtin_add_overflow(at, section->sh_size, &end) || end > file->bytes)
        return;
    while (at < end && end - at >= FATBIN_HEADER_BYTES) {
        size_t bytes = fatbin_size(file->data + at);
        struct fatbin fatbin;
        struct fatbin_entry entry;
        if (!bytes || bytes > end - at || fatbin_open(&fatbin, file->data + at, bytes))
            return;
        while (fatbin_next(&fatbin, &entry) == 1) {
            findings->ptx += entry.kind == FATBIN_PTX;
            findings->cubins += entry.kind == FATBIN_CUBIN;
            if (entry.kind == FATBIN_PTX)
                findings->highest_ptx = max(findings->highest_ptx, entry.arch);
        }
        at += (bytes + 7) & ~(uint64_t)7;
    }
}

static bool read_sections(const struct file *file, struct findings *findings)
{
    Elf64_Ehdr head;
    Elf64_Shdr names, section, strings;
    if (!copy(file, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof section ||
        !section_at(file, &head, head.e_shstrndx, &names))
        return false;
    for (uint64_t i = 0; section_at(file, &head, i, &section); i++) {
        if (section.sh_type == SHT_DYNAMIC && section_at(file, &head, section.sh_link, &strings))
            read_needed(file, &section, &strings, findings);
        if (!strcmp(text_at(file, names.sh_offset + section.sh_name), ".nv_fatbin"))
            read_fatbins(file, &section, findings);
    }
    return true;
}

/* ---- what that means ---- */

__attribute__((format(printf, 2, 3))) static void print_line(FILE *out, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(out, format, values);
    va_end(values);
    fputc('\n', out);
}

static unsigned say(const char *path, const struct file *file, const struct findings *findings,
                    FILE *out)
{
    bool kernels = findings->ptx || findings->cubins;
    unsigned problems = 0;
    if (kernels && !findings->shared_runtime && !findings->driver) {
        print_line(out, MESSAGE_TEXT(explain_static), path);
        problems++;
    }
    if (findings->old_runtime) {
        print_line(out, MESSAGE_TEXT(explain_runtime), path, findings->library);
        problems++;
    }
    if (findings->asks_tables) {
        print_line(out, MESSAGE_TEXT(explain_tables), path, findings->library);
        problems++;
    }
    if (file->mode & (S_ISUID | S_ISGID)) {
        print_line(out, MESSAGE_TEXT(explain_setuid), path);
        problems++;
    }
    if (kernels && !findings->ptx)
        print_line(out, MESSAGE_TEXT(explain_no_ptx), path);
    if (!kernels && !findings->shared_runtime && !findings->driver)
        print_line(out, MESSAGE_TEXT(explain_nothing), path);
    else if (!problems && (!kernels || findings->ptx))
        print_line(out, MESSAGE_TEXT(explain_runs), path, findings->ptx, findings->cubins);
    return problems;
}

static uint32_t map_file(const char *path, struct file *file, struct error *why)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status)) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return error_set(why, MESSAGE(explain_file), path, strerror(error));
    }
    file->mode = status.st_mode;
    file->bytes = S_ISREG(status.st_mode) ? (size_t)status.st_size : 0;
    void *data = file->bytes ? mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (data == MAP_FAILED)
        return error_set(why, MESSAGE(explain_no_executable), path);
    file->data = data;
    return 0;
}

uint32_t explain_program(const char *path, FILE *out, unsigned *problems, struct error *why)
{
    struct findings findings = {0};
    struct file file = {0};
    uint32_t error = map_file(path, &file, why);
    if (!file.data)
        return error;
    bool known = read_sections(&file, &findings);
    if (known)
        *problems = say(path, &file, &findings, out);
    munmap((void *)file.data, file.bytes);
    return known ? 0 : error_set(why, MESSAGE(explain_no_executable), path);
}
