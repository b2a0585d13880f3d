# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# docs/protocol.md is made from the schema and checked in, so that it can be read
# without building; tests/unit/schemas fails when it is not what the schema says.
.PHONY: protocol-reference
protocol-reference: ## write docs/protocol.md anew from schemas/protocol.xml
	$(PYTHON) schemas/generate.py --reference docs/protocol.md schemas/protocol.xml
