# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make simulate: a virtual day of 1,000 clients on 64 GPUs by the real policies, as a
# table and a picture in build/simulate/.

SIMULATE := $(BUILD)/tests/programs/simulate/simulate
$(SIMULATE): $(call obj,$(wildcard tests/programs/simulate/*.c)) $(A)/libscheduler.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lm
CHECK_DEPS += $(SIMULATE)

.PHONY: simulate
simulate: $(SIMULATE) ## a day of 1,000 clients on 64 GPUs in each mode: shares, waits, Jain's index
	@mkdir -p $(BUILD)/simulate
	$(SIMULATE) $(BUILD)/simulate
