package envoy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Variable is the environment variable that names the Envoy program.
const Variable = "CARISMA_ENVOY"

// minVersion is the oldest Envoy whose behaviour the resources rely on.
var minVersion = Version{1, 40, 0}

const versionTimeout = 10 * time.Second

// Version is the version of an Envoy program.
type Version [3]int

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v Version) less(w Version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

// ProgramError says that there is no usable Envoy program, and how to name one.
type ProgramError struct {
	Path string // empty if none was found
	Err  error
}

func (e *ProgramError) Error() string {
	what := "no Envoy program"
	if e.Path != "" {
		what = "Envoy program " + e.Path
	}
	return fmt.Sprintf("%s: %v; name one of at least version %s by --envoy, the node file's envoy.path or the variable %s",
		what, e.Err, minVersion, Variable)
}

func (e *ProgramError) Unwrap() error { return e.Err }

// Find returns the Envoy program to run: path if given, else what CARISMA_ENVOY
// names, else the one in PATH. It fails with a *ProgramError where there is none
// or its version is too old.
func Find(ctx context.Context, path string) (string, Version, error) {
	if path == "" {
		path = os.Getenv(Variable)
	}
	if path == "" {
		path = "envoy"
	}
	found, err := exec.LookPath(path)
	switch {
	case err != nil && strings.ContainsRune(path, '/'):
		return "", Version{}, &ProgramError{Path: path, Err: err}
	case err != nil:
		return "", Version{}, &ProgramError{Err: fmt.Errorf("there is none named %q in PATH", path)}
	}
	path = found
	v, err := programVersion(ctx, path)
	if err != nil {
		return "", Version{}, &ProgramError{Path: path, Err: err}
	}
	if v.less(minVersion) {
		return "", Version{}, &ProgramError{Path: path, Err: fmt.Errorf("version %s is too old", v)}
	}
	return path, v, nil
}

func programVersion(ctx context.Context, path string) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Version{}, err
	}
	v, ok := parseVersion(string(out))
	if !ok {
		return Version{}, fmt.Errorf("its --version is not Envoy's: %.80q", strings.TrimSpace(string(out)))
	}
	return v, nil
}

// parseVersion reads "…/envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL",
// where the number may carry a suffix such as "-dev".
func parseVersion(out string) (Version, bool) {
	_, rest, ok := strings.Cut(out, "version:")
	if !ok {
		return Version{}, false
	}
	parts := strings.Split(strings.TrimSpace(rest), "/")
	if len(parts) < 2 {
		return Version{}, false
	}
	number, _, _ := strings.Cut(parts[1], "-")
	fields := strings.Split(number, ".")
	var v Version
	if len(fields) != len(v) {
		return Version{}, false
	}
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 16)
		if err != nil {
			return Version{}, false
		}
		v[i] = int(n)
	}
	return v, true
}
