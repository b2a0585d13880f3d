// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// One leapfrog step (kick, drift) of gravitating bodies; units: au, days, solar masses.
// G is the Gaussian gravitational constant squared.
#define G 0.0002959122082855911

struct body {
    double x, y, z, vx, vy, vz, mass, unused;
};

extern "C" __global__ void nbody_kick(struct body *bodies, unsigned count, double days)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    double ax = 0.0, ay = 0.0, az = 0.0;
    for (unsigned j = 0; j < count; j++) {
        if (j == i)
            continue;
        double dx = bodies[j].x - bodies[i].x;
        double dy = bodies[j].y - bodies[i].y;
        double dz = bodies[j].z - bodies[i].z;
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

extern "C" __global__ void nbody_drift(struct body *bodies, unsigned count, double days)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    bodies[i].x += days * bodies[i].vx;
    bodies[i].y += days * bodies[i].vy;
    bodies[i].z += days * bodies[i].vz;
}
