/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/print/print_format.h"

#include <stdbool.h>
#include <string.h>

#include "common/util.h"

/* The parts of a record that were not read yet. */
struct reading {
    struct print_record rest;
    size_t at; /* of the arguments */
};

/* One conversion. Width and precision are -1 where there is none. */
struct conversion {
    char flags[8];
    long width, precision;
    bool wide;    /* an integer of 64 bits */
    int shorts;   /* number of h */
    char letter;  /* '\0': the format ends within */
    size_t bytes; /* of the format, from the % on */
};

/* Arguments that are not there are 0. */
static uint64_t take_argument(struct reading *reading, size_t bytes)
{
    uint64_t value = 0;
    size_t at = (reading->at + bytes - 1) & ~(bytes - 1);
    if (at <= reading->rest.argument_bytes && bytes <= reading->rest.argument_bytes - at) {
        memcpy(&value, reading->rest.arguments + at, bytes);
        reading->at = at + bytes;
    }
    return value;
}

/* The next text, up to its zero byte; without one there is none. */
static const char *take_text(struct reading *reading)
{
    const char *text = reading->rest.text;
    size_t length = strnlen(text, reading->rest.text_bytes);
    if (length == reading->rest.text_bytes)
        return NULL;
    reading->rest.text += length + 1;
    reading->rest.text_bytes -= length + 1;
    return text;
}

static void add_flag(struct conversion *conversion, char flag)
{
    size_t used = strlen(conversion->flags);
    if (!strchr(conversion->flags, flag) && used + 1 < sizeof conversion->flags)
        conversion->flags[used] = flag;
}

static void add_digit(long *number, char digit)
{
    *number = min(max(*number, 0L) * 10 + (digit - '0'), (long)PRINT_WIDTH_MAX);
}

/* C's rule: a negative width is a flag and a width, a negative precision is none. */
static void add_star(struct reading *reading, struct conversion *conversion, bool precise)
{
    int value = (int)(uint32_t)take_argument(reading, 4);
    long size = min(value < 0 ? -(long)value : (long)value, (long)PRINT_WIDTH_MAX);
    if (precise) {
        conversion->precision = value < 0 ? -1 : size;
        return;
    }
    conversion->width = size;
    if (value < 0)
        add_flag(conversion, '-');
}

/* Goes through the letters as the function of print_code.c does, so both take the same arguments.
 */
static struct conversion read_conversion(struct reading *reading, const char *format)
{
    struct conversion conversion = {.width = -1, .precision = -1};
    bool precise = false;
    const char *at = format + 1;
    for (; *at; at++) {
        char c = *at;
        if (c == '.') {
            precise = true;
            conversion.precision = 0;
        } else if (c == '*') {
            add_star(reading, &conversion, precise);
        } else if (strchr("-+ #", c) || (c == '0' && !precise && conversion.width < 0)) {
            add_flag(&conversion, c);
        } else if (c >= '0' && c <= '9') {
            add_digit(precise ? &conversion.precision : &conversion.width, c);
        } else if (strchr("ljzt", c)) {
            conversion.wide = true;
        } else if (c == 'h') {
            conversion.shorts++;
        } else {
            conversion.letter = c;
            at++;
            break;
        }
    }
    conversion.bytes = (size_t)(at - format);
    return conversion;
}

/* The conversion as C's printf takes it, with this word for the size. */
static void make_spec(const struct conversion *conversion, const char *size, char *spec,
                      size_t room)
{
    int used = snprintf(spec, room, "%%%s", conversion->flags);
    if (conversion->width >= 0)
        used += snprintf(spec + used, room - (size_t)used, "%ld", conversion->width);
    if (conversion->precision >= 0)
        used += snprintf(spec + used, room - (size_t)used, ".%ld", conversion->precision);
    snprintf(spec + used, room - (size_t)used, "%s%c", size, conversion->letter);
}

/* Only known letters come into the formats here, so a format of a kernel can do nothing else. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void write_integer(struct reading *reading, const struct conversion *conversion, FILE *to)
{
    char spec[64];
    if (conversion->wide) {
        make_spec(conversion, "ll", spec, sizeof spec);
        (void)fprintf(to, spec, (unsigned long long)take_argument(reading, 8));
        return;
    }
    const char *const sizes[] = {"", "h", "hh"};
    make_spec(conversion, sizes[min(conversion->shorts, 2)], spec, sizeof spec);
    (void)fprintf(to, spec, (unsigned)take_argument(reading, 4));
}

static void write_text(struct reading *reading, const struct conversion *conversion, FILE *to)
{
    char spec[64];
    uint64_t address = take_argument(reading, 8);
    const char *text = take_text(reading);
    make_spec(conversion, "", spec, sizeof spec);
    (void)fprintf(to, spec, address && text ? text : "(null)");
}

static void write_real(struct reading *reading, const struct conversion *conversion, FILE *to)
{
    char spec[64];
    double value;
    uint64_t bits = take_argument(reading, 8);
    memcpy(&value, &bits, sizeof value);
    make_spec(conversion, "", spec, sizeof spec);
    (void)fprintf(to, spec, value);
}

static void write_other(struct reading *reading, const struct conversion *conversion, FILE *to)
{
    char spec[64];
    make_spec(conversion, "", spec, sizeof spec);
    if (conversion->letter == 'c')
        (void)fprintf(to, spec, (int)take_argument(reading, 4));
    else
        (void)fprintf(to, spec, (void *)(uintptr_t)take_argument(reading, 8));
}

#pragma GCC diagnostic pop

static void write_conversion(struct reading *reading, const char *format,
                             const struct conversion *conversion, FILE *to)
{
    char letter = conversion->letter;
    if (letter == '%' && conversion->bytes == 2)
        (void)fputc('%', to);
    else if (letter && strchr("diuoxX", letter))
        write_integer(reading, conversion, to);
    else if (letter && strchr("eEfFgGaA", letter))
        write_real(reading, conversion, to);
    else if (letter == 's')
        write_text(reading, conversion, to);
    else if (letter == 'c' || letter == 'p')
        write_other(reading, conversion, to);
    else
        (void)fwrite(format, 1, conversion->bytes, to);
}

void print_format(const struct print_record *record, FILE *to)
{
    struct reading reading = {.rest = *record};
    const char *format = take_text(&reading);
    while (format && *format) {
        size_t plain = strcspn(format, "%");
        (void)fwrite(format, 1, plain, to);
        format += plain;
        if (!*format)
            break;
        struct conversion conversion = read_conversion(&reading, format);
        write_conversion(&reading, format, &conversion, to);
        format += conversion.bytes;
    }
}
