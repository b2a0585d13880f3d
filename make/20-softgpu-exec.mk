# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The lane loops: optimised for themselves, and once per instruction set. Results
# must be IEEE's bit for bit: nothing is contracted or reordered; NaNs matter, the
# flags that arithmetic would raise do not.

EXEC_VALUES := $(addprefix $(BUILD)/obj/server/softgpu/exec_values,.o _v3.o _v4.o)
$(EXEC_VALUES): OPT = -O3 -g -ffp-contract=off -fno-math-errno -fno-trapping-math
$(BUILD)/obj/server/softgpu/exec_values_v3.o: CFLAGS += -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt
$(BUILD)/obj/server/softgpu/exec_values_v4.o: CFLAGS += -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt \
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512
$(BUILD)/obj/server/softgpu/exec_round.o: OPT = -O2 -g -ffp-contract=off -frounding-math
# clang says so of each loop that has no vector form (whole-number division, library calls).
$(EXEC_VALUES): CFLAGS += $(if $(findstring clang,$(CC)),-Wno-pass-failed)
