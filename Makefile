# carisma: everything a developer or CI does starts here. `make` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
VEHICLE ?= vehicles/cabin
CHECK ?=
PEERS ?=
FUZZTIME ?= 30s
SOAK ?= 10m
FAULTS ?= 1h
BENCH ?=
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The product, and the programs of the sample vehicles and of the interop runs.
programs = ./cmd/carisma $(sort $(patsubst %/,./%,$(dir $(wildcard vehicles/*/cmd/*/main.go interop/cmd/*/main.go))))

up_flags := --scenario $(if $(CHECK),--check) $(if $(PEERS),--netns --peers $(PEERS))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  Variables: VEHICLE=DIR, CHECK=1 (end after the scenario), PEERS=vsomeip, FUZZTIME=30s'

.PHONY: run
run: build ## run a vehicle and its scenario; CHECK=1 ends after it, PEERS=vsomeip plays the ECU with vsomeip
	@interop/peers/deps.sh run $(if $(PEERS),interop)
	$(if $(filter vsomeip,$(PEERS)),@interop/vsomeip/build.sh >/dev/null)
	@envoy=$$(interop/peers/get.sh envoy); CARISMA_ENVOY=$$envoy exec bin/carisma up $(VEHICLE) $(up_flags)

.PHONY: build
build: ## build bin/carisma and the programs of vehicles and interop runs
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(programs)

.PHONY: build-arm64
build-arm64: ## check that linux/arm64 builds
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -trimpath -o /dev/null ./...

.PHONY: deps
deps: ## install the Debian packages that run, test and interop need (the only step that needs root)
	@interop/peers/deps.sh run test interop

.PHONY: test
test: ## all that CI needs: unit tests, fuzzing, interop, lint, govulncheck
	@.ci/test

.PHONY: interop
interop: ## the flows against Envoy, vsomeip and grpcurl in network namespaces
	@interop/peers/deps.sh run interop
	@.ci/interop -v

.PHONY: matrix
matrix: ## write the interop matrix in docs/interop.md from a run of all its cells
	@interop/peers/deps.sh interop
	@.ci/matrix

.PHONY: bench
bench: build ## measure against vsomeip and plain gRPC: a table and JSON
	@interop/peers/deps.sh run interop
	@.ci/bench $(BENCH)

.PHONY: soak
soak: ## two SOME/IP stacks over a bad network for SOAK=10m; SEED repeats a run
	SOAK=$(SOAK) $(GO) test -count=1 -v -run Soak -timeout 1h ./interop/lossy

.PHONY: reliability
reliability: build ## play every fault and write docs/reliability.md from what was measured
	@interop/peers/deps.sh run
	@CARISMA_ENVOY=$$(interop/peers/get.sh envoy) bin/faults -json interop/faults/results.json -page docs/reliability.md

.PHONY: soak-faults
soak-faults: build ## play the faults on one vehicle for FAULTS=1h and write down what piles up
	@interop/peers/deps.sh run
	@CARISMA_ENVOY=$$(interop/peers/get.sh envoy) bin/faults -for $(FAULTS) -soak interop/faults/soak.json

.PHONY: lint
lint: ## golangci-lint with the import rules, shellcheck
	@.ci/lint

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

.PHONY: gen
gen: ## generate code from .proto files
	$(GO) generate ./...

.PHONY: conformance
conformance: ## write docs/conformance.md from the rules of the protocol and the tests that cite them
	$(GO) run ./interop/cmd/conformance

.PHONY: clean
clean: ## remove what was built here (peers stay in the cache)
	rm -rf bin build
