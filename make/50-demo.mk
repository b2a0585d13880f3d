# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors

.PHONY: demo
demo: all ## six processes share one GPU at once; works without a GPU too
	@$(PYTHON) examples/demo.py --build $(BUILD)
