// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// How many steps of z = z^2 + c stay within |z| <= 2, for each pixel.
extern "C" __global__ void mandelbrot(unsigned *steps, unsigned width, unsigned height, double left,
                                      double top, double pixel, unsigned most)
{
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    double cr = left + column * pixel, ci = top - row * pixel;
    double zr = 0.0, zi = 0.0;
    unsigned n = 0;
    while (n < most && zr * zr + zi * zi <= 4.0) {
        double next = zr * zr - zi * zi + cr;
        zi = 2.0 * zr * zi + ci;
        zr = next;
        n++;
    }
    steps[row * width + column] = n;
}
