# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# Every tests/programs/fuzz/fuzz_*.c is a libFuzzer target. It is built with clang's sanitizers in a
# folder of its own, and its findings stay in build/fuzz/NAME.

FUZZ_SECONDS ?= 20
FUZZ_C := $(sort $(wildcard tests/programs/fuzz/fuzz_*.c))
FUZZ_C := $(if $(MATCH),$(foreach file,$(FUZZ_C),$(if $(findstring $(MATCH),$(file)),$(file))),$(FUZZ_C))
FUZZ_SRC = $(COMMON_SRC) $(GENERATED_C)
FUZZ_FLAGS = -std=c17 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined

.PHONY: fuzz
fuzz: $(FUZZ_C:tests/programs/fuzz/%.c=$(BUILD)/fuzz/%) ## fuzz each target for FUZZ_SECONDS (clang); MATCH=word runs some
	@for target in $^; do \
	    echo "fuzz: $$target for $(FUZZ_SECONDS) s"; mkdir -p $$target.corpus; \
	    seeds=tests/programs/fuzz/$$(basename $$target).seeds; [ -d $$seeds ] || seeds=; \
	    $$target -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -verbosity=0 -print_final_stats=1 \
	        -artifact_prefix=$$target. $$target.corpus $$seeds >$$target.log 2>&1 || { tail -40 $$target.log; exit 1; }; \
	    grep number_of_executed_units $$target.log; done

# A target that fuzzes more than common/ names its sources like this.
$(BUILD)/fuzz/fuzz_admin_request: FUZZ_SRC = server/supervisor/admin/request.c server/supervisor/config/schedule.c $(COMMON_SRC) $(GENERATED_C)

$(BUILD)/fuzz/fuzz_cubin: FUZZ_SRC = $(wildcard server/worker/image/cubin*.c) $(COMMON_SRC) $(GENERATED_C)

$(BUILD)/fuzz/fuzz_link: FUZZ_SRC = $(wildcard common/cuda/link/ptx_merge*.c) $(COMMON_SRC) $(GENERATED_C)
$(BUILD)/fuzz/fuzz_config: FUZZ_SRC = $(wildcard server/supervisor/config/*.c) $(COMMON_SRC) $(GENERATED_C)

$(BUILD)/fuzz/fuzz_%: tests/programs/fuzz/fuzz_%.c $(FUZZ_SRC) $(GENERATED_H) $(wildcard common/*.h common/*/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS_ALL) $(FUZZ_FLAGS) -o $@ $< $(FUZZ_SRC) $(PROGRAM_LIBS)

# fuzz_ptx runs the modules that load, so it includes the instruction side of softgpu. The variants for
# wide vectors are built here for the plain instruction set: the sources are the same, and all sources
# of a target have the same flags.
FUZZ_PTX_SRC := $(filter $(addprefix server/softgpu/,decode/% exec/% value/% fault.c memory/kernel_heap.c),$(SOFTGPU_SRC))
$(BUILD)/fuzz/fuzz_ptx: FUZZ_SRC = $(COMMON_SRC) $(GENERATED_C) $(FUZZ_PTX_SRC)
$(BUILD)/fuzz/fuzz_ptx: CPPFLAGS += -Wno-pass-failed
$(BUILD)/fuzz/fuzz_ptx: $(FUZZ_PTX_SRC) $(wildcard server/softgpu/*.h server/softgpu/*/*.h server/softgpu/*/*.inc)
