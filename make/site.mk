# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# make site: the documentation as a site with a search, by Debian's mkdocs.

.PHONY: site
site: $(MAN_MADE) ## build the documentation as a site, into build/site
	make/deps.sh --install site
	$(PYTHON) make/site.py prepare $(BUILD)/site-pages
	mkdocs build --quiet --strict --clean --config-file $(BUILD)/mkdocs.yml --site-dir $(abspath $(BUILD))/site
	$(PYTHON) make/site.py check $(BUILD)/site
	@echo "The site is $(BUILD)/site/index.html."
