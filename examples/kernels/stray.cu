// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// Writes where nothing is.
extern "C" __global__ void stray(unsigned *nowhere)
{
    *nowhere = 1;
}
