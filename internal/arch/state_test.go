package arch

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// checkInit finds init functions: nothing registers itself.
func checkInit(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		for _, f := range p.code() {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					bad = append(bad, m.at(fn, "init function: nothing may register itself or run before main"))
				}
			}
		}
	}
	return bad
}

// checkGlobals finds variables of a package that are changed after their declaration, or that are made to be: locks, channels, what
// a function of unknown effect made. main packages may have some.
func checkGlobals(m *module) []string {
	var bad []string
	for _, p := range m.pkgs {
		if p.main() {
			continue
		}
		g := &globals{m: m, info: typesOf(m, p)}
		for _, f := range p.code() {
			g.declared(f.ast)
			ast.Inspect(f.ast, g.visit)
		}
		bad = append(bad, g.bad...)
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// typesOf resolves a package's names. What it imports is not known, and the files of several platforms declare the same name: both
// errors are expected.
func typesOf(m *module, p *pkg) *types.Info {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, f := range p.code() {
		files = append(files, f.ast)
	}
	conf := types.Config{Error: func(error) {}, Importer: noImporter{}}
	_, _ = conf.Check(p.dir, m.fset, files, info)
	return info
}

type noImporter struct{}

func (noImporter) Import(string) (*types.Package, error) { return nil, errors.New("not known here") }

type globals struct {
	m    *module
	info *types.Info
	bad  []string
}

// makers are functions whose results nobody can change.
var makers = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "bytes.Repeat", "strings.Repeat", "template.Must",
	"sync.OnceValue", "sync.OnceValues", "time.Date", "time.Unix", "reflect.TypeFor",
}

// declared looks at the declarations of a file.
func (g *globals) declared(f *ast.File) {
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			if spec.Names[0].Name == "_" { // a check of the compiler
				continue
			}
			if changeable(spec.Type) || slices.ContainsFunc(spec.Values, changeable) {
				g.bad = append(g.bad, g.m.at(spec, "variable %s of the package is made to be changed", spec.Names[0].Name))
			}
		}
	}
}

// changeable tells whether a type or a value of a declaration is a lock, a channel, or comes from a call that is not a maker.
func changeable(e ast.Expr) bool {
	if e == nil {
		return false
	}
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType: // what it says is done by its caller
			return false
		case *ast.FuncLit:
			return false
		case *ast.ChanType:
			found = true
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			made := n.Sel.Name == "OnceValue" || n.Sel.Name == "OnceValues" // one value for good
			found = found || ok && (x.Name == "sync" && !made || x.Name == "atomic")
		case *ast.CallExpr:
			found = found || !isMaker(n.Fun)
		}
		return !found
	})
	return found
}

func isMaker(fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.IndexExpr: // of a type argument
		return isMaker(fun.X)
	case *ast.SelectorExpr:
		x, ok := fun.X.(*ast.Ident)
		return ok && slices.Contains(makers, x.Name+"."+fun.Sel.Name)
	case *ast.ArrayType, *ast.ParenExpr: // a conversion
		return true
	}
	return false
}

// visit finds changes of variables of the package.
func (g *globals) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, e := range n.Lhs {
				g.changed(e)
			}
		}
	case *ast.IncDecStmt:
		g.changed(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			g.changed(n.X)
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			g.changed(n.Key)
			g.changed(n.Value)
		}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && slices.Contains([]string{"clear", "copy", "delete"}, fn.Name) {
			g.changed(n.Args[0])
		}
	}
	return true
}

// changed reports e when it is a variable of the package or a part of one.
func (g *globals) changed(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.Ident:
			v, ok := g.info.Uses[x].(*types.Var)
			if ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				g.bad = append(g.bad, g.m.at(x, "variable %s of the package is changed", x.Name))
			}
			return
		default:
			return
		}
	}
}
