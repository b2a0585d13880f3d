# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make mutants: faults of limits, charges and scheduling, seeded one at a time into a
# copy of the sources; the test that each names must notice. tests/programs/mutants/run says how
# the tables are written. No part of `make check`: a change of the sources may leave a
# mutant without its lines, and that is mended when the mutants are run.

MUTANTS_ONLY := $(BUILD)/tests/programs/mutants/only.so
# A sanitizer would have to be preloaded before it.
$(MUTANTS_ONLY): private override SAN =
$(MUTANTS_ONLY): tests/programs/mutants/only.c make/66-mutants.mk $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -shared -o $@ $< -lcmocka

.PHONY: mutants mutants-places
mutants: $(MUTANTS_ONLY) ## seed faults of limits, charges and scheduling: each must turn its named test red; MATCH=word
	@mkdir -p $(BUILD)/mutants
	tests/run --build $(BUILD) tests/programs/mutants/test_judge.py
	tests/programs/mutants/run --source . --work $(BUILD)/mutants --only $(MUTANTS_ONLY) --match '$(MATCH)' \
	    --make 'CC=$(CC)' --make WERROR=0 --make 'OPT=-O1 -g' $(sort $(wildcard tests/programs/mutants/*.mutants))
mutants-places: ## say which mutants no longer find their lines or tests; builds nothing
	tests/programs/mutants/run --source . --places $(sort $(wildcard tests/programs/mutants/*.mutants))
