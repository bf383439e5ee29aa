package vsomeip

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads a configuration: a file, or a folder, whose .json files are one
// configuration together. Mistakes are *[Error], joined, in the order of the files.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return nil, err
		}
		slices.Sort(files)
	}
	var whole *node
	var r reports
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		n, err := parse(file, data)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = n
		} else {
			merge(whole, n, &r)
		}
	}
	if whole == nil {
		whole = &node{kind: object}
		whole.pos.File = path
	}
	return decode(whole, r)
}

// Parse reads a configuration of one file.
func Parse(file string, data []byte) (*Config, error) {
	n, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	return decode(n, nil)
}

func decode(n *node, r reports) (*Config, error) {
	d := &decoder{r: r}
	if n.kind != object {
		d.r.add(n.pos, "an object", "%v is no configuration", n.kind)
		return nil, d.r.err()
	}
	d.unknown(n, "")
	c := d.config(n)
	if err := d.r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// unknown reports the keys that the table of parameters does not have.
func (d *decoder) unknown(n *node, path string) {
	for _, item := range n.items {
		d.unknown(item, path+"[]")
	}
	for _, m := range n.members {
		key := known(join(path, m.key))
		switch {
		case key == "":
			d.r.add(m.pos, strings.Join(siblings(path), ", "), "unknown key %s", quote(m.key))
		case !opaque(key):
			d.unknown(m.value, key)
		}
	}
}
