/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * exec_video: what a video instruction of PTX does (PTX ISA, "Video Instructions"), in op->imm.
 *
 * Operands a and b are eight bytes, a first. Each of `parts` results has a part of them on each
 * side. It is put at its place in c, or all are added to c.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_VIDEO_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_VIDEO_H

#include <assert.h>
#include <stdint.h>

enum video_operation {
    VIDEO_ADD,
    VIDEO_SUB,
    VIDEO_AVERAGE,
    VIDEO_DIFFERENCE,
    VIDEO_MIN,
    VIDEO_MAX,
    VIDEO_SHIFT_LEFT,
    VIDEO_SHIFT_RIGHT,
    VIDEO_SET,
    VIDEO_MULTIPLY_ADD,
};

enum video_compare { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };

/* The use of a result. VIDEO_PLACE: it replaces its part of c. */
enum video_second { VIDEO_PLACE, VIDEO_SECOND_ADD, VIDEO_SECOND_MIN, VIDEO_SECOND_MAX };

struct video {
    uint64_t operation : 4; /* enum video_operation */
    uint64_t parts : 3;     /* results: 1, 2 or 4 */
    uint64_t signed_d : 1, signed_a : 1, signed_b : 1;
    uint64_t saturate : 1;
    uint64_t wrap : 1;     /* of shifts: the count is cut to five bits, not clamped to 32 */
    uint64_t plus_one : 1; /* of VIDEO_MULTIPLY_ADD */
    uint64_t scale : 4;    /* of VIDEO_MULTIPLY_ADD: shifts the sum right by this many bits */
    uint64_t compare : 3;  /* enum video_compare, of VIDEO_SET */
    uint64_t second : 2;   /* enum video_second */
    uint64_t mask : 4;     /* a bit for each result that is used */
    /* Bytes of a part: 1 << log2. The first byte of each result's part is 3 bits of *_at. */
    uint64_t log2_d : 2, log2_a : 2, log2_b : 2;
    uint64_t at_d : 2; /* of the first result; each next one lies behind it */
    uint64_t at_a : 12, at_b : 12;
};
static_assert(sizeof(struct video) == sizeof(uint64_t), "it goes into op->imm");

#endif
