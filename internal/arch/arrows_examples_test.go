package arch

func layersRule() rule {
	return rule{
		name: "arrows", check: checkLayers,
		bad: map[string]string{
			"a.go":                      `package rebalancer; import _ "github.com/rebalancer-go/rebalancer/group"`,
			"coord/a.go":                `package coord; import _ "github.com/rebalancer-go/rebalancer"`,
			"coord/assign/a.go":         `package assign; import _ "github.com/rebalancer-go/rebalancer/backends"`,
			"group/a.go":                `package group; import _ "github.com/rebalancer-go/rebalancer/telemetry"`,
			"group/b.go":                `package group; import _ "github.com/rebalancer-go/rebalancer/backends/sqlite"`,
			"backends/sqlite/a.go":      `package sqlite; import _ "github.com/rebalancer-go/rebalancer/coord"`,
			"backends/sqlite/b.go":      `package sqlite; import _ "github.com/rebalancer-go/rebalancer/backends/memory"`,
			"sources/file/a.go":         `package file; import _ "github.com/rebalancer-go/rebalancer/group"`,
			"sources/file/deeper/a.go":  `package deeper; import _ "github.com/rebalancer-go/rebalancer/sources/s3"`,
			"internal/sqlstore/a.go":    `package sqlstore; import _ "github.com/rebalancer-go/rebalancer/backends/sqlite"`,
			"newfolder/of/somebody.go":  `package of`,
			"admin/only_here_linux.go":  `package admin; import _ "github.com/rebalancer-go/rebalancer/group"`,
			"backends/storetest/all.go": `package storetest; import _ "github.com/rebalancer-go/rebalancer/backends/memory"`,
		},
		want: []string{
			". imports group", "coord imports .", "coord/assign imports backends", "group imports telemetry", "group imports backends/sqlite",
			"backends/sqlite imports coord", "backends/sqlite imports backends/memory", "sources/file imports group",
			"sources/file/deeper imports sources/s3", "internal/sqlstore imports backends/sqlite", "newfolder/of: no layer",
			"admin imports group", "backends/storetest imports backends/memory",
		},
		good: map[string]string{
			"a.go":                         `package rebalancer; import _ "github.com/rebalancer-go/rebalancer/internal/draining"`,
			"coord/a.go":                   `package coord; import _ "github.com/rebalancer-go/rebalancer/coord/assign"`,
			"group/a.go":                   `package group; import _ "github.com/rebalancer-go/rebalancer/backends"`,
			"backends/sqlite/a.go":         `package sqlite; import _ "github.com/rebalancer-go/rebalancer/backends/sqlite/deeper"`,
			"backends/sqlite/deeper/a.go":  `package deeper; import _ "github.com/rebalancer-go/rebalancer/internal/sqlstore"`,
			"backends/sqlite/some_test.go": `package sqlite; import _ "github.com/rebalancer-go/rebalancer/group"`,
			"cmd/rebalancer/main.go":       `package main; import _ "github.com/rebalancer-go/rebalancer/backends/sqlite"`,
			"bench/go.mod":                 `module bench`,
			"bench/main.go":                `package main; import _ "github.com/rebalancer-go/rebalancer/coord"`,
		},
	}
}

func pureRule() rule {
	return rule{
		name: "pure machine", check: checkPure,
		bad: map[string]string{
			"coord/a.go":        `package coord; import ("context"; "fmt"; "log/slog"; "math/rand/v2"; "net/http"; "sync/atomic"; "time")`,
			"coord/assign/a.go": `package assign; import ("os/exec"; "example.com/x")`,
		},
		want: []string{
			"coord imports context", "coord imports log/slog", "coord imports math/rand/v2", "coord imports net/http",
			"coord imports sync/atomic", "coord imports time", "coord/assign imports os/exec", "coord/assign imports example.com/x",
		},
		good: map[string]string{
			"coord/a.go":      `package coord; import ("fmt"; "sort")`,
			"coord/a_test.go": `package coord; import ("os"; "time")`,
			"group/a.go":      `package group; import "time"`,
		},
	}
}

func testingRule() rule {
	return rule{
		name: "testing not linked", check: checkTestingLinked,
		bad: map[string]string{
			"a.go":       `package rebalancer; import _ "testing"`,
			"group/a.go": `package group; import _ "github.com/rebalancer-go/rebalancer/backends"`,
			"backends/a.go": `package backends
import _ "example.com/client"`,
			"sources/sourcetest/a.go": `package sourcetest; import _ "testing"`,
			"sources/file/a.go":       `package file; import _ "github.com/rebalancer-go/rebalancer/sources/sourcetest"`,
		},
		outside: map[string][]string{"example.com/client": {"fmt", "example.com/helper"}, "example.com/helper": {"testing"}},
		want: []string{
			". links testing", "group links testing: github.com/rebalancer-go/rebalancer/group → github.com/rebalancer-go/rebalancer/backends → example.com/client → example.com/helper → testing",
			"backends links testing", "sources/file links testing",
		},
		good: map[string]string{
			"a_test.go":               `package rebalancer; import _ "testing"`,
			"group/a.go":              `package group; import _ "example.com/client"`,
			"backends/storetest/a.go": `package storetest; import _ "testing"`,
		},
	}
}
