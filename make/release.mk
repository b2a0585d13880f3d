# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The gpushare authors
# The tarball of a release, and Debian's packages. debian/ says what is in which.

DIST_NAME := gpushare-$(VERSION)
DIST := $(BUILD)/$(DIST_NAME).tar.gz
DEB := $(BUILD)/deb
# One tree gives one tarball, whenever and wherever it is made: times are those of the changelog's last entry, and owners,
# modes and order are fixed. Outside of git, as in a tarball that was unpacked, the list of files is what is there.
DIST_TIME = $(shell sed -n 's/^ -- .*>  //p;T;q' debian/changelog)
DIST_FILES = if [ -e .git ]; then git ls-files -z; else find . -type f -not -path './$(BUILD)/*' -not -path './build*' -printf '%P\0'; fi

.PHONY: dist deb deb-test guest-test deps-packages deps-deb deps-guest packages-as-root
dist: ## write the tarball of a release, the same to the byte for the same tree
	@mkdir -p $(BUILD)
	$(DIST_FILES) >$(DIST).unsorted
	LC_ALL=C sort -z $(DIST).unsorted >$(DIST).list
	tar --create --file=$(DIST).tar --no-recursion --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w,a-s \
	    --mtime='$(DIST_TIME)' --transform='s|^|$(DIST_NAME)/|' --null --files-from=$(DIST).list
	gzip -9 --no-name <$(DIST).tar >$(DIST)
	rm $(DIST).unsorted $(DIST).list $(DIST).tar
	@echo $(DIST)

# In a copy of the tree, which is what a release has: nothing that is built here gets in, and nothing changes here.
deb: deps-deb dist ## build Debian's packages into build/deb, and have lintian look at them
	make/deb.sh $(DIST) $(DEB)
deb-test: deb ## install, use, upgrade and purge these packages in a Debian system of their own (root)
	$(PYTHON) tests/programs/packages/try.py $(DEB) $(BUILD)/deb-test

guest-test: deps-guest deb ## the same under a real systemd, on a machine that qemu boots (root)
	$(PYTHON) tests/programs/packages/boot.py $(DEB) $(BUILD)/deb-test

deps-guest: ## install what guest-test needs
	@make/deps.sh --install programs deb guest
deps-deb: ## install what deb and deb-test need
	@make/deps.sh --install programs deb
deps-packages: ## the same for the tests of packages and of CMake's files, which are skipped without
	@make/deps.sh --install build packages
# As root `make check` installs them. Another user's tests say that they are skipped.
# apt-get has one lock.
packages-as-root: | prometheus-as-root
	[ "$$(id -u)" != 0 ] || make/deps.sh --install packages || \
	    echo "gpushare: tests/integration/test_packages.py and test_cmake.sh are skipped" >&2
check-programs: $(if $(SAN),,packages-as-root)
