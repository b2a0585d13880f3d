/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/programs/bench/bench.h"

enum { INSTRUCTIONS = 64, LINE = 64, KERNEL_TEXT = 256 + INSTRUCTIONS * LINE };

struct text {
    char *at;
    size_t used;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->used += (size_t)vsnprintf(text->at + text->used, IMAGE_BYTES + KERNEL_TEXT - text->used,
                                    format, arguments);
    va_end(arguments);
}

static void add_kernel(struct text *text, uint64_t number, unsigned kernel)
{
    add(text, ".visible .entry work_%llu_%u(.param .u64 to)\n{\n.reg .u64 %%a;\n.reg .u32 %%v;\n",
        (unsigned long long)number, kernel);
    add(text, "ld.param.u64 %%a, [to];\nld.global.u32 %%v, [%%a];\n");
    for (unsigned i = 0; i < INSTRUCTIONS; i++)
        add(text, "mad.lo.u32 %%v, %%v, %u, %u;\n", 1664525 + kernel, 1013904223 + i);
    add(text, "st.global.u32 [%%a], %%v;\nret;\n}\n");
}

char *image_text(uint64_t number)
{
    struct text text = {malloc(IMAGE_BYTES + KERNEL_TEXT), 0};
    uint64_t random = number;
    if (!text.at)
        bench_die("out of memory");
    add(&text, ".version 7.0\n.target sm_75\n.address_size 64\n");
    for (unsigned i = 0; i < IMAGE_KERNELS; i++)
        add_kernel(&text, number, i);
    /* The rest is the table: as many words of ten digits as there is room for. */
    const unsigned words = (unsigned)((IMAGE_BYTES - text.used - 64) / 11);
    add(&text, ".visible .const .align 4 .u32 table[%u] = {", words < 12000 ? words : 12000);
    for (unsigned i = 0; i < words; i++) {
        if (i && i % 12000 == 0)
            add(&text, "};\n.visible .global .align 4 .u32 table%u[%u] = {", i / 12000,
                words - i < 12000 ? words - i : 12000);
        add(&text, "%s%u", i % 12000 ? "," : "",
            (unsigned)bench_draw(&random, 1000000000, 2000000000));
    }
    add(&text, "};\n");
    return text.at;
}
