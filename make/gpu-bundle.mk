# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make gpu-bundle: makes one folder to copy to a machine with a GPU and to run there.

GPU_CHECKS := $(BUILD)/tests/programs/gpu/checks
BUNDLE := $(BUILD)/gpu-bundle

# -MMD does not see the files that .incbin includes.
$(call obj,tests/programs/gpu/probe.c): tests/programs/gpu/kernels/probe.ptx
$(GPU_CHECKS): $(call obj,$(wildcard tests/programs/gpu/*.c)) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/tests/unit/gpu/%: $(BUILD)/obj/tests/unit/gpu/%.o $(call obj,$(filter-out tests/programs/gpu/main.c,$(wildcard tests/programs/gpu/*.c))) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(TEST_LIBS)
# A driver that hangs, crashes or lacks a call, for the tests of the checks.
GPU_BROKEN := $(BUILD)/tests/programs/gpu/broken/libcuda.so.1
$(GPU_BROKEN): $(call obj,tests/programs/gpu/broken/driver.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -o $@ $^ -ldl
CHECK_DEPS += $(GPU_CHECKS) $(GPU_BROKEN)

.PHONY: gpu-bundle
gpu-bundle: all tests $(CHECK_DEPS) $(GPU_CHECKS) ## one folder that checks everything on a machine with a GPU; SAMPLES=FOLDER adds CUDA programs
	make/gpu-bundle.sh $(BUILD) $(BUNDLE) $(SAMPLES)
