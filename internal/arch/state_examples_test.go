package arch

func initRule() rule {
	return rule{
		name: "no init", check: checkInit,
		bad:  map[string]string{"sources/file/a.go": "package file\nfunc init() {}", "cmd/x/main.go": "package main\nfunc init() {}"},
		want: []string{"sources/file/a.go:2", "cmd/x/main.go:2"},
		good: map[string]string{"sources/file/a.go": "package file\ntype t int\nfunc (t) init() {}", "sources/file/a_test.go": "package file\nfunc init() {}"},
	}
}

func globalsRule() rule {
	return rule{
		name: "no state of packages", check: checkGlobals,
		bad: map[string]string{
			"group/a.go": "package group\n" +
				"import \"sync\"\n" +
				"var drivers = map[string]int{}\n" +
				"var mu sync.Mutex\n" +
				"var count int\n" +
				"var events = make(chan int)\n" +
				"var list = newList()\n" +
				"func f() { drivers[\"a\"] = 1; count++; p := &count; _ = p }\n",
			"group/b.go": "package group\nfunc g() { delete(drivers, \"a\"); count, x := 1, 2; _, _ = count, x }\n",
		},
		want: []string{"a.go:4: variable mu", "a.go:6: variable events", "a.go:7: variable list", "a.go:8: variable count", "a.go:8: variable drivers", "b.go:2: variable drivers"},
		good: map[string]string{
			"group/a.go": "package group\n" +
				"import (\"errors\"; \"sync\")\n" +
				"var boot = sync.OnceValue(func() int { return 1 })\n" +
				"type closer interface{ Close() }\n" +
				"type s struct{ err error }\n" +
				"func (*s) Close() {}\n" +
				"var _ closer = (*s)(nil)\n" +
				"var ErrX = errors.New(\"x\")\n" +
				"var names = [...]string{\"a\", \"b\"}\n" +
				"var cases = []func() int{func() int { return len(names) }}\n" +
				"func f(names []string) { names[0] = \"c\"; ErrX := s{}; ErrX.err = nil }\n",
			"cmd/x/main.go":      "package main\nvar verbose bool\nfunc main() { verbose = true }\n",
			"group/some_test.go": "package group\nvar count int\nfunc g() { count++ }\n",
		},
	}
}
