/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * nbody: the Sun and the eight planets, from their true positions at J2000 (2000
 * January 1, 12:00 TT), for a number of days.
 *
 * usage: nbody [-d DAYS] [-s STEP] [-r ROUNDS]
 *
 * Positions come from the Keplerian elements and masses from the ratios in E. M.
 * Standish, "Keplerian Elements for Approximate Positions of the Major Planets" (JPL,
 * valid 1800 to 2050) and the IAU (1976) System of Astronomical Constants.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "examples/example.h"

INCLUDE_PTX(nbody_ptx, "examples/kernels/nbody.ptx");

#define G                                                                                          \
    0.0002959122082855911 /* Gaussian gravitational constant squared; au, days, solar masses */

enum { BODIES = 9 };

struct body {
    double x, y, z, vx, vy, vz, mass, unused;
};

static const struct planet {
    const char *name;
    double a, e, inclination, longitude, perihelion, node; /* au, degrees */
    double sun_ratio;                                      /* the Sun's mass over the planet's */
} planets[BODIES - 1] = {
    {"Mercury", 0.38709927, 0.20563593, 7.00497902, 252.25032350, 77.45779628, 48.33076593,
     6023600.0},
    {"Venus", 0.72333566, 0.00677672, 3.39467605, 181.97909950, 131.60246718, 76.67984255,
     408523.71},
    {"Earth+Moon", 1.00000261, 0.01671123, -0.00001531, 100.46457166, 102.93768193, 0.0, 328900.56},
    {"Mars", 1.52371034, 0.09339410, 1.84969142, -4.55343205, -23.94362959, 49.55953891, 3098708.0},
    {"Jupiter", 5.20288700, 0.04838624, 1.30439695, 34.39644051, 14.72847983, 100.47390909,
     1047.3486},
    {"Saturn", 9.53667594, 0.05386179, 2.48599187, 49.95424423, 92.59887831, 113.66242448,
     3497.898},
    {"Uranus", 19.18916464, 0.04725744, 0.77263783, 313.23810451, 170.95427630, 74.01692503,
     22902.98},
    {"Neptune", 30.06992276, 0.00859048, 1.77004347, -55.12002969, 44.96476227, 131.78422574,
     19412.24},
};

/* Computes position and velocity from the elements: Kepler's equation by Newton's method, then
 * three rotations. */
static struct body place(const struct planet *p)
{
    const double degree = M_PI / 180.0;
    double argument = (p->perihelion - p->node) * degree, node = p->node * degree,
           tilt = p->inclination * degree;
    double mean = remainder((p->longitude - p->perihelion) * degree, 2 * M_PI);
    double anomaly = mean;
    for (int i = 0; i < 20; i++)
        anomaly -= (anomaly - p->e * sin(anomaly) - mean) / (1 - p->e * cos(anomaly));
    double mass = 1.0 / p->sun_ratio, root = sqrt(1 - p->e * p->e);
    double motion = sqrt(G * (1 + mass) / (p->a * p->a * p->a));
    double rate = motion / (1 - p->e * cos(anomaly));
    double px = p->a * (cos(anomaly) - p->e), py = p->a * root * sin(anomaly);
    double vx = -p->a * sin(anomaly) * rate, vy = p->a * root * cos(anomaly) * rate;
    double xx = cos(argument) * cos(node) - sin(argument) * sin(node) * cos(tilt);
    double xy = -sin(argument) * cos(node) - cos(argument) * sin(node) * cos(tilt);
    double yx = cos(argument) * sin(node) + sin(argument) * cos(node) * cos(tilt);
    double yy = -sin(argument) * sin(node) + cos(argument) * cos(node) * cos(tilt);
    double zx = sin(argument) * sin(tilt), zy = cos(argument) * sin(tilt);
    return (struct body){.x = xx * px + xy * py,
                         .y = yx * px + yy * py,
                         .z = zx * px + zy * py,
                         .vx = xx * vx + xy * vy,
                         .vy = yx * vx + yy * vy,
                         .vz = zx * vx + zy * vy,
                         .mass = mass};
}

static void kick(struct body *bodies, double days)
{
    for (unsigned i = 0; i < BODIES; i++) {
        double ax = 0, ay = 0, az = 0;
        for (unsigned j = 0; j < BODIES; j++) {
            if (j == i)
                continue;
            double dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y,
                   dz = bodies[j].z - bodies[i].z;
            double square = dx * dx + dy * dy + dz * dz;
            double pull = G * bodies[j].mass / (square * sqrt(square));
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        bodies[i].vx += days * ax;
        bodies[i].vy += days * ay;
        bodies[i].vz += days * az;
    }
}

static void reference(struct body *bodies, unsigned steps, double step)
{
    for (unsigned n = 0; n < steps; n++) {
        kick(bodies, step / 2);
        for (unsigned i = 0; i < BODIES; i++) {
            bodies[i].x += step * bodies[i].vx;
            bodies[i].y += step * bodies[i].vy;
            bodies[i].z += step * bodies[i].vz;
        }
        kick(bodies, step / 2);
    }
}

static double energy(const struct body *bodies)
{
    double sum = 0;
    for (unsigned i = 0; i < BODIES; i++) {
        const struct body *b = &bodies[i];
        sum += b->mass * (b->vx * b->vx + b->vy * b->vy + b->vz * b->vz) / 2;
        for (unsigned j = i + 1; j < BODIES; j++)
            sum -= G * b->mass * bodies[j].mass /
                   sqrt((b->x - bodies[j].x) * (b->x - bodies[j].x) +
                        (b->y - bodies[j].y) * (b->y - bodies[j].y) +
                        (b->z - bodies[j].z) * (b->z - bodies[j].z));
    }
    return sum;
}

static double worst_distance(const struct body *a, const struct body *b)
{
    double worst = 0;
    for (unsigned i = 0; i < BODIES; i++)
        worst = fmax(worst, sqrt(pow(a[i].x - b[i].x, 2) + pow(a[i].y - b[i].y, 2) +
                                 pow(a[i].z - b[i].z, 2)));
    return worst;
}

int main(int argc, char **argv)
{
    double days = 365.25, step = 0.25;
    unsigned rounds = 1;
    int option;
    while ((option = getopt(argc, argv, "d:s:r:")) != -1) {
        if (option == 'd')
            days = strtod(optarg, NULL);
        else if (option == 's')
            step = strtod(optarg, NULL);
        else
            rounds = option == 'r' ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    }
    if (optind != argc || !(days > 0) || !(step > 0) || days / step > 1e7 || !rounds) {
        fprintf(stderr, "usage: nbody [-d DAYS] [-s STEP] [-r ROUNDS]\n");
        return 2;
    }
    unsigned steps = (unsigned)(days / step), count = BODIES;
    struct body start[BODIES] = {{.mass = 1.0}}, expected[BODIES], result[BODIES];
    for (unsigned i = 1; i < BODIES; i++)
        start[i] = place(&planets[i - 1]);
    memcpy(expected, start, sizeof start);
    reference(expected, steps, step);

    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *gpu_kick, *gpu_drift;
    gpushare_address bodies;
    CHECK(gpushare_connect(NULL, &gpu));
    CHECK(gpushare_module_load(gpu, nbody_ptx, 0, &module));
    CHECK(gpushare_module_function(module, "nbody_kick", &gpu_kick));
    CHECK(gpushare_module_function(module, "nbody_drift", &gpu_drift));
    CHECK(gpushare_memory_alloc(gpu, sizeof start, &bodies));
    double half = step / 2, drift = 0, error = 0;
    struct gpushare_dim one = {1, 1, 1}, block = {32, 1, 1};
    void *kick_parameters[] = {&bodies, &count, &half},
         *drift_parameters[] = {&bodies, &count, &step};
    for (unsigned round = 0; round < rounds; round++) {
        CHECK(gpushare_copy_to_device(gpu, bodies, start, sizeof start));
        for (unsigned n = 0; n < steps; n++) {
            CHECK(gpushare_launch(gpu_kick, one, block, 0, NULL, kick_parameters));
            CHECK(gpushare_launch(gpu_drift, one, block, 0, NULL, drift_parameters));
            CHECK(gpushare_launch(gpu_kick, one, block, 0, NULL, kick_parameters));
        }
        CHECK(gpushare_copy_from_device(gpu, result, bodies, sizeof result));
        error = worst_distance(result, expected);
        drift = fabs(energy(result) / energy(start) - 1);
        printf("round %u of %u: %u steps, energy kept to %.1e\n", round + 1, rounds, steps, drift);
        fflush(stdout);
        /* The device makes the same operations in the same order, but may fuse them or compute
         * roots in its own way: 1e-9 au is 150 m. */
        if (!(error < 1e-9) || !(drift < 1e-5)) {
            fprintf(stderr, "nbody: %.3g au from the reference, energy off by %.3g\n", error,
                    drift);
            return 1;
        }
    }
    for (unsigned i = 1; i < BODIES; i++)
        printf("%-10s %9.5f %9.5f %9.5f au\n", planets[i - 1].name, result[i].x, result[i].y,
               result[i].z);
    gpushare_close(&gpu);
    printf("nbody: %u steps of %g days verified, off by %.1e au at most\n", steps * rounds, step,
           error);
    return 0;
}
