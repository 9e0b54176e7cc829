# SPDX-License-Identifier: Apache-2.0
.DEFAULT_GOAL := help
SHELL := /bin/bash
JOBS ?= $(shell nproc)
# Tests wait for a third of their time: for leases, timeouts and programs that end.
TESTERS ?= $(shell expr $(JOBS) + 2)
PLAN ?= plans/dctcp_htb.yaml
SECONDS_EACH ?= 60
BIN := .venv/bin


.PHONY: help setup run papers rack machines test test-all check bench fuzz audit docs gen p4 format clean

help: ## List the targets
	@grep -hE '^[a-z0-9%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: ## Install what is missing: packages, .venv, the lab's kernel
	@tools/setup 6.12
	@echo "ready: the commands are in $(BIN), so $(BIN)/testctl run PLAN, or testctl after: source $(BIN)/activate"

run: ## Run plans/dctcp_htb.yaml (or PLAN=…) and print where the report is
	@tools/setup --for $(PLAN) 6.12
	@$(BIN)/testctl run $(PLAN) --jobs $(JOBS)

papers: ## Run the papers' experiments and print the scorecard: published, ours, difference, why
	@tools/setup 6.12 6.1
	@$(BIN)/testctl papers --jobs $(JOBS)

rack: ## Deploy with Ansible to a rack of namespaces, run a plan there, remove everything (root)
	@tools/setup --rack
	@plugins/rack/tools/rack-trial

machines: ## Deploy to a rack of QEMU machines, boot its kernels, meet it with faults, and print what was shown (root)
	@tools/setup --rack --machines
	@TESTCTL_MACHINES=all $(BIN)/python -m pytest -p no:cacheprovider -s plugins/rack/tests/machines

test: ## The core's tests: unit, lab, as root namespaces, one browser, one rack; test-rack, … a plug-in's, test-all all
	@tools/setup --test 6.12
	@$(BIN)/python tools/suites.py core --testers $(TESTERS)

test-all: ## Every suite: also the plug-ins', long tests, the lab's on 6.1, a rack of QEMU machines
	@tools/setup --test 6.12 6.1
	@$(BIN)/python tools/suites.py others core --testers $(TESTERS)

test-%: ## One suite: test-rack, test-influx, … (the directories of plugins/), test-long, test-6.1, test-machines
	@tools/setup --test 6.12
	@$(BIN)/python tools/suites.py $* --testers $(TESTERS)

check: ## Formatting, lint, types, import rules, generated files
	@tools/check

bench: ## Speed: ratios and figures of one run
	@tools/setup --test 6.12
	@$(BIN)/python tools/bench.py

fuzz: ## Fuzz the parsers of untrusted bytes, SECONDS_EACH per parser (default 60)
	@tools/setup --test
	@for name in wire pcap plan results; do \
		$(BIN)/python tests/fuzz/fuzz.py $$name --seconds $(SECONDS_EACH) || exit 1; done
	@$(MAKE) --no-print-directory -C agents/tgen fuzz SECONDS_EACH=$(SECONDS_EACH)

audit: ## A bill of materials of the pinned packages, and their known vulnerabilities
	@tools/audit

docs: ## The documentation as a site to be read from the disk: build/site/index.html
	@tools/docs

gen: ## Regenerate gRPC stubs, schema, docs, dashboards and BPF objects
	@tools/gen

p4: ## Compile the switch's P4 program, where p4c is installed
	@tools/p4

format: ## Format the whole tree
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .
	@clang-format -i agents/tgen/*.[ch] controller/src/testctl/analyse/native/*.[ch] controller/src/testctl/records/native/*.[ch] controller/src/testctl/metrics/core/native/*.[ch] controller/src/testctl/rules/core/native/*.[ch]

clean: ## Remove what was built in the checkout (results and built kernels stay)
	@rm -rf .venv .venv-docs .mypy_cache .ruff_cache .pytest_cache agents/tgen/tgen
	@find . -name __pycache__ -prune -exec rm -rf {} +
