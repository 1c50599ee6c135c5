# "make test" is for every commit, "make check" for every change, "make crash" by hand.
# The tests bring their own PostgreSQL (internal/pgtest); set HOLDFAST_TEST_POSTGRES_URL
# to use another. What a test does at which level is said in its code (internal/testlevel).

GO      ?= go
SEED    ?= 1
PKGS    ?= ./...
PART    ?= 1/1
PGRUN    = $(GO) run ./internal/pgtest/pgrun --
LEVEL    = $(GO) run ./internal/testrun -seed $(SEED) -level
TESTRUN  = $(PGRUN) $(LEVEL)
# The benchmarks are a module of their own, which is tested when all packages are, and not with the race detector.
MODULES  = $(if $(filter ./...,$(PKGS)),bench)

# The race detector needs cgo, so a C compiler: the one that go would take, else
# any other that is here.
C_COMPILER := $(shell for cc in "$$($(GO) env CC)" cc gcc clang; do \
	command -v $${cc%% *} >/dev/null 2>&1 && echo "$$cc" && break; done)
RACE_ENV   := CGO_ENABLED=1 CC='$(C_COMPILER)'

.DEFAULT_GOAL := help
.PHONY: help test check race long crash chaos screenshots cover lint vet arch bench demo fmt build release fmt-check tools c-compiler

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: fmt-check vet ## vet, format and every package on SQLite and PostgreSQL, in minutes
	$(PGRUN) sh -c '$(MODULES:%=$(LEVEL) test -C % &&) $(LEVEL) test $(PKGS)'

check: lint race long ## what a change must pass beside it: static analysis, the race detector, long tests

race: c-compiler
	$(RACE_ENV) $(PGRUN) $(LEVEL) test -race -timeout 20m $(PKGS)

# What does more at level check than "make test" did. Without the race detector: most of
# it is one goroutine that crashes, or processes.
long:
	$(TESTRUN) check -more -part $(PART) -timeout 20m $(PKGS)

crash: ## every crash at every point, pairs of faults, long races: hours
	$(TESTRUN) crash -timeout 12h $(PKGS)

chaos: ## an outside program against servers and workers that are killed and stopped: 5,000 operations on each database
	$(PGRUN) env HOLDFAST_TEST_LEVEL=crash HOLDFAST_TEST_SEED=$(SEED) $(GO) test -count=1 -v -timeout 1h -run '^TestChaos$$' ./internal/chaos

screenshots: ## a picture of each page of the dashboard, dark and light, at two widths, in bin/screenshots
	mkdir -p bin/screenshots
	HOLDFAST_SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -timeout 20m -run '^TestScreenshots$$' ./web

cover: ## the share of lines that "make test" runs, and that "make check" runs
	$(TESTRUN) test -cover cover.test.out $(PKGS)
	$(TESTRUN) check -cover cover.check.out $(PKGS)
	@for level in test check; do printf 'level %s: ' $$level; \
	$(GO) tool cover -func=cover.$$level.out | tail -1; done

lint: fmt-check tools ## format, staticcheck, known vulnerabilities

tools:
	$(GO) tool staticcheck ./...
	@out=$$($(GO) tool govulncheck ./... 2>&1); code=$$?; \
	case "$$out" in *"fetching vulnerabilities"*) \
	echo 'govulncheck: the vulnerability database cannot be reached, so known vulnerabilities were not looked for'; exit 0;; esac; \
	echo "$$out"; exit $$code

vet: export GOGC ?= 400
vet:
	$(GO) vet $(PKGS)
	$(if $(MODULES),cd $(MODULES) && $(GO) vet ./...)

arch: ## who may import whom
	$(GO) test ./internal/archtest

bench: ## measure, on a server with the default durability; also into bench/results.json and bench/results.svg
	cd bench && $(GO) run . -check 1000000 -json results.json -svg results.svg

demo: ## a server with something to look at
	$(GO) run ./cmd/holdfast dev --demo

fmt: ## format all code
	gofmt -w .

build: ## the command, into bin/
	$(GO) build -o bin/ ./cmd/...

release: ## the files of a release, into dist/: make release VERSION=v0.1.0
	$(GO) run ./internal/release -version '$(VERSION)' -out dist

fmt-check:
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then \
	echo "not formatted (make fmt):"; echo "$$files"; exit 1; fi

c-compiler:
ifeq ($(C_COMPILER),)
	@echo 'the race detector needs a C compiler: install gcc or clang' >&2; exit 1
endif
