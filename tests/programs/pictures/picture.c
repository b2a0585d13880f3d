/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * picture: a trace of `gpusharectl trace` as an SVG.
 *
 *   picture TRACE OUT --title TEXT --command TEXT --from MS --until MS [--atoms N]
 *
 * A row a client over time: its batches on the device, its leases behind them, and below
 * them when it was held. With --atoms, N rows, one a group of multiprocessors, each in
 * the colour of the client whose work ran there.
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { LEFT = 130, RIGHT = 110, WIDTH = 720, TOP = 56, ROW = 40, BAR = 18, CLIENTS_MOST = 8 };
enum { ATOM = 11, ATOMS_MOST = 64, PARTS_MOST = 200000 };

struct options {
    const char *trace, *out, *title, *command;
    double from, until; /* ms */
    int atoms;
};

enum part_kind { PART_BATCH, PART_LEASE, PART_HELD };

/* A stretch of time of one client, in ms. */
struct part {
    enum part_kind kind;
    int client;
    double from, to;
    bool atoms[ATOMS_MOST];
};

struct picture {
    const struct options *options;
    FILE *file;
    struct part *parts;
    size_t count;
    long long processes[CLIENTS_MOST]; /* of the trace, by number */
    char names[CLIENTS_MOST][64];
    int clients;
};

static const char *const colours[CLIENTS_MOST] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                  "#56b4e9", "#d55e00", "#8a8a00", "#555555"};

static int fail(const char *what, const char *name)
{
    fprintf(stderr, "picture: %s %s\n", what, name);
    return 1;
}

/* ---- reading ---- */

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text ? text : "";
}

static double number_of(const json_t *event, const char *name)
{
    return json_number_value(json_object_get(event, name));
}

static int client_of(const struct picture *picture, long long process)
{
    for (int i = 0; i < picture->clients; i++)
        if (picture->processes[i] == process)
            return i;
    return -1;
}

/* "NAME (client 3, pid ...)". */
static void read_client(struct picture *picture, const json_t *event)
{
    long long process = json_integer_value(json_object_get(event, "pid"));
    const char *name = text_of(json_object_get(event, "args"), "name");
    if (strcmp(text_of(event, "name"), "process_name") != 0 || process == 1 ||
        picture->clients == CLIENTS_MOST)
        return;
    const char *end = strstr(name, " (client ");
    int length = end ? (int)(end - name) : (int)strlen(name);
    picture->processes[picture->clients] = process;
    snprintf(picture->names[picture->clients++], sizeof picture->names[0], "%.*s", length, name);
}

/* "0-3, 7". */
static void read_atoms(const char *text, bool atoms[ATOMS_MOST])
{
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            return;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long i = first; i >= 0 && i <= last && i < ATOMS_MOST; i++)
            atoms[i] = true;
        text = end + strspn(end, ", ");
    }
}

static void read_part(struct picture *picture, const json_t *event)
{
    const json_t *arguments = json_object_get(event, "args");
    const char *category = text_of(event, "cat");
    double from = number_of(event, "ts") / 1e3;
    struct part part = {.from = from, .to = from + number_of(event, "dur") / 1e3};
    long long process = json_integer_value(json_object_get(event, "pid"));
    if (!strcmp(category, "batch")) {
        part.kind = PART_BATCH;
        read_atoms(text_of(arguments, "atoms"), part.atoms);
    } else if (!strcmp(category, "lease")) {
        part.kind = PART_LEASE;
        process = json_integer_value(json_object_get(arguments, "client")) + 1;
    } else if (!strcmp(category, "held")) {
        part.kind = PART_HELD;
    } else {
        return;
    }
    part.client = client_of(picture, process);
    if (part.from < picture->options->from)
        part.from = picture->options->from;
    if (part.to > picture->options->until)
        part.to = picture->options->until;
    if (part.client >= 0 && part.to > part.from && picture->count < PARTS_MOST)
        picture->parts[picture->count++] = part;
}

static int by_row_and_time(const void *a, const void *b)
{
    const struct part *one = a, *other = b;
    if (one->client != other->client)
        return one->client - other->client;
    if (one->kind != other->kind)
        return (int)one->kind - (int)other->kind;
    return one->from < other->from ? -1 : one->from > other->from;
}

static int read_trace(struct picture *picture)
{
    json_error_t error;
    json_t *trace = json_load_file(picture->options->trace, JSON_REJECT_DUPLICATES, &error);
    const json_t *events = json_object_get(trace, "traceEvents");
    picture->parts = calloc(PARTS_MOST, sizeof *picture->parts);
    if (!json_is_array(events) || !picture->parts) {
        json_decref(trace);
        return fail(error.text, picture->options->trace);
    }
    for (size_t i = 0; i < json_array_size(events); i++)
        read_client(picture, json_array_get(events, i));
    for (size_t i = 0; i < json_array_size(events); i++)
        read_part(picture, json_array_get(events, i));
    qsort(picture->parts, picture->count, sizeof *picture->parts, by_row_and_time);
    json_decref(trace);
    return picture->count ? 0 : fail("nothing ran in that time of", picture->options->trace);
}

/* ---- drawing ---- */

static double x_of(const struct picture *picture, double ms)
{
    const struct options *options = picture->options;
    return LEFT + (ms - options->from) / (options->until - options->from) * WIDTH;
}

static void write_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", file);
        else if (*text == '>')
            fputs("&gt;", file);
        else if (*text == '&')
            fputs("&amp;", file);
        else
            fputc((unsigned char)*text < 0x20 ? ' ' : *text, file);
    }
}

static void label(FILE *file, double x, double y, const char *more, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, more);
    write_text(file, text);
    fputs("</text>\n", file);
}

static void box(FILE *file, double x, double y, double width, double height, const char *colour,
                double opacity)
{
    fprintf(file, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"", x, y,
            width < 0.25 ? 0.25 : width, height, colour);
    if (opacity < 1)
        fprintf(file, " fill-opacity=\"%.2f\"", opacity);
    fputs("/>\n", file);
}

/* One, two or five times a power of ten: some eight of them. */
static double step_of(double span)
{
    double power = pow(10, floor(log10(span / 8)));
    double times = span / 8 / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void draw_axis(const struct picture *picture, double bottom)
{
    const struct options *options = picture->options;
    double step = step_of(options->until - options->from);
    int ticks = (int)((options->until - options->from) / step + 1e-3);
    for (int i = 0; i <= ticks; i++) {
        char text[32];
        double ms = i * step;
        double x = x_of(picture, options->from + ms);
        fprintf(picture->file,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#cccccc\"/>\n", x,
                TOP - 4, x, bottom + 4);
        snprintf(text, sizeof text, "%.0f", ms);
        label(picture->file, x, bottom + 18, " text-anchor=\"middle\" font-size=\"11\"", text);
    }
    label(picture->file, LEFT + WIDTH + 16, bottom + 18, " font-size=\"11\"", "ms");
}

/* What follows closer than the eye can see is drawn as one. */
static void draw_merged(const struct picture *picture, int client, enum part_kind kind, double y,
                        double height, double opacity)
{
    double closest = (picture->options->until - picture->options->from) / WIDTH * 0.35;
    double from = 0, to = -1;
    const char *colour = kind == PART_HELD ? "#999999" : colours[client];
    for (size_t i = 0; i <= picture->count; i++) {
        const struct part *part = i < picture->count ? &picture->parts[i] : NULL;
        if (part && (part->client != client || part->kind != kind))
            continue;
        /* Leases of one client that follow each other stay apart. */
        if (part && to > from && kind != PART_LEASE && part->from - to < closest) {
            to = part->to > to ? part->to : to;
            continue;
        }
        if (to > from)
            box(picture->file, x_of(picture, from), y,
                x_of(picture, to) - x_of(picture, from) - (kind == PART_LEASE ? 0.6 : 0), height,
                colour, opacity);
        if (part) {
            from = part->from;
            to = part->to;
        }
    }
}

/* The part of the time in which it had work on the device. */
static double busy(const struct picture *picture, int client)
{
    double sum = 0, end = picture->options->from;
    for (size_t i = 0; i < picture->count; i++) {
        const struct part *part = &picture->parts[i];
        if (part->client != client || part->kind != PART_BATCH || part->to <= end)
            continue;
        sum += part->to - (part->from > end ? part->from : end);
        end = part->to;
    }
    return sum / (picture->options->until - picture->options->from);
}

static void draw_clients(const struct picture *picture)
{
    for (int i = 0; i < picture->clients; i++) {
        double y = TOP + i * ROW;
        char share[32];
        box(picture->file, LEFT, y, WIDTH, ROW - 8, "#f4f4f4", 1);
        draw_merged(picture, i, PART_LEASE, y, ROW - 8, 0.25);
        draw_merged(picture, i, PART_BATCH, y + 4, BAR, 1);
        draw_merged(picture, i, PART_HELD, y + ROW - 14, 4, 1);
        label(picture->file, LEFT - 8, y + 19, " text-anchor=\"end\"", picture->names[i]);
        snprintf(share, sizeof share, "busy %.0f %%", busy(picture, i) * 100);
        label(picture->file, LEFT + WIDTH + 10, y + 19, " font-size=\"12\"", share);
    }
}

static void draw_atoms(const struct picture *picture)
{
    const struct options *options = picture->options;
    for (int atom = 0; atom < options->atoms; atom++) {
        double y = TOP + atom * ATOM;
        box(picture->file, LEFT, y, WIDTH, ATOM - 1, "#f4f4f4", 1);
        for (size_t i = 0; i < picture->count; i++) {
            const struct part *part = &picture->parts[i];
            double to = part->to;
            if (part->kind != PART_BATCH || !part->atoms[atom])
                continue;
            /* Its neighbours in time on this atom, without a gap to be seen. */
            double closest = (options->until - options->from) / WIDTH * 0.35;
            double from = part->from;
            while (i + 1 < picture->count && picture->parts[i + 1].client == part->client &&
                   picture->parts[i + 1].kind == PART_BATCH && picture->parts[i + 1].atoms[atom] &&
                   picture->parts[i + 1].from - to < closest) {
                part = &picture->parts[++i];
                to = part->to > to ? part->to : to;
            }
            box(picture->file, x_of(picture, from), y, x_of(picture, to) - x_of(picture, from),
                ATOM - 1, colours[part->client], 0.85);
        }
    }
    label(picture->file, LEFT - 8, TOP + 9, " text-anchor=\"end\" font-size=\"11\"",
          "multiprocessors");
    label(picture->file, LEFT - 8, TOP + 9 + 14, " text-anchor=\"end\" font-size=\"11\"",
          "a row: one group");
}

static void draw_legend(const struct picture *picture, double y)
{
    double x = LEFT;
    for (int i = 0; picture->options->atoms && i < picture->clients; i++) {
        box(picture->file, x, y - 10, 12, 12, colours[i], 0.85);
        label(picture->file, x + 18, y, " font-size=\"12\"", picture->names[i]);
        x += 24 + 7.5 * (double)strlen(picture->names[i]) + 24;
    }
    if (picture->options->atoms)
        return;
    bool any[3] = {false};
    for (size_t i = 0; i < picture->count; i++)
        any[picture->parts[i].kind] = true;
    static const char *const names[3] = {"work on the device", "its lease",
                                         "held: it has work and must wait"};
    static const double opacities[3] = {1, 0.25, 1};
    for (int kind = 0; kind < 3; kind++) {
        if (!any[kind])
            continue;
        box(picture->file, x, y - 10, 22, kind == PART_HELD ? 4 : 12,
            kind == PART_HELD ? "#999999" : colours[0], opacities[kind]);
        label(picture->file, x + 28, y, " font-size=\"12\"", names[kind]);
        x += 52 + 6.5 * (double)strlen(names[kind]);
    }
}

static void draw(const struct picture *picture)
{
    const struct options *options = picture->options;
    double bottom = options->atoms ? TOP + options->atoms * ATOM : TOP + picture->clients * ROW - 8;
    int height = (int)bottom + 70, width = LEFT + WIDTH + RIGHT;
    fprintf(picture->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n<desc>",
            width, height, width, height);
    write_text(picture->file, options->command);
    fputs("</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", picture->file);
    label(picture->file, LEFT, 24, " font-size=\"16\" font-weight=\"bold\"", options->title);
    draw_axis(picture, bottom);
    if (options->atoms)
        draw_atoms(picture);
    else
        draw_clients(picture);
    draw_legend(picture, bottom + 42);
    label(picture->file, LEFT, bottom + 62, " font-size=\"10\" fill=\"#666666\"", options->command);
    fputs("</svg>\n", picture->file);
}

/* ---- the program ---- */

static int read_options(struct options *options, int argc, char **argv)
{
    static const struct option longs[] = {
        {"title", required_argument, NULL, 't'}, {"command", required_argument, NULL, 'c'},
        {"from", required_argument, NULL, 'f'},  {"until", required_argument, NULL, 'u'},
        {"atoms", required_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (option == 't')
            options->title = optarg;
        else if (option == 'c')
            options->command = optarg;
        else if (option == 'f')
            options->from = strtod(optarg, NULL);
        else if (option == 'u')
            options->until = strtod(optarg, NULL);
        else if (option == 'a')
            options->atoms = atoi(optarg);
        else
            return 2;
    }
    if (argc - optind != 2 || !options->title || !options->command || options->from < 0 ||
        options->until <= options->from || options->atoms < 0 || options->atoms > ATOMS_MOST) {
        fputs("usage: picture TRACE OUT --title TEXT --command TEXT --from MS --until MS "
              "[--atoms N]\n",
              stderr);
        return 2;
    }
    options->trace = argv[optind];
    options->out = argv[optind + 1];
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct picture picture = {.options = &options};
    int result = read_options(&options, argc, argv);
    if (result)
        return result;
    if (read_trace(&picture)) {
        free(picture.parts);
        return 1;
    }
    picture.file = fopen(options.out, "w");
    if (picture.file)
        draw(&picture);
    bool written = picture.file && !ferror(picture.file);
    written = picture.file && fclose(picture.file) == 0 && written;
    free(picture.parts);
    return written ? 0 : fail("cannot write", options.out);
}
