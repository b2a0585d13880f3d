# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# Last of the fragments, so that CHECK_DEPS holds what all of them add.

.PHONY: check check-unit tests
tests: $(UNIT_BIN) $(LIVE_BIN)
check: all tests $(CHECK_DEPS) ## build and run every test (without a GPU); MATCH=word runs some
	BUILD=$(abspath $(BUILD)) $(TEST_WRAPPER) tests/run --build $(BUILD) --match '$(MATCH)' $(UNIT_BIN) $(LIVE_BIN) $(TEST_SCRIPTS)
check-unit: $(UNIT_BIN) ## run the unit tests alone
	BUILD=$(abspath $(BUILD)) $(TEST_WRAPPER) tests/run --build $(BUILD) --match '$(MATCH)' $(UNIT_BIN)
