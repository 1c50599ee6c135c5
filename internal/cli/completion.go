package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Run prints the completion script of a shell. The script is generated from the grammar.
func (c *completionCommand) Run(p *program, k *kong.Context) error {
	write := map[string]func(io.Writer, []completion) error{"bash": writeBash, "zsh": writeZsh, "fish": writeFish}[c.Shell]
	return write(p.stdout, completions(k.Model.Node, ""))
}

// completion lists the words that may follow a command path.
type completion struct {
	path     string // "keys create"; "" at the beginning
	commands []*kong.Node
	flags    []*kong.Flag
	values   []string // enum values of positional arguments
}

func completions(n *kong.Node, path string) []completion {
	c := completion{path: path}
	for _, group := range n.AllFlags(true) {
		c.flags = append(c.flags, group...)
	}
	slices.SortFunc(c.flags, func(a, b *kong.Flag) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range n.Positional {
		c.values = append(c.values, p.EnumSlice()...)
	}
	all := []completion{}
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		c.commands = append(c.commands, child)
		all = append(all, completions(child, strings.TrimSpace(path+" "+child.Name))...)
	}
	return append([]completion{c}, all...)
}

// words returns all words that may follow.
func (c completion) words() []string {
	var all []string
	for _, n := range c.commands {
		all = append(all, n.Name)
	}
	all = append(all, c.values...)
	for _, f := range c.flags {
		all = append(all, "--"+f.Name)
	}
	return all
}

// enumOf returns the enum values of a flag.
func enumOf(f *kong.Flag) []string {
	return slices.DeleteFunc(f.EnumSlice(), func(v string) bool { return v == "" })
}

// enums returns the names of all flags with enum values, sorted, and the values of each.
func enums(all []completion) (names []string, byFlag map[string][]string) {
	byFlag = make(map[string][]string)
	for _, c := range all {
		for _, f := range c.flags {
			values := enumOf(f)
			if len(values) == 0 {
				continue
			}
			if byFlag[f.Name] == nil {
				names = append(names, f.Name)
			}
			for _, v := range values {
				if !slices.Contains(byFlag[f.Name], v) {
					byFlag[f.Name] = append(byFlag[f.Name], v)
				}
			}
		}
	}
	slices.Sort(names)
	return names, byFlag
}

// writeCases writes the part that bash and zsh share: the words after the command path in
// $path, and the values after the flag in $prev.
func writeCases(w io.Writer, all []completion) {
	fmt.Fprint(w, "  case \"$prev\" in\n")
	names, byFlag := enums(all)
	for _, name := range names {
		pattern := "--" + name
		if name == "output" {
			pattern += "|-o"
		}
		fmt.Fprintf(w, "    %s) words=%q; return 0;;\n", pattern, strings.Join(byFlag[name], " "))
	}
	fmt.Fprint(w, "  esac\n  case \"$path\" in\n")
	for _, c := range all {
		fmt.Fprintf(w, "    %q) words=%q;;\n", c.path, strings.Join(c.words(), " "))
	}
	fmt.Fprint(w, "    *) words=\"\";;\n  esac\n")
}

// writePath writes the loop that sets $path to the commands among the preceding words.
func writePath(w io.Writer, all []completion) {
	var known []string
	for _, c := range all[1:] {
		known = append(known, fmt.Sprintf("%q", c.path))
	}
	fmt.Fprintf(w, `  for word in "$@"; do
    case "${path:+$path }$word" in
      %s) path="${path:+$path }$word";;
    esac
  done
`, strings.Join(known, "|"))
}

func writeBash(w io.Writer, all []completion) error {
	fmt.Fprint(w, "# bash completion for holdfast\n_holdfast_words() {\n  local word path=\"\" prev=\"$1\"; shift\n")
	writePath(w, all)
	writeCases(w, all)
	_, err := fmt.Fprint(w, `}
_holdfast() {
  local words=""
  _holdfast_words "${COMP_WORDS[COMP_CWORD-1]}" "${COMP_WORDS[@]:1:COMP_CWORD-1}"
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _holdfast holdfast
`)
	return err
}

func writeZsh(w io.Writer, all []completion) error {
	fmt.Fprint(w, "#compdef holdfast\n# zsh completion for holdfast\n_holdfast_words() {\n  local word at=\"\" prev=\"$1\"; shift\n")
	var b strings.Builder
	writePath(&b, all)
	writeCases(&b, all)
	// The text is the one for bash, with its variables renamed: in zsh, path and words are special.
	fmt.Fprint(w, strings.NewReplacer("${path:+$path }", "${at:+$at }", "path=\"", "at=\"", "\"$path\"", "\"$at\"", "words=\"", "choices=\"").Replace(b.String()))
	_, err := fmt.Fprint(w, `}
_holdfast() {
  local choices=""
  _holdfast_words "${words[CURRENT-1]}" "${words[@]:1:$((CURRENT-2))}"
  compadd -- ${=choices} || _files
}
compdef _holdfast holdfast
`)
	return err
}

func writeFish(w io.Writer, all []completion) error {
	fmt.Fprint(w, `# fish completion for holdfast
function __holdfast_path_is
  set -l path
  for word in (commandline -opc)[2..]
    set -l next (string trim "$path $word")
    switch "$next"
`)
	for _, c := range all[1:] {
		fmt.Fprintf(w, "      case %s\n        set path $next\n", fishQuote(c.path))
	}
	fmt.Fprint(w, "    end\n  end\n  test \"$path\" = \"$argv[1]\"\nend\n")
	for _, c := range all {
		when := "-n " + fishQuote("__holdfast_path_is "+fishQuote(c.path))
		for _, n := range c.commands {
			fmt.Fprintf(w, "complete -c holdfast -f %s -a %s -d %s\n", when, n.Name, fishQuote(n.Help))
		}
		for _, v := range c.values {
			fmt.Fprintf(w, "complete -c holdfast -f %s -a %s\n", when, v)
		}
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c holdfast %s -l %s%s -d %s\n", when, f.Name, fishValue(f), fishQuote(f.Help))
		}
	}
	_, err := fmt.Fprintln(w, "# end")
	return err
}

// fishValue returns the options that tell fish which value a flag takes.
func fishValue(f *kong.Flag) string {
	short := ""
	if f.Short != 0 {
		short = " -s " + string(f.Short)
	}
	values := enumOf(f)
	switch {
	case f.IsBool():
		return short
	case len(values) > 0:
		return short + " -x -a " + fishQuote(strings.Join(values, " "))
	}
	return short + " -r"
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
