/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * release: the release of CUDA as which a library answers. One file of release_12 and release_13
 * is linked into each library; it sets the number before the program starts, and has the functions
 * that the two releases have under different names or layouts.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_RELEASE_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_RELEASE_H

/* As cudaRuntimeGetVersion counts. */
extern int runtime_release;

#endif
