# The commands of a user and of a developer. All of them can be repeated: what is there is left alone.
#
#   make demo      install what is missing, build, run the main job on this machine
#   make test      the same set-up, then all tests except the long ones
#   make build     everything, into build/ (programs in build/bin/); TRAINING=OFF needs no torch
#   make long      the tests that take minutes each
#   make chaos     80 faults on test hosts, in random order; CHAOS="--transport tls --seed N --only PATTERN"
#   make fuzz      libFuzzer on the parsers, FUZZ_SECONDS=600 each; needs clang
#   make bench     start time, output rate and clean-up time on test hosts
#   make asan tsan tidy    the other builds, with their unit tests (tidy: clang-tidy only)
#   make deps venv         only the Debian packages, only the torch wheel
#   make install           PREFIX=/usr/local DESTDIR=
#   make package           the Debian package of nodes and submitting machines: build/hvdrun_*.deb
#   make clean             removes the build folders; .venv and ccache stay

TRAINING ?= ON
WERROR ?= OFF
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)

# What the tree was configured with; another choice configures it again.
CHOICE := TRAINING=$(TRAINING) WERROR=$(WERROR)
SANITIZER_ENV := ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp \
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
CTEST := ctest --output-on-failure --no-tests=error

.PHONY: help demo test build programs long fuzz chaos bench asan asan-build tsan tidy deps deps-build venv \
  configure install package clean

help:
	@sed -n '3,15s/^# \{0,3\}//p' Makefile

demo: programs venv
	@scripts/demo.sh

test:
	@$(SANITIZER_ENV) TRAINING=$(TRAINING) WERROR=$(WERROR) scripts/test.sh

deps:
	@scripts/deps.sh build test

deps-build:
	@scripts/deps.sh build

venv: deps-build
	@if [ "$(TRAINING)" != OFF ]; then scripts/venv.sh; fi

configure: venv
	@if [ ! -f build/build.ninja ] || [ "$$(cat build/.choice 2>/dev/null)" != "$(CHOICE)" ]; then \
	  echo "==> configuring build/ ($(CHOICE))"; \
	  cmake --preset release -DHVDRUN_TRAINING=$(TRAINING) -DHVDRUN_WERROR=$(WERROR) >/dev/null && \
	  echo "$(CHOICE)" > build/.choice; \
	fi

build: configure
	@cmake --build build -j $(JOBS)

# The programs alone: what the demo needs of the build.
programs: configure
	@cmake --build build -j $(JOBS) --target hvdrun hvd-agent hvdctl $(if $(filter OFF,$(TRAINING)),,petrv2)

long: build
	$(CTEST) --test-dir build -L '^long$$'

fuzz: build
	@command -v clang++ >/dev/null || { echo "fuzz: clang++ is missing; apt-get install clang" >&2; exit 1; }
	$(CTEST) --test-dir build -L '^long$$' -R '^fuzz_'

chaos: deps build
	/usr/bin/python3 -u tests/e2e/chaos/chaos_test.py $(CHAOS)

bench: deps build
	/usr/bin/python3 tests/bench/launch.py
	.venv/bin/python tests/bench/allreduce.py
	.venv/bin/python tests/bench/rendezvous_scale.py

asan: asan-build
	$(SANITIZER_ENV) $(CTEST) --test-dir build-asan -L '^(unit|process)$$' -j $(JOBS)

asan-build: deps-build
	@[ -f build-asan/build.ninja ] || cmake --preset asan >/dev/null
	@cmake --build build-asan -j $(JOBS) --target unit_tests

tsan: deps-build
	@[ -f build-tsan/build.ninja ] || cmake --preset tsan >/dev/null
	@cmake --build build-tsan -j $(JOBS)
	$(SANITIZER_ENV) $(CTEST) --test-dir build-tsan -L '^(unit|process)$$' -j $(JOBS)

tidy: deps-build
	@command -v clang-tidy >/dev/null || { echo "tidy: clang-tidy is missing; apt-get install clang-tidy" >&2; exit 1; }
	@[ -f build-tidy/build.ninja ] || cmake --preset tidy >/dev/null
	@cmake --build build-tidy -j $(JOBS)

install: programs
	@cmake --build build -j $(JOBS) --target hvdrun_docs
	@scripts/install.sh "$(DESTDIR)$(PREFIX)"

package: configure
	@cmake --build build -j $(JOBS) --target hvdrun_deb
	@ls build/hvdrun_*.deb

clean:
	rm -rf build build-dev build-asan build-tsan build-tidy
