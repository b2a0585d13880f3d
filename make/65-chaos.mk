# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make chaos: shares, modes and configuration change at random under load; the kernels'
# own words say that no launch is lost.

CHAOS := $(BUILD)/tests/programs/chaos/chaos
CHAOS_SECONDS ?= 120
CHAOS_CHANGES ?= 10000
CHAOS_PARTS := $(filter-out %/main.o,$(call obj,$(BENCH_SRC)))

$(CHAOS): $(call obj,tests/programs/chaos/chaos.c) $(CHAOS_PARTS) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(A)/libsupport.a $(A)/libclient.a $(A)/libcommon.a $(PROGRAM_LIBS) -lm

# tests/integration/test_chaos.sh runs it for seconds.
CHECK_DEPS += $(CHAOS)

.PHONY: chaos
chaos: all $(CHAOS) ## change shares and modes at random under load; CHAOS_SECONDS, CHAOS_CHANGES, CHAOS_SEED
	BUILD=$(abspath $(BUILD)) $(CHAOS) $(CHAOS_SECONDS) $(CHAOS_CHANGES) $(CHAOS_SEED)
