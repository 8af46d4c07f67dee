package arch

import (
	"fmt"
	"go/ast"
	"strings"
)

const (
	maxFile  = 500 // lines of a file
	maxSuite = 700 // lines of a file of tests
	maxFunc  = 60  // lines of a function, tables of tests left out
)

// checkLength finds files and functions that have outgrown one idea.
func checkLength(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		for _, f := range p.files {
			limit := maxFile
			if f.test || strings.HasSuffix(p.dir, "test") {
				limit = maxSuite
			}
			if n := strings.Count(f.src, "\n"); n > limit {
				bad = append(bad, fmt.Sprintf("%s: %d lines: at most %d", f.name, n, limit))
			}
			if f.test {
				continue
			}
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if n := m.fset.Position(fn.End()).Line - m.fset.Position(fn.Pos()).Line + 1; n > maxFunc {
					bad = append(bad, m.at(fn, "function %s has %d lines: at most %d", fn.Name.Name, n, maxFunc))
				}
			}
		}
	}
	return bad
}

// checkDocs finds exported identifiers of packages that users import which say nothing about themselves.
func checkDocs(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		if p.main() || p.below("internal", "examples", "integration") {
			continue
		}
		documented := false
		for _, f := range p.code() {
			documented = documented || f.ast.Doc != nil
			for _, d := range f.ast.Decls {
				bad = append(bad, m.undocumented(d)...)
			}
		}
		if len(p.code()) > 0 && !documented {
			bad = append(bad, fmt.Sprintf("%s: the package has no comment", p.dir))
		}
	}
	return bad
}

func (m *module) undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !obvious(d) {
			return []string{m.at(d, "func %s has no comment", d.Name.Name)}
		}
	case *ast.GenDecl:
		var bad []string
		for _, s := range d.Specs {
			bad = append(bad, m.undocumentedSpec(d, s)...)
		}
		return bad
	}
	return nil
}

func (m *module) undocumentedSpec(d *ast.GenDecl, s ast.Spec) []string {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
			return []string{m.at(s, "type %s has no comment", s.Name.Name)}
		}
	case *ast.ValueSpec:
		if s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
			return []string{m.at(s, "%s has no comment", s.Names[0].Name)}
		}
	}
	return nil
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

// obvious are methods that an interface of the standard library documents.
func obvious(d *ast.FuncDecl) bool {
	switch d.Name.Name {
	case "Error", "Unwrap", "Is", "String", "Read", "Write", "Close":
		return d.Recv != nil
	}
	return false
}
