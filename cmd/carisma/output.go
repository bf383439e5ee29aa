package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// output is the flag -o: text for people or JSON for programs.
type output struct{ format string }

func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "output `format`: text or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.format != "text" && o.format != "json" {
			return usageError{fmt.Errorf("output format %q: allowed are text and json", o.format)}
		}
		return nil
	}
}

func (o *output) json() bool { return o.format == "json" }

// print prints v as JSON, or what text writes.
func (o *output) print(cmd *cobra.Command, v any, text func(*table)) error {
	if o.json() {
		return printJSON(cmd.OutOrStdout(), v)
	}
	return printTable(cmd.OutOrStdout(), text)
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// table writes columns that are as wide as their widest cell.
type table struct{ w *tabwriter.Writer }

func printTable(w io.Writer, fill func(*table)) error {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	fill(t)
	return t.w.Flush()
}

// row adds a row; an empty cell is shown as a dash.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// line adds a line of its own.
func (t *table) line(text string) { fmt.Fprintln(t.w, text) }
