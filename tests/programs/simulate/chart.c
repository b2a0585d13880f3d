/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/simulate/chart.h"

#include <math.h>

enum { PANEL = 200, HEIGHT = 150, BAR = 34, GAP = 10, LEFT = 20, TOP = 50, PANELS = 4 };

static const char *const titles[PANELS] = {"busy, of the time promised",
                                           "share error, p99, points (log)", "wait, p99, ms (log)",
                                           "Jain's index"};

static double value_of(const struct day_result *result, int panel)
{
    switch (panel) {
    case 0:
        return result->busy;
    case 1:
        return result->error_p99;
    case 2:
        return result->wait_p99_ms;
    default:
        return result->jain;
    }
}

/* 0 to 1: two panels are fractions, two span orders of magnitude. */
static double height_of(double value, int panel)
{
    double least = panel == 1 ? 0.01 : 1, most = panel == 1 ? 100 : 1e6;
    if (panel == 0 || panel == 3)
        return value < 1 ? value : 1;
    if (value <= least)
        return 0.01;
    return value < most ? log(value / least) / log(most / least) : 1;
}

static void draw_panel(FILE *file, const struct day_result *results, int modes, int panel)
{
    static const char *const colours[] = {"#8899aa", "#2f6db5", "#2e9e5b", "#c98a1b"};
    int x = LEFT + panel * (PANEL + GAP);
    fprintf(file, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", x, TOP - 22,
            titles[panel]);
    for (int i = 0; i < modes; i++) {
        double value = value_of(&results[i], panel);
        int tall = (int)(height_of(value, panel) * HEIGHT + 0.5);
        int at = x + i * (BAR + GAP);
        fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", at,
                TOP + HEIGHT - tall, BAR, tall, colours[i % 4]);
        fprintf(file, "<text x=\"%d\" y=\"%d\" font-size=\"10\">%.*f</text>\n", at,
                TOP + HEIGHT - tall - 4, value < 10 ? 3 : 0, value);
        fprintf(file,
                "<text x=\"%d\" y=\"%d\" font-size=\"10\" transform=\"rotate(30 %d %d)\">%s</text>"
                "\n",
                at, TOP + HEIGHT + 14, at, TOP + HEIGHT + 14, results[i].mode);
    }
}

void chart_write(FILE *file, const struct day_result *results, int modes)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            LEFT + PANELS * (PANEL + GAP) + LEFT, TOP + HEIGHT + 60);
    for (int panel = 0; panel < PANELS; panel++)
        draw_panel(file, results, modes, panel);
    fprintf(file, "</svg>\n");
}
