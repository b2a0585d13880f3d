# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make mutants: faults of limits, charges and scheduling, seeded one at a time into a
# copy of the sources; the test that each names must notice. tests/mutants/run says how
# the tables are written.

MUTANTS_ONLY := $(BUILD)/tests/mutants/only.so
# A sanitizer would have to be preloaded before it.
$(MUTANTS_ONLY): private override SAN =
$(MUTANTS_ONLY): tests/mutants/only.c make/66-mutants.mk $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -shared -o $@ $< -lcmocka
# tests/unit/mutants has the runner judge mutants of its own.
CHECK_DEPS += $(MUTANTS_ONLY)

.PHONY: mutants
mutants: $(MUTANTS_ONLY) ## seed faults of limits, charges and scheduling: each must turn its named test red; MATCH=word
	@mkdir -p $(BUILD)/mutants
	tests/mutants/run --source . --work $(BUILD)/mutants --only $(MUTANTS_ONLY) --match '$(MATCH)' \
	    --make 'CC=$(CC)' --make WERROR=0 --make 'OPT=-O1 -g' $(sort $(wildcard tests/mutants/*.mutants))
