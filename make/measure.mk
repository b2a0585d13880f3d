# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make measure: numbers about the sources, beside those of an earlier revision. make/measure.py says how
# each number is counted.

# The last revision before common/ had lists, arrays and arithmetic. BASE= measures the present tree alone.
BASE ?= 7f1bcb2

.PHONY: measure
measure: ## print the shape of the sources beside that of revision BASE; LISTS=1 names what was counted
	$(PYTHON) make/measure.py --work $(BUILD)/measure $(if $(BASE),--base $(BASE)) $(if $(LISTS),--lists)
