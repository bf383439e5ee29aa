package proto

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos"
)

// sources are the files to read, by import path, and where to find imports.
type sources struct {
	files map[string]sourceFile
	order []string // import paths of the files that were asked for
	roots []string
}

type sourceFile struct {
	path string // as the user knows it
	data []byte
}

// builtin reports whether a file is part of the program, and a copy of it among
// the sources not an interface file.
func builtin(importPath string) bool {
	if strings.HasPrefix(importPath, "google/protobuf/") {
		return true
	}
	_, err := fs.Stat(protos.FS, importPath)
	return err == nil
}

func findSources(paths []string) (*sources, error) {
	s := &sources{files: map[string]sourceFile{}}
	r := &reports{}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			r.list = append(r.list, &Error{Pos: model.Position{File: p}, Message: cause(err).Error(), Err: err})
		case info.IsDir():
			s.addRoot(p, r)
		default:
			s.addFile(p, "", r)
		}
	}
	return s, r.err()
}

// cause leaves out the path, which the position names.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (s *sources) addRoot(root string, r *reports) {
	found := false
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.IsDir() && filepath.Ext(p) == ".proto":
			found = true
			s.addFile(p, root, r)
		}
		return nil
	})
	if err != nil {
		r.list = append(r.list, &Error{Pos: model.Position{File: root}, Message: err.Error(), Err: err})
	} else if !found {
		r.add(model.Position{File: root}, "a directory with .proto files", "there is no .proto file in it")
	}
	s.useRoot(root)
}

func (s *sources) useRoot(root string) {
	if !slices.Contains(s.roots, root) {
		s.roots = append(s.roots, root)
	}
}

// addFile adds a file below a root; without one, the package statement gives it.
func (s *sources) addFile(p, root string, r *reports) {
	data, err := os.ReadFile(p)
	if err != nil {
		r.list = append(r.list, &Error{Pos: model.Position{File: p}, Message: cause(err).Error(), Err: err})
		return
	}
	if root == "" {
		root = impliedRoot(p, data)
		s.useRoot(root)
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		rel = filepath.Base(p)
	}
	importPath := filepath.ToSlash(rel)
	if builtin(importPath) {
		return
	}
	if before, ok := s.files[importPath]; ok {
		if !bytes.Equal(before.data, data) {
			r.add(model.Position{File: p}, "one file for each import path", "%s is also the import path of %s, which differs", importPath, before.path)
		}
		return
	}
	s.files[importPath] = sourceFile{p, data}
	s.order = append(s.order, importPath)
}

var packageStatement = regexp.MustCompile(`(?m)^\s*package\s+([\w.]+)\s*;`)

// impliedRoot returns the directory below which a file has the path that its
// package stands for; the file's own directory if there is none.
func impliedRoot(p string, data []byte) string {
	dir := filepath.Dir(p)
	m := packageStatement.FindSubmatch(data)
	if m == nil {
		return dir
	}
	want := strings.ReplaceAll(string(m[1]), ".", "/")
	abs, err := filepath.Abs(dir)
	if err != nil || !strings.HasSuffix(filepath.ToSlash(abs), "/"+want) {
		return dir
	}
	for range strings.Count(want, "/") + 1 {
		if dir == "." || filepath.Base(dir) == ".." {
			dir = filepath.Join(dir, "..")
		} else {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}

// open finds a file by import path: those of the program first, so that a copy
// of the options that is older than the program does not change their meaning.
func (s *sources) open(importPath string) (io.Reader, error) {
	if data, err := fs.ReadFile(protos.FS, importPath); err == nil {
		return bytes.NewReader(data), nil
	}
	if builtin(importPath) {
		return nil, fs.ErrNotExist // protocompile has its own
	}
	if f, ok := s.files[importPath]; ok {
		return bytes.NewReader(f.data), nil
	}
	if !fs.ValidPath(importPath) {
		return nil, fs.ErrNotExist
	}
	for _, root := range s.roots {
		p := filepath.Join(root, filepath.FromSlash(importPath))
		if data, err := os.ReadFile(p); err == nil {
			return bytes.NewReader(data), nil
		}
	}
	return nil, fs.ErrNotExist
}

// shown returns the path of a file as the user knows it.
func (s *sources) shown(importPath string) string {
	if f, ok := s.files[importPath]; ok {
		return f.path
	}
	for _, root := range s.roots {
		p := filepath.Join(root, filepath.FromSlash(importPath))
		if _, err := os.Stat(p); err == nil && !builtin(importPath) {
			return p
		}
	}
	return path.Clean(importPath)
}
