# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make bench: the rows of README's table; the null driver that the launch rows run on.

BENCH_SRC := $(wildcard tests/programs/bench/*.c)
NULL_DRIVER := $(BUILD)/tests/programs/bench/null/libcuda.so.1

$(NULL_DRIVER): $(call obj,tests/programs/bench/null/null.c) $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $^ -lzstd -llz4 -ldl

$(call obj,tests/programs/bench/bench.c): tests/programs/bench/kernels/bench.ptx
$(BUILD)/tests/programs/bench/bench: $(call obj,$(BENCH_SRC)) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lm

$(BUILD)/tests/unit/bench/%: $(BUILD)/obj/tests/unit/bench/%.o $(call obj,tests/programs/bench/span.c)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka -lm

# tests/integration/test_bench.sh runs some rows.
CHECK_DEPS += $(NULL_DRIVER) $(BUILD)/tests/programs/bench/bench

.PHONY: bench
bench: all $(NULL_DRIVER) $(BUILD)/tests/programs/bench/bench ## measure beside yardsticks; ROWS="name name" runs some
	@mkdir -p $(BUILD)/bench
	BUILD=$(abspath $(BUILD)) $(BUILD)/tests/programs/bench/bench $(BUILD)/bench/results.json $(ROWS)
