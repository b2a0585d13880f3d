/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The source of print.ptx: nvcc -ptx -arch=compute_75 print.cu */
#include <cstdio>

/* Each conversion, flag and size that CUDA's printf has. */
extern "C" __global__ void print_all(int number, double real, const char *text)
{
    if (threadIdx.x)
        return;
    printf("plain\n");
    printf("%d %i %u %o %x %X|%+d|% d|%5d|%-5d|%05d|%.3d\n", number, -number, number, number, number,
           number, number, number, number, number, number, number);
    printf("%hd %hhd %ld %lld %llx %zu\n", number + 65536, number + 256, (long)number << 33,
           (long long)-number, (long long)number << 40, (size_t)number);
    printf("%f %.2f %e %E %g %G %a %A|%10.3f|%-10.1f|%#.0f\n", real, real, real, real, real, real, real,
           real, real, real, real);
    printf("%c%c|%s|%8s|%.2s|%p|100%%\n", 'a', 'b', text, text, text, (void *)0x1234);
    printf("%d %f %d %s %lld %c\n", 1, 2.5, 3, "four", 5ll, '6');
    int taken = printf("%d%d%d\n", 1, 2, 3);
    printf("%s\n", taken > 0 ? "taken" : "refused");
}

/* The software GPU alone does not know these: widths among the arguments, no text, the results. */
extern "C" __global__ void print_more(int number, double real, const char *huge)
{
    printf("%*d|%-*d|%*d|%.*f\n", 6, number, 6, number, -6, number, 3, real);
    printf("%s|%y|%5%|%d\n", (const char *)nullptr, number);
    int three = printf("%d%f%s\n", 1, 2.5, "three"), none = printf("none\n"), much = printf("%s\n", huge);
    printf("results %d %d %d\n", three, none, much);
}

/* One line of each thread. */
extern "C" __global__ void print_lines(int name, int first)
{
    printf("name %d line %d\n", name, first + (int)(blockIdx.x * blockDim.x + threadIdx.x));
}

/* Many lines of one thread, in order. */
extern "C" __global__ void print_loop(int name, int lines)
{
    for (int i = 0; i < lines; i++)
        printf("name %d line %d\n", name, i);
}

/* Each thread prints its lines in order. */
extern "C" __global__ void print_ordered(int lines)
{
    for (int i = 0; i < lines; i++)
        printf("thread %d step %d\n", threadIdx.x, i);
}

extern "C" __global__ void print_and_stray(int name)
{
    printf("name %d line %d\n", name, 0);
    *(volatile int *)8 = 1;
    printf("never\n");
}

extern "C" __global__ void silent(int *word)
{
    *word = 1;
}
