# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make gpu-bundle: one folder to carry to a machine with a GPU and to run there.

QUESTION_C := $(wildcard tests/gpu/question_*.c)
QUESTIONS := $(patsubst %.c,$(BUILD)/%,$(QUESTION_C))
BUNDLE := $(BUILD)/gpu-bundle

$(call obj,tests/gpu/question.c): tests/gpu/kernels/question.ptx
$(QUESTIONS): $(BUILD)/%: $(BUILD)/obj/%.o $(call obj,tests/gpu/question.c) $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lzstd -llz4 -ldl
CHECK_DEPS += $(QUESTIONS)

.PHONY: gpu-bundle
gpu-bundle: all tests $(CHECK_DEPS) $(QUESTIONS) ## one folder that checks everything on a machine with a GPU
	make/gpu-bundle.sh $(BUILD) $(BUNDLE)
