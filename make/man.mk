# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# Manual pages. Those of programs, the configuration and the environment stand in docs/man/; those of the library are made
# from its header, a page for each function.

MANDIR ?= $(PREFIX)/share/man
MAN_WRITTEN := $(wildcard docs/man/*.[1-9])
# A declaration begins with this word, and has its name in the same line. make counts parentheses, so one has a name.
parenthesis := (
MAN_FUNCTIONS := gpushare $(shell sed -nE 's/^GPUSHARE_API .*\b(gpushare_[a-z_]+)[$(parenthesis)].*/\1/p' client/gpushare.h)
MAN_MADE := $(MAN_FUNCTIONS:%=$(BUILD)/man/man3/%.3)
MAN_SECTIONS := $(sort $(patsubst .%,%,$(suffix $(MAN_WRITTEN)))) 3
MAN_INSTALLED := $(foreach page,$(MAN_WRITTEN) $(MAN_MADE),$(MANDIR)/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page)))

$(MAN_MADE) &: client/generate_man.py client/gpushare.h client/gpushare_error.h docs/man/gpushare.7
	$(PYTHON) client/generate_man.py $(BUILD)/man/man3
ALL += $(MAN_MADE)

.PHONY: install-man uninstall-man
install-built: install-man
install-man: $(MAN_MADE)
	$(INSTALL) -d $(MAN_SECTIONS:%=$(DESTDIR)$(MANDIR)/man%)
	$(foreach page,$(MAN_WRITTEN),$(INSTALL) -m 0644 $(page) $(DESTDIR)$(MANDIR)/man$(patsubst .%,%,$(suffix $(page)))/ &&) true
	$(INSTALL) -m 0644 $(MAN_MADE) $(DESTDIR)$(MANDIR)/man3/
uninstall: uninstall-man
uninstall-man:
	rm -f $(addprefix $(DESTDIR),$(MAN_INSTALLED))
	for folder in $(if $(filter /usr /usr/local,$(PREFIX)),,$(MAN_SECTIONS:%=$(DESTDIR)$(MANDIR)/man%) $(DESTDIR)$(MANDIR)); do \
	    [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder; done
