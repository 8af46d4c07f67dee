package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/rebalancer-go/rebalancer"

// module is the source of a module, all platforms at once.
type module struct {
	fset *token.FileSet
	pkgs []*pkg // sorted by folder
	// outside are the imports of packages that are not ours.
	outside map[string][]string
}

// pkg is a folder with Go files.
type pkg struct {
	dir   string // "." for the root
	files []*file
}

type file struct {
	name string // below the module's root
	test bool
	src  string
	ast  *ast.File
}

// load parses every Go file but those in testdata folders and in modules of their own.
func load(root fs.FS) (*module, error) {
	m := &module{fset: token.NewFileSet()}
	byDir := map[string]*pkg{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipDir(root, name)
		case path.Ext(name) != ".go":
			return nil
		}
		f, err := m.parse(root, name)
		if errors.Is(err, fs.ErrNotExist) { // gone since the folder was listed
			return nil
		}
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
			m.pkgs = append(m.pkgs, byDir[dir])
		}
		byDir[dir].files = append(byDir[dir].files, f)
		return nil
	})
	slices.SortFunc(m.pkgs, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return m, err
}

func skipDir(root fs.FS, name string) error {
	base := path.Base(name)
	hidden := len(base) > 1 && (base[0] == '.' || base[0] == '_')
	if hidden || base == "testdata" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil && name != "." {
		return fs.SkipDir
	}
	return nil
}

func (m *module) parse(root fs.FS, name string) (*file, error) {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseFile(m.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{name: name, test: strings.HasSuffix(name, "_test.go"), src: string(src), ast: tree}, nil
}

// loadOutside asks the go command for the imports of the packages that are not ours.
func (m *module) loadOutside(dir string) error {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list -deps: %w", err)
	}
	m.outside = map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("go list -deps: %w", err)
		}
		if _, ours := folder(p.ImportPath); !ours {
			m.outside[p.ImportPath] = p.Imports
		}
	}
}

// imports are those of a package's files, test files left out, sorted.
func (p *pkg) imports() []string {
	var out []string
	for _, f := range p.code() {
		out = append(out, f.imports()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// code are the files that are not tests.
func (p *pkg) code() []*file {
	var out []*file
	for _, f := range p.files {
		if !f.test {
			out = append(out, f)
		}
	}
	return out
}

func (p *pkg) main() bool {
	code := p.code()
	return len(code) > 0 && code[0].ast.Name.Name == "main"
}

// below tells whether the package is in one of the folders or under it.
func (p *pkg) below(folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return under(p.dir, f) })
}

func under(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

func (f *file) imports() []string {
	var out []string
	for _, s := range f.ast.Imports {
		name, err := strconv.Unquote(s.Path.Value)
		if err == nil {
			out = append(out, name)
		}
	}
	return out
}

// names maps what a file calls an imported package to the package's path.
func (f *file) names() map[string]string {
	out := map[string]string{}
	for _, s := range f.ast.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if s.Name != nil {
			name = s.Name.Name
		}
		out[name] = p
	}
	return out
}

// folder is where a package of ours lives.
func folder(importPath string) (dir string, ours bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// at writes a finding with its place.
func (m *module) at(n ast.Node, format string, args ...any) string {
	p := m.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// calls visits the calls of functions of imported packages.
func (f *file) calls(visit func(call *ast.CallExpr, pkg, fn string)) {
	names := f.names()
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
				visit(call, names[x.Name], sel.Sel.Name)
			}
		}
		return true
	})
}

func mustLoad(t *testing.T, root fs.FS) *module {
	t.Helper()
	m, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
