# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The packages that the build needs, and the compiler flags that follow from them.
#
# $(BUILD)/packages.mk is an included makefile. If it is absent, make makes it first and then starts again,
# so the flags are read when the packages are there. The goals of SETUP_GOALS install missing packages if
# they run as root. A plain `make` never changes the system; it prints the line that does.

SETUP_GOALS   := check check-unit mutants demo bench asan tsan lint gpu-bundle
NO_BUILD_GOALS := help clean deps deps-lint deps-packages deps-deb uninstall protocol-reference cuda-api messages site measure prometheus \
                  dist deb deb-test
GOALS := $(or $(MAKECMDGOALS),all)

# make makes included makefiles even under -n and -q, which must not change anything.
DRY_RUN := $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))$(findstring q,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
DEPS_MODE := $(if $(DRY_RUN),--announce,$(if $(filter $(SETUP_GOALS),$(GOALS)),--install,--announce))
DEPS_SETS := build $(if $(findstring clang,$(CC)),clang)

ifneq ($(filter-out $(NO_BUILD_GOALS),$(GOALS)),)
include $(BUILD)/packages.mk
endif

$(BUILD)/packages.mk: make/deps.sh make/setup.mk
	@make/deps.sh $(DEPS_MODE) $(DEPS_SETS)
	@echo "Building into $(BUILD)/, a minute or so; V=1 shows the commands." >&2
	@mkdir -p $(@D)
	@cflags=$$(pkg-config --cflags $(PKGS)) && libs=$$(pkg-config --libs $(PKGS)) && \
	    printf 'PKG_CFLAGS := %s\nPKG_LIBS := %s\n' "$$cflags" "$$libs" >$@

# Objects of two compilers or two sets of flags must not meet in one archive. Every object depends on this
# file, which is rewritten only when the flags change.
FLAGS_NOW = $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(TEST_OPT) $(LDFLAGS_ALL)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' >$@

.PHONY: deps deps-lint FORCE
deps: ## install missing packages (as root), or print the one line that does
	@make/deps.sh --install $(DEPS_SETS)
deps-lint: ## the same for what lint and builds with clang need
	@make/deps.sh --install build clang lint
