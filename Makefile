# `make help` lists the targets. Everything is installed into .venv, once, and only what a target needs.

VENV   ?= .venv
# A second one, with newer releases of LangChain than pip chooses by itself.
NEWEST ?= .venv-newest
BIN    := $(VENV)/bin
# The first Python on the path that is new enough; `make PYTHON=/path/to/python` picks another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
DATA   ?= ../shared/data
N      ?= 40
# Processes that run tests side by side.
WORKERS ?= 2
# Markers of tests that only `make test-all` runs.
LEFT_OUT = slow or browser or kill or llm or notebook or ray or server
PORT   ?= 8765
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-newest fault-test kill-test format lint type audit docs test-llm bench bench-page load soak bench-llm train wheel dist-test clean installed

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo ## watch the claims of a small retrieval chain being checked (no key, no network)
	@$(BIN)/langchain-groundedness demo

# Two workers, each with whole files, so that what a module sets up is set up once. In the order of
# their names: xdist would keep files of one test to the end, which take longest, one after the other.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.test ## run the quick tests, without servers: about five minutes on two cores
	$(PYTEST) -m "not ($(LEFT_OUT))" $(ARGS)

test-all: $(VENV)/.test $(VENV)/.encoder ## run all tests that need no model server, thoroughly, with branch coverage
	$(PYTEST) --hypothesis-profile=thorough --cov --cov-report=term-missing:skip-covered $(ARGS)

# Not all that is tested: what touches LangChain.
WITH_LANGCHAIN = tests/contract tests/callbacks tests/middleware tests/test_chains.py \
	tests/test_inputs_chains.py tests/test_interruptions.py tests/test_runnable.py \
	tests/test_streaming.py tests/test_structured.py tests/test_transform.py \
	tests/verification/test_decisions.py tests/verification/test_llm.py \
	tests/evals/test_evaluator.py tests/evals/test_langsmith.py

test-newest: $(NEWEST)/.langchain ## run the tests that touch LangChain with its newest releases
	@$(NEWEST)/bin/python -m pip list --disable-pip-version-check | grep -E '^(lang|openai)'
	$(NEWEST)/bin/python -m pytest $(WITH_LANGCHAIN) $(ARGS)

format: $(VENV)/.lint ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.lint ## check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

type: $(VENV)/.typing ## check types, strictly
	$(BIN)/mypy langchain_groundedness tests

audit: $(VENV)/.audit ## look for known weaknesses in what is installed (asks PyPI)
	$(BIN)/pip-audit --local --skip-editable

docs: $(VENV)/.docs ## build the documentation into site/, offline; fails on dead links and external resources
	$(BIN)/zensical build --strict --clean
	$(BIN)/python .ci/site_is_whole.py

test-llm: $(VENV)/.llm ## run the tests on a real small model server (compiles it once, about 10 minutes)
	$(BIN)/python -m pytest tests/integration -m llm --timeout=600 $(ARGS)

BENCHMARKS = overhead guard streaming throughput languages queries minimal_pairs \
	"evidence_recall --data $(DATA)" \
	"accuracy --data $(DATA) $(if $(WORK),--work $(WORK)) $(if $(CROSS_ENCODER),--cross-encoder $(CROSS_ENCODER))"

bench: $(VENV)/.test $(VENV)/.encoder ## print accuracy beside baselines (and CROSS_ENCODER=folder) on the claim sets under DATA=, and the overhead
	@missed=; for job in $(BENCHMARKS); do \
		set -- $$job; script=benchmarks/$$1.py; shift; \
		echo; echo "$$script $$*"; $(BIN)/python "$$script" "$$@" || missed="$$missed $$script"; \
	done; test -z "$$missed" || { echo "failed, or missed a target:$$missed" >&2; exit 1; }

train: $(VENV)/.encoder ## train the embedded verifier further on DATA=, between files in WORK= (takes hours; resumes if interrupted)
	@test -n "$(WORK)" || { echo "say where to work: make train WORK=path/to/folder" >&2; exit 2; }
	$(BIN)/python training/count_words.py --data $(DATA)
	$(BIN)/python training/make_pairs.py --data $(DATA) --out $(WORK)/pairs
	$(BIN)/python training/train_encoder.py --work $(WORK) --teacher training/checkpoint/encoder-fp16.safetensors
	$(BIN)/python training/export_encoder.py --work $(WORK) --mean-with training/checkpoint/encoder-fp16.safetensors 0.8
	$(BIN)/python training/train_signals.py --data $(DATA) --cache $(WORK)/signals
	$(BIN)/python training/train_combination.py --data $(DATA) --work $(WORK) --cache $(WORK)/signals
	$(BIN)/python training/train_checkworthiness.py --data $(DATA)

fault-test: $(VENV)/.test ## print what every fault of a model's server does at every entry point
	$(BIN)/python benchmarks/faults.py $(ARGS)

kill-test: $(VENV)/.test ## kill -9 a process that writes to every store, 200 times, and count what is lost
	$(BIN)/python benchmarks/kills.py $(ARGS)

load: $(VENV)/.test ## put the package under load: 10,000 checks, 500 at once, 10 MB, 2,000 claims (about an hour)
	$(BIN)/python benchmarks/load.py $(ARGS)

soak: $(VENV)/.test ## ten minutes of everything at once, with faults and cancellations: nothing may grow or stay
	$(BIN)/python benchmarks/soak.py $(ARGS)

bench-page: $(VENV)/.test $(VENV)/.encoder ## write BENCHMARKS.md, or its sections ONLY=; VENVS= has the environments of other libraries
	$(BIN)/python benchmarks/benchmarks_page.py --data $(DATA) $(if $(VENVS),--venvs $(VENVS)) $(if $(ONLY),--only $(ONLY))

bench-llm: $(VENV)/.llm ## run the LLM path on N= claims of the sets under DATA= with the GGUF model MODEL=
	@test -s "$(MODEL)" || { echo "say which model: make bench-llm MODEL=path/to/model.gguf" >&2; exit 2; }
	$(BIN)/python benchmarks/serve.py --model $(MODEL) --port $(PORT) -- \
		$(BIN)/python benchmarks/llm.py --base-url http://127.0.0.1:$(PORT)/v1 --data $(DATA) --n $(N) $(ARGS)

wheel: $(VENV)/.pip ## build the wheel into dist/ and see that nothing is missing in it
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python .ci/wheel_is_whole.py

dist-test: $(VENV)/.dist ## build wheel and sdist into dist/, check what is in them, and try both in clean environments
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python .ci/wheel_is_whole.py
	$(BIN)/python .ci/dist_test.py

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) $(NEWEST) dist build site .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage

# --- what is installed; a stamp is remade when pyproject.toml changes ---

$(VENV)/.pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and none is on the path" >&2; exit 2; }
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --upgrade 'pip>=25.1' # the first that reads dependency groups
	@touch $@

installed: $(VENV)/.lint $(VENV)/.typing $(VENV)/.docs $(VENV)/.dist $(NEWEST)/.langchain $(VENV)/.llm

$(VENV)/.demo: pyproject.toml | $(VENV)/.pip
	@echo "installing the package"
	@$(INSTALL) -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.pip
	@echo "installing the package and what its tests need"
	@$(INSTALL) -e . --group test
	@touch $@

# Newest LangChain asks for releases of others that may not be out yet, and pip takes an older one
# then: so its own packages are brought up to date by themselves. Which they are is printed.
NEWER = langchain langchain-classic langchain-core langchain-openai langchain-protocol \
	langchain-text-splitters langgraph langgraph-checkpoint langgraph-prebuilt langgraph-sdk \
	langsmith openai

$(NEWEST)/.langchain: pyproject.toml
	@echo "making $(NEWEST) with the newest LangChain"
	@$(MAKE) --no-print-directory VENV=$(NEWEST) $(NEWEST)/.pip
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check -e . --group langchain
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --upgrade $(NEWER)
	@touch $@

$(VENV)/.lint: pyproject.toml | $(VENV)/.pip
	@$(INSTALL) --group lint
	@touch $@

$(VENV)/.typing: pyproject.toml | $(VENV)/.pip
	@echo "installing the package and what its type check needs"
	@$(INSTALL) -e . --group typing
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.test
	@echo "installing what builds the documentation"
	@$(INSTALL) --group docs
	@touch $@

$(VENV)/.dist: pyproject.toml | $(VENV)/.pip
	@$(INSTALL) --group dist
	@touch $@

$(VENV)/.audit: pyproject.toml | $(VENV)/.test
	@$(INSTALL) --group audit
	@touch $@

$(VENV)/.training: pyproject.toml | $(VENV)/.test
	@echo "installing what training and its measures need"
	@$(INSTALL) --group training
	@touch $@

$(VENV)/.encoder: pyproject.toml | $(VENV)/.training
	@echo "installing what training the encoder needs: PyTorch and what comes with it"
	@$(INSTALL) --group encoder
	@touch $@

$(VENV)/.llm: export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)
$(VENV)/.llm: pyproject.toml | $(VENV)/.test
	@echo "installing a model server; the first time, compiling it takes about 10 minutes"
	@$(INSTALL) --group llm
	@touch $@
