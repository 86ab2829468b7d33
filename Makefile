# Two commands: `make demo` and `make test`. Everything they install lies in .venv, everything they make in build/, install/ and log/.
PYTHON ?= python3
VENV := $(CURDIR)/.venv
RUN := $(VENV)/bin/python
OLDER := $(VENV)/older-transformers
DEMO := build/demo
LEARN := build/learn
RESULTS := build/test-results

# Images between processes fit into this transport profile; nothing leaves the machine; logs stay in the build folder.
ifneq ($(filter humble iron jazzy,$(ROS_DISTRO)),)
export FASTRTPS_DEFAULT_PROFILES_FILE ?= $(CURDIR)/config/fastdds_shared_memory.xml
else
export FASTDDS_DEFAULT_PROFILES_FILE ?= $(CURDIR)/config/fastdds_shared_memory.xml
endif
export ROS_AUTOMATIC_DISCOVERY_RANGE ?= LOCALHOST
export ROS_LOG_DIR ?= $(CURDIR)/build/ros_log
# An executable that colcon installs names the Python that ran colcon: the environment's.
COLCON := $(RUN) -c 'import sys; from colcon_core.command import main; sys.exit(main())' --log-base log
# A tool of the package, as colcon installed it.
TOOL := . install/setup.sh && $(RUN) -m groot_ros
PYTEST := $(RUN) -m pytest -q

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo learn test test-all bench lint test-fast test-dds test-slow test-golden-older test-older build test-build preflight environment environment-tests clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: preflight environment build ## a robot driven by a tiny GR00T N1.7 policy over ROS 2, for 20 seconds
	@$(TOOL) demo --output $(DEMO)

# Steps that are done are not done again; `rm -rf build/learn` begins anew.
learn: preflight environment-tests build | $(LEARN)/policy/model.safetensors ## demonstrations, training and trials of the demo robot's policy: 40 minutes
	@$(TOOL) demo_trials --checkpoint $(LEARN)/policy --output $(LEARN)/trials --film 6 --at-least 45
	@$(TOOL) demo_trials --checkpoint $(LEARN)/policy --output $(LEARN)/trials_other_scene --other-scene --at-most 2
	@$(TOOL) demo_trials --checkpoint $(LEARN)/base --output $(LEARN)/trials_untrained --at-most 2
	@$(TOOL) checkpoint inspect $(LEARN)/policy --camera-size 128x128

$(LEARN)/base/model.safetensors: | build
	@$(TOOL) checkpoint tiny $(LEARN)/base

$(LEARN)/recorded: | build
	@rm -rf $(LEARN)/bags
	@$(TOOL) demo_record --episodes 200 --output $(LEARN)/bags
	@touch $@

$(LEARN)/dataset/meta/info.json: $(LEARN)/recorded
	@$(TOOL) convert $(LEARN)/bags $(LEARN)/dataset --contract config/robots/demo.yaml || [ $$? = 1 ]  # 1: some bags cannot be used

$(LEARN)/training/model.safetensors: $(LEARN)/dataset/meta/info.json $(LEARN)/base/model.safetensors
	@$(TOOL) finetune --config config/training/demo.yaml --dataset $(LEARN)/dataset --contract config/robots/demo.yaml \
	  --base-model $(LEARN)/base --output $(LEARN)/training

$(LEARN)/policy/model.safetensors: $(LEARN)/training/model.safetensors
	@rm -rf $(LEARN)/policy
	@$(TOOL) checkpoint bundle $(LEARN)/training --output $(LEARN)/policy --half

test: preflight environment-tests lint test-fast test-golden-older test-dds build test-build ## everything that is fast: what a change must pass

test-all: test test-slow test-older ## and what is slow: kill tests, a browser, everything with the oldest transformers

bench: environment-tests ## speed beside LeRobot (GROOT_LEROBOT_PYTHON names its Python), on a machine that does nothing else
	$(RUN) -m benchmarks.speed --out build/bench $(BENCH)

lint: environment-tests ## style, types and the order of the rooms
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

# What is tested of the installation is left to colcon, which runs once it is there.
test-fast: environment-tests
	@mkdir -p $(RESULTS)
	OMP_NUM_THREADS=1 $(PYTEST) -n 2 --ignore test/packaging/test_installed.py -m "not dds and not slow" --junitxml $(RESULTS)/fast.xml

test-dds: environment-tests
	@mkdir -p $(RESULTS)
	OMP_NUM_THREADS=1 $(PYTEST) -m "dds and not slow" --junitxml $(RESULTS)/dds.xml

test-slow: environment-tests build
	@mkdir -p $(RESULTS)
	$(PYTEST) -m slow --junitxml $(RESULTS)/slow.xml

# The numbers must be the same with the oldest supported transformers: it is laid over the environment, not installed into it.
$(OLDER): requirements/older.txt | environment-tests
	@rm -rf $(OLDER)
	@$(RUN) -m pip install --quiet --no-deps --target $(OLDER) -r requirements/older.txt
	@touch $(OLDER)

test-golden-older: $(OLDER)
	@mkdir -p $(RESULTS)
	OMP_NUM_THREADS=1 PYTHONPATH=$(OLDER) $(PYTEST) -n 2 -m "not dds and not slow" test/model test/processing test/parity \
	  --junitxml $(RESULTS)/golden_older.xml

test-older: $(OLDER)
	@mkdir -p $(RESULTS)
	OMP_NUM_THREADS=1 PYTHONPATH=$(OLDER) $(PYTEST) -n 2 --ignore test/packaging/test_installed.py -m "not dds and not slow" \
	  --junitxml $(RESULTS)/older.xml

build:
	@mkdir -p build log install
	@$(COLCON) list | grep -q 'groot_ros.*(ros.ament_python)' || \
	  { echo "colcon does not see an ament_python package here: package.xml is invalid"; $(COLCON) list; exit 1; }
	@$(COLCON) build --packages-select groot_ros --event-handlers console_direct- console_cohesion-

# colcon repeats only the tests of what it installed: the others have just run.
test-build: build
	@$(COLCON) test --packages-select groot_ros --return-code-on-test-failure --event-handlers console_direct+ \
	  --pytest-args test/packaging/test_installed.py

preflight:
	@$(PYTHON) tools/preflight.py $(firstword $(MAKECMDGOALS))

environment: preflight
	@$(PYTHON) tools/setup_environment.py

environment-tests: preflight
	@$(PYTHON) tools/setup_environment.py --tests

clean: ## remove all that make made, the environments included
	rm -rf build install log .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
