/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Functions without a body that PTX may call, as NVIDIA's "PTX Writer's Guide to Interoperability"
 * names them: device code asks them of the system around it. */
#include <stdio.h>
#include <string.h>

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/exec_access.h"
#include "server/softgpu/memory/kernel_heap.h"
#include "server/softgpu/memory/memory_heap.h"

static uint64_t read_param(const struct warp *w, const struct code_param *p, uint32_t lane)
{
    uint64_t value = 0;
    uint32_t bytes = p->bytes < 8 ? p->bytes : 8;
    const uint8_t *base = p->slot & SLOT_CONSTANT ? w->base[1] : w->base[0];
    if (p->space == PTX_SPACE_REG)
        memcpy(&value, base + (p->slot & ~SLOT_CONSTANT) + lane * p->width, bytes);
    else
        memcpy(&value, w->local + (size_t)lane * w->local_stride + w->frame->local_base + p->offset,
               bytes);
    return value;
}

static void write_results(const struct warp *w, const struct code_call *call, uint32_t lane,
                          uint64_t value)
{
    for (uint32_t i = 0; i < call->result_count; i++) {
        const struct code_param *p = &call->results[i];
        uint8_t *at = p->space == PTX_SPACE_REG ? w->base[0] + p->slot + lane * p->width
                                                : w->local + (size_t)lane * w->local_stride +
                                                      w->frame->local_base + p->offset;
        memcpy(at, &value, p->bytes < 8 ? p->bytes : 8);
    }
}

static bool read_bytes(struct warp *w, uint32_t lane, uint64_t address, void *out, uint32_t bytes)
{
    struct access_request q = {PTX_SPACE_NONE, bytes, 1, MEMORY_READ};
    enum fault_kind why;
    const uint8_t *p = exec_access_pointer(w, &q, lane, address, &why);
    if (p)
        memcpy(out, p, bytes);
    return p != NULL;
}

/* Reads a string in the kernel's memory, up to the end of readable memory. */
static void read_string(struct warp *w, uint32_t lane, uint64_t address, char *out, size_t size)
{
    size_t n = 0;
    while (n + 1 < size && read_bytes(w, lane, address + n, &out[n], 1) && out[n])
        n++;
    out[n] = '\0';
}

static enum exec_result system_assert(struct warp *w, const struct op *op, uint32_t mask)
{
    const struct code_call *call = &w->frame->code->calls[op->aux];
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    char message[96] = "", file[64] = "", text[224];
    uint32_t line = 0;
    if (call->arg_count >= 3) {
        read_string(w, lane, read_param(w, &call->args[0], lane), message, sizeof(message));
        read_string(w, lane, read_param(w, &call->args[1], lane), file, sizeof(file));
        line = (uint32_t)read_param(w, &call->args[2], lane);
    }
    snprintf(text, sizeof(text), "%s:%u: assertion `%s' failed", file, line, message);
    return exec_fault(w, op, FAULT_ASSERT, lane, 0, 0, text);
}

/* Carries out one conversion of a format. Its argument has 4 or 8 bytes at *offset of the
 * buffer. */
static int print_one(struct warp *w, uint32_t lane, const char *spec, uint64_t args,
                     uint64_t *offset, char *out, size_t size)
{
    char kind = spec[strlen(spec) - 1], text[1024];
    bool wide = strchr(spec, 'l') || strchr(spec, 'z') || strchr(spec, 'j') || strchr(spec, 't') ||
                strchr("fFeEgGaAsp", kind);
    uint64_t value = 0;
    uint32_t bytes = wide ? 8 : 4;
    *offset = (*offset + bytes - 1) & ~(uint64_t)(bytes - 1);
    if (!read_bytes(w, lane, args + *offset, &value, bytes))
        return -1;
    *offset += bytes;
    double real;
    memcpy(&real, &value, sizeof(real));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (strchr("fFeEgGaA", kind))
        return snprintf(out, size, spec, real);
    if (kind == 's') {
        read_string(w, lane, value, text, sizeof(text));
        return snprintf(out, size, spec, text);
    }
    if (kind == 'p')
        return snprintf(out, size, spec, (void *)(uintptr_t)value);
    if (wide)
        return snprintf(out, size, spec, value);
    return snprintf(out, size, spec, (uint32_t)value);
#pragma GCC diagnostic pop
}

/*
 * Only known parts go to snprintf(): flags, digits, a length and one of the listed conversions. So
 * a hostile format (%n, *) can do nothing.
 */
static size_t take_spec(const char *format, char *spec, size_t size)
{
    size_t n = 1;
    n += strspn(format + n, "-+ #0");
    size_t digits = strspn(format + n, "0123456789.");
    n += digits;
    size_t length = strspn(format + n, "lhzjt");
    n += length;
    if (digits > 8 || length > 2 || !format[n] || !strchr("diouxXcfFeEgGaAsp", format[n]) ||
        n + 2 > size || (length && strchr("sp", format[n])))
        return 0;
    memcpy(spec, format, n + 1);
    spec[n + 1] = '\0';
    return n + 1;
}

static void format_text(struct warp *w, uint32_t lane, const char *format, uint64_t args, char *out,
                        size_t size)
{
    uint64_t offset = 0;
    size_t used = 0;
    while (*format && used + 1 < size) {
        char spec[32];
        size_t n = *format == '%' && format[1] != '%' ? take_spec(format, spec, sizeof(spec)) : 0;
        if (n) {
            int wrote = print_one(w, lane, spec, args, &offset, out + used, size - used);
            if (wrote < 0)
                break;
            used += (size_t)wrote < size - used ? (size_t)wrote : size - used - 1;
            format += n;
        } else {
            format += *format == '%' && format[1] == '%';
            out[used++] = *format++;
        }
    }
    out[used] = '\0';
}

/* To standard output, as CUDA prints, and at once: the program may end by a signal. */
static enum exec_result system_print(struct warp *w, const struct op *op, uint32_t mask)
{
    const struct code_call *call = &w->frame->code->calls[op->aux];
    for (uint32_t m = mask; m && call->arg_count >= 2; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        char format[1024], text[4096];
        read_string(w, lane, read_param(w, &call->args[0], lane), format, sizeof(format));
        format_text(w, lane, format, read_param(w, &call->args[1], lane), text, sizeof(text));
        fputs(text, stdout);
        /* The number of arguments on success; programs test only < 0. */
        write_results(w, call, lane, 1);
    }
    fflush(stdout);
    return EXEC_NEXT;
}

/* ---- the heap ---- */

/* A heap is there in each device that has a module whose kernels allocate. Its blocks stay mapped
 * during a turn, so no lane can lose one that it has. */
static struct kernel_heap *lock_heap(const struct warp *w)
{
    struct kernel_heap *heap = memory_heap_of(w->block->launch->device);
    if (heap)
        kernel_heap_lock(heap);
    return heap;
}

static enum exec_result refuse_call(struct warp *w, const struct op *op, uint32_t mask)
{
    return exec_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, (uint32_t)__builtin_ctz(mask), 0, 0,
                      "call of a function with other parameters than it has");
}

static enum exec_result allocate(struct warp *w, const struct op *op, uint32_t mask, bool aligned)
{
    const struct code_call *call = &w->frame->code->calls[op->aux];
    if (call->arg_count != (aligned ? 2 : 1))
        return refuse_call(w, op, mask);
    struct kernel_heap *heap = lock_heap(w);
    uint64_t alignment = 16;
    uint32_t m = mask, lane = 0;
    for (; heap && m; m &= m - 1) {
        lane = (uint32_t)__builtin_ctz(m);
        if (aligned)
            alignment = read_param(w, &call->args[1], lane);
        if (alignment == 0 || (alignment & (alignment - 1)))
            break;
        uint64_t size = read_param(w, &call->args[0], lane);
        write_results(w, call, lane, kernel_heap_alloc(heap, size, alignment));
    }
    if (!heap)
        return exec_fault(w, op, FAULT_HEAP, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "the device has no heap");
    kernel_heap_unlock(heap);
    char text[96];
    snprintf(text, sizeof(text), "an alignment of %llu, which is no power of two",
             (unsigned long long)alignment);
    return m ? exec_fault(w, op, FAULT_HEAP, lane, 0, 0, text) : EXEC_NEXT;
}

static enum exec_result system_malloc(struct warp *w, const struct op *op, uint32_t mask)
{
    return allocate(w, op, mask, false);
}

static enum exec_result system_aligned_malloc(struct warp *w, const struct op *op, uint32_t mask)
{
    return allocate(w, op, mask, true);
}

static enum exec_result system_free(struct warp *w, const struct op *op, uint32_t mask)
{
    static const char *const reasons[] = {
        [KERNEL_HEAP_FREED_BEFORE] = "was freed before",
        [KERNEL_HEAP_INSIDE] = "is inside of a block: only its first byte's address frees it",
        [KERNEL_HEAP_NO_BLOCK] = "malloc of a kernel has not returned",
    };
    const struct code_call *call = &w->frame->code->calls[op->aux];
    if (call->arg_count != 1)
        return refuse_call(w, op, mask);
    struct kernel_heap *heap = lock_heap(w);
    enum kernel_heap_freed result = heap ? KERNEL_HEAP_FREED : KERNEL_HEAP_NO_BLOCK;
    uint64_t address = 0;
    uint32_t lane = 0;
    for (uint32_t m = mask; m && result == KERNEL_HEAP_FREED; m &= m - 1) {
        lane = (uint32_t)__builtin_ctz(m);
        address = read_param(w, &call->args[0], lane);
        if (address)
            result = kernel_heap_free(heap, address);
    }
    if (heap)
        kernel_heap_unlock(heap);
    if (result == KERNEL_HEAP_FREED)
        return EXEC_NEXT;
    char text[128];
    snprintf(text, sizeof(text), "free of 0x%llx, which %s", (unsigned long long)address,
             reasons[result]);
    return exec_fault(w, op, FAULT_HEAP, lane, 0, 0, text);
}

/* ---- names ---- */

static const struct {
    const char *name;
    exec_action *action;
    bool allocates;
} functions[] = {
    {"__assertfail", system_assert, false},
    {"vprintf", system_print, false},
    {"malloc", system_malloc, true},
    /* nvcc makes it of __nv_aligned_device_malloc. */
    {"__cuda_syscall_aligned_malloc", system_aligned_malloc, true},
    {"free", system_free, true},
};

exec_action *exec_system_find(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].action;
    return NULL;
}

bool exec_system_allocates(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].allocates;
    return false;
}
