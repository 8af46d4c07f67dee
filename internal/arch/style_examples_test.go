package arch

import "strings"

func lengthRule() rule {
	long := "\nfunc f() {" + strings.Repeat("\n", maxFunc) + "}\n"
	return rule{
		name: "length", check: checkLength,
		bad: map[string]string{
			"group/a.go":      "package group" + strings.Repeat("\n", maxFile+1),
			"group/a_test.go": "package group" + strings.Repeat("\n", maxSuite+1),
			"group/b.go":      "package group" + long,
		},
		want: []string{"group/a.go: 501 lines", "group/a_test.go: 701 lines", "group/b.go:2: function f has 61 lines"},
		good: map[string]string{
			"group/a.go":      "package group" + strings.Repeat("\n", maxFile),
			"group/a_test.go": "package group" + long + strings.Repeat("\n", maxFile),
		},
	}
}

func docsRule() rule {
	return rule{
		name: "docs", check: checkDocs,
		bad: map[string]string{
			"group/a.go": "package group\ntype A int\nfunc B() {}\nfunc (A) C() {}\nconst D = 1\nvar E int\n",
		},
		want: []string{"a.go:2: type A", "a.go:3: func B", "a.go:4: func C", "a.go:5: D", "a.go:6: E", "group: the package"},
		good: map[string]string{
			"group/a.go": "// Package group has comments.\npackage group\n\n// A is one.\ntype A int\n\nfunc (A) String() string { return \"\" }\n" +
				"\n// Constants.\nconst (\n\tB = 1\n)\n\ntype c int\n\nfunc (c) D() {}\n\nconst (\n\tE = 1 // of many\n)\n",
			"internal/x/a.go": "package x\ntype A int\n",
		},
	}
}
