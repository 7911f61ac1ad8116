# Everything from nothing: needs Python 3.11 or newer (with venv) and make.
#
#   make train    train 8 workers on handwritten digits, print and plot it
#   make test     lint, check the format, run all tests
#   make lint     lint and check the format
#   make format   repair what the linter and the formatter can repair
#   make clean    remove environments and caches; runs/ stays
#
# The first call makes an environment and installs into it, later ones start at
# once. Variables: PYTHON (another interpreter gets an environment of its own),
# ARGS (more arguments for the trainer or for pytest), WORKDIR, JOBS. Examples:
#
#   make train WORKDIR=runs/sixteen ARGS='--config.workers=16'
#   make test PYTHON=python3.13 ARGS=tests/topology_test.py

PYTHON = python3
WORKDIR = runs/digits
JOBS = 2
ARGS =

ENVIRONMENT = $(if $(filter-out python3,$(PYTHON)),.venv-$(notdir $(PYTHON)),.venv)
INSTALLED = $(ENVIRONMENT)/.installed
RUN = $(ENVIRONMENT)/bin/python

.DEFAULT_GOAL = help
.PHONY: help train test lint format clean environment interpreter

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

train: $(INSTALLED)
	@$(RUN) -m experiments.train --config=configs/digits.py \
	  --workdir='$(WORKDIR)' $(ARGS)

test: lint
	@$(RUN) -m pytest --numprocesses=$(JOBS) --dist=worksteal $(ARGS)

lint: $(INSTALLED)
	@$(RUN) -m ruff check --quiet --output-format=concise
	@$(RUN) -m ruff format --check --quiet || \
	  { echo 'The format is not as it should be: make format' >&2; exit 1; }

format: $(INSTALLED)
	@$(RUN) -m ruff check --quiet --fix
	@$(RUN) -m ruff format --quiet

clean:
	rm -rf .venv* .pytest_cache .ruff_cache build dist *.egg-info
	find decopt experiments configs tests -name __pycache__ -prune \
	  -exec rm -rf {} +

# Sets the shell variable `python` to the interpreter behind $(PYTHON). A pyenv
# command of a version that is not switched on refuses to run unless
# PYENV_VERSION names that version; elsewhere the second attempt changes nothing.
define FIND_PYTHON
find() { $(PYTHON) -c 'import sys; print(sys.executable)' 2>/dev/null; }; \
python=$$(find) || python=$$( \
  export PYENV_VERSION='$(patsubst python%,%,$(notdir $(PYTHON)))'; find \
) || { \
  echo '$(PYTHON) does not run here: give the command of an installed Python' \
    '3.11 or newer, as in: make test PYTHON=python3.12' >&2; \
  exit 1; \
}; \
"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "$(PYTHON) is $$("$$python" -V), but decopt needs Python 3.11 or newer:" \
    'give its command, as in: make test PYTHON=python3.12' >&2; \
  exit 1; \
}
endef

interpreter:
	@$(FIND_PYTHON); echo "$$python"

environment: $(INSTALLED)

$(INSTALLED): pyproject.toml .constraints.txt
	@$(FIND_PYTHON); \
	echo "Installing into $(ENVIRONMENT), once ($$("$$python" -V), a minute" \
	  'or two) ...'; \
	{ $(RUN) -c '' 2>/dev/null || "$$python" -m venv --clear $(ENVIRONMENT); } \
	  && PIP_DISABLE_PIP_VERSION_CHECK=1 $(RUN) -m pip install --quiet --quiet \
	    --constraint .constraints.txt --editable '.[test]' \
	  && touch $@
