# Two commands do everything on a fresh machine:  make demo  and  make test.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test fast lint env docs notebooks bench lab checker mutants proofs clean help

help:
	@echo "make demo   compile a small table of facts into one layer and look at it"
	@echo "make test   run every test"
	@echo "make fast   run the tests that take seconds"
	@echo "make lint   formatter, linter, types, import contracts"
	@echo "make docs   build the documentation into build/docs, with every example executed and every link followed"
	@echo "make notebooks  write its pages as Jupyter notebooks into build/notebooks"
	@echo "make bench  measure against floors and peers"
	@echo "make mutants delete and alter every line of the checker's core and search, and of what judges looped networks and formulas; a test must notice (an hour)"
	@echo "make proofs check the theorems that the checker rests on; needs Debian's coq and libcoq-flocq, which nothing else does"
	@echo "make lab    run every experiment at its quick setting and write lab-report.html"
	@echo "make checker   the checker as one file, dist/onelayer_checker.pyz, and its SHA-256"
	@echo "make env    create $(VENV) with everything the tests need"

# Without the label "+cpu" pip would take gigabytes of CUDA. Where no index has the label, it fails at once, and PyTorch's
# own index of CPU builds is asked.
TORCH     := $(shell sed -n 's/^torch==//p' requirements/torch.txt)

# A stamp per set of pinned requirements: a second call does nothing, an edited pin reinstalls.
$(VENV)/core.stamp: requirements/core.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "onelayer needs Python 3.11 or newer; set PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the pinned core into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/core.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/test.stamp: $(VENV)/core.stamp requirements/test.txt requirements/torch.txt requirements/hands.txt
	@echo "installing the pinned test requirements into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@echo "installing the CPU build of torch $(TORCH) into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "torch==$(TORCH)+cpu" 2>/dev/null \
	  || echo "no CPU build of torch $(TORCH) is on offer here; its default build, which is large, is installed instead"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/torch.txt
	@echo "installing Hugging Face, TransformerLens and nnsight into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/hands.txt
	@touch $@

$(VENV)/docs.stamp: $(VENV)/core.stamp requirements/docs.txt
	@echo "installing the pinned requirements of the documentation into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@

env: $(VENV)/test.stamp

demo: $(VENV)/core.stamp
	@$(BIN)/onelayer demo
	@echo "The command is $(BIN)/onelayer here. docs/start.md takes three minutes; \`make docs\` builds all of the documentation."

test: env
	$(BIN)/python -m pytest -n 2 --dist worksteal

fast: env
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not seconds"

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The whole repository is the source: pages link to results, proofs and the checker as they stand.
docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -W --keep-going --quiet -c docs -b html . build/docs
	@$(BIN)/python tools/links.py build/docs
	@echo "open build/docs/index.html"

notebooks: $(VENV)/docs.stamp
	@mkdir -p build/notebooks
	@for page in docs/start docs/paper-one docs/paper-two docs/house docs/howto/* docs/cases/*; do \
	  $(BIN)/jupytext --quiet --from md:myst --to ipynb --output build/notebooks/$$(basename $${page%.md}).ipynb $${page%.md}.md; done
	@ls build/notebooks

bench: env
	$(BIN)/python -m benchmarks

mutants: env
	$(BIN)/python -m attacks.lines --ring core --ring search --ring looped
	$(BIN)/python -m attacks.lines $(addprefix --module functions/,algebra blocks branch deviation differences expansions extremes formulas hinges intervals jets means norms ordering pooled ramps relaxations rounding simplices slopes symmetry targets)

# Neither the demo nor the tests need Rocq. A test compares the names of the theorems with those in the checker.
proofs:
	@$(MAKE) --no-print-directory -C proofs check

lab: env
	$(BIN)/onelayer lab run all
	$(BIN)/onelayer lab report

# Only the standard library is needed to build it.
checker:
	@$(PYTHON) tools/one_file.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
