# Everything that a change must pass is `make test`. The tests bring their own
# PostgreSQL (internal/pgtest); set HOLDFAST_TEST_POSTGRES_URL to use another.

GO     ?= go
PGRUN   = $(GO) run ./internal/pgtest/pgrun --
PKGS   ?= ./...
LONG    = ./internal/storetest ./internal/reactions ./internal/feed ./stream ./lifecycle ./holdfasttest ./internal/keys ./internal/requests ./idem ./internal/webhooks ./internal/wallets ./internal/batches ./run ./httpapi ./scope

# The race detector needs cgo, so a C compiler: the one that go would take, else
# any other that is here.
C_COMPILER := $(shell for cc in "$$($(GO) env CC)" cc gcc clang; do \
	command -v $${cc%% *} >/dev/null 2>&1 && echo "$$cc" && break; done)
ifneq ($(C_COMPILER),)
# SQLite is C that was translated to Go. To instrument it finds nothing of ours, and
# makes it twenty times slower.
RACE     := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false
# Where one goroutine crashes, or goes through a table of cases, it races with nobody:
# these run later, at their full length.
ALONE    := TestRandomWalk|TestCrash.*|TestResolve.*|TestEndsWith.*|TestOpaque.*|TestWhateverFails.*|TestUnknownUnder.*|TestTheUser.*|TestRequestsMade.*
LATER    := -skip '^($(ALONE))$$'
RACE_ENV := CGO_ENABLED=1 CC='$(C_COMPILER)'
endif

.DEFAULT_GOAL := help
.PHONY: help test race lint arch bench crash demo fmt build vet fmt-check c-compiler

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: vet fmt-check ## vet, format and all tests, with the race detector if there is a C compiler
ifeq ($(RACE),)
	@echo 'the race detector is off for want of a C compiler'
endif
	$(RACE_ENV) $(PGRUN) $(GO) test $(RACE) $(LATER) -timeout 25m $(PKGS)
ifneq ($(RACE),)
	@echo 'the long tests, without the race detector: of many crashes one in three on SQLite and one in seven on PostgreSQL ("make crash" runs the rest, and pairs)'
	HOLDFAST_CRASH_SOME=7 $(PGRUN) $(GO) test -timeout 25m -run '^(TestHoldRace|TestOneOfTwoCreatesWins|TestCancelRaces.*|$(ALONE))$$' $(LONG)
endif

race: c-compiler ## all tests, never without the race detector
	$(RACE_ENV) $(PGRUN) $(GO) test $(RACE) -timeout 25m $(PKGS)

lint: vet fmt-check ## vet, format, and staticcheck where it is installed
	@if command -v staticcheck >/dev/null 2>&1; then staticcheck ./...; \
	else echo 'staticcheck is not installed: skipped'; fi

arch: ## who may import whom
	$(GO) test ./internal/archtest

bench: ## measure, into bench/results.json
	$(PGRUN) sh -c 'cd bench && $(GO) run . -o results.json'

crash: ## the long suites: processes killed, and a crash at every point
	HOLDFAST_KILLS=200 HOLDFAST_RACE_ROUNDS=1000 HOLDFAST_PAIRS=1 $(PGRUN) $(GO) test -v -run 'Kill|Crash|ManyCallers' -timeout 60m $(LONG)

demo: ## a server with something to look at
	$(GO) run ./cmd/holdfast dev --demo

fmt: ## format all code
	gofmt -w .

build: ## the command, into bin/
	$(GO) build -o bin/ ./cmd/...

vet:
	$(GO) vet ./...
	cd bench && $(GO) vet ./...

fmt-check:
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then \
	echo "not formatted (make fmt):"; echo "$$files"; exit 1; fi

c-compiler:
ifeq ($(C_COMPILER),)
	@echo 'the race detector needs a C compiler: install gcc or clang' >&2; exit 1
endif
