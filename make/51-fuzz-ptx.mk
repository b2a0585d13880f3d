# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# fuzz_ptx runs what loads, so it takes the instruction side of softgpu along. The
# wide variants are built for the plain instruction set here: same source, one set
# of flags.
FUZZ_PTX_SRC := $(wildcard server/softgpu/decode*.c server/softgpu/exec*.c) \
    $(addprefix server/softgpu/,warp.c block.c module.c fault.c)
$(BUILD)/fuzz/fuzz_ptx: FUZZ_SRC = $(COMMON_SRC) $(GENERATED_C) $(FUZZ_PTX_SRC)
$(BUILD)/fuzz/fuzz_ptx: CPPFLAGS += -Wno-pass-failed
$(BUILD)/fuzz/fuzz_ptx: $(FUZZ_PTX_SRC) $(wildcard server/softgpu/*.h server/softgpu/*.inc)
