# Each target works alone on a new machine that has make, git, python3, and root or sudo.
#
#   make demo       set up, build the lab, measure the demo's matrix, report
#   make test       set up, run the fast tests (unit tests, and tests in network namespaces and lab hosts)
#   make test-vpp   tests that need a VPP binary (VPP_BIN, PATH, /opt/vpp/bin); without one they are skipped by name
#   make test-vm    tests in emulated machines; a part of them: make test-vm VM_TESTS=tests/integration/pytest/test_ipsec_vm.py
#   make test-all   all of them, Molecule and ansible-test sanity included
#   make lint       ruff, mypy, ansible-lint, ansible-test sanity
#   make bench      the project's own benchmarks, written to results/bench.json
#   make clean      take down the lab, remove what the targets made here

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
COLLECTIONS := $(CURDIR)/.cache/collections
LINK := $(COLLECTIONS)/ansible_collections/fastpath/bench
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# sudo drops the environment; the tests and playbooks need no more than this of it
AS_ROOT := $(SUDO) env PATH="$(BIN):$$PATH" ANSIBLE_CONFIG=$(CURDIR)/ansible.cfg VPP_BIN="$${VPP_BIN:-}" DPERF_BIN="$${DPERF_BIN:-}"
PYTEST := $(AS_ROOT) $(BIN)/python -m pytest
ANSIBLE := $(AS_ROOT) $(BIN)/ansible-playbook
DEMO_ARGS ?=
VM_TESTS ?= tests/unit tests/integration

.PHONY: help setup system demo test test-vpp test-vm test-all molecule lint lint-python lint-ansible sanity bench clean

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

setup: system $(VENV)/.ready $(LINK)

system:
	@scripts/system-packages

$(VENV)/.ready: requirements.txt scripts/pick-python
	python=$$(scripts/pick-python) && echo "setting up $(VENV) with $$python" && rm -rf $(VENV) && "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	touch $@

# the collection under the path that Ansible looks for it at, without moving the checkout
$(LINK):
	mkdir -p $(dir $@)
	ln -sfn $(CURDIR) $@

demo: setup
	@scripts/demo $(DEMO_ARGS)

test: setup
	$(PYTEST) tests/unit tests/integration -m "not vpp and not vm and not slow" -q -n 2 --dist loadfile

test-vpp: setup
	$(PYTEST) tests/unit tests/integration -m vpp -q -rs

test-vm: setup
	@scripts/system-packages vm
	$(PYTEST) $(VM_TESTS) -m vm -q -rs

# each scenario by `molecule test -s NAME`; one that this machine cannot run is skipped with the reason
molecule: setup
	$(PYTEST) tests/integration/pytest/test_molecule.py -v -rs

test-all: setup
	$(PYTEST) tests/unit tests/integration -q -rs
	$(MAKE) sanity

lint: setup lint-python lint-ansible sanity

lint-python:
	$(BIN)/ruff check .
	cd $(COLLECTIONS) && $(BIN)/mypy --config-file $(CURDIR)/pyproject.toml \
	  $(foreach kind,action connection doc_fragments filter module_utils modules plugin_utils,-p ansible_collections.fastpath.bench.plugins.$(kind))

lint-ansible:
	cd $(LINK) && PATH="$(BIN):$$PATH" ANSIBLE_COLLECTIONS_PATH=$(COLLECTIONS) $(BIN)/ansible-lint --profile production --strict --offline

# on the newest ansible-core and on the oldest that is supported
sanity: setup
	scripts/sanity

bench: setup
	scripts/bench

clean:
	@scripts/clean
