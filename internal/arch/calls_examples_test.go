package arch

func clockRule() rule {
	return rule{
		name: "no clock", check: checkClock,
		bad: map[string]string{
			"coord/a.go": "package coord\nimport \"time\"\nvar x = time.Now()\nfunc f() { time.Sleep(1) }\n",
			"b.go":       "package rebalancer\nimport clock \"time\"\nfunc f() { clock.AfterFunc(1, nil) }\n",
		},
		want: []string{"coord/a.go:3: time.Now", "coord/a.go:4: time.Sleep", "b.go:3: time.AfterFunc"},
		good: map[string]string{
			"coord/a_test.go": "package coord\nimport \"time\"\nvar x = time.Now()\n",
			"group/a.go":      "package group\nimport \"time\"\nvar x = time.Now()\n",
			"b.go":            "package rebalancer\nimport \"time\"\nconst d = time.Second\n",
		},
	}
}

func sleepRule() rule {
	return rule{
		name: "no sleep in tests", check: checkSleep,
		bad: map[string]string{
			"group/a_test.go":         "package group\nimport \"time\"\nfunc f() { time.Sleep(1) }\n",
			"group/other_test.go":     "package group\nimport _ \"testing/synctest\"\n",
			"coord/a_test.go":         "package coord\nimport \"time\"\nfunc f() { g(func() { time.Sleep(1) }) }\n",
			"sources/sourcetest/a.go": "package sourcetest\nimport \"time\"\nfunc f() { time.Sleep(1) }\n",
		},
		want: []string{"group/a_test.go:3", "coord/a_test.go:3", "sources/sourcetest/a.go:3"},
		good: map[string]string{
			"group/a_test.go": "package group\nimport (\n\"testing/synctest\"\n\"time\")\nfunc f() { time.Sleep(1) }\n",
			"group/b_test.go": "package group\nimport \"time\"\nfunc f(ok func() bool) { for !ok() { time.Sleep(1) } }\n",
			"group/c_test.go": "package group\nimport \"time\"\nfunc f() { bubble(func() { time.Sleep(1) }) }\n",
			"group/d.go":      "package group\nimport \"time\"\nfunc f() { time.Sleep(1) }\n",
			"admin/e_test.go": "package admin\nimport \"time\"\nfunc f() {\n\ttime.Sleep(1) // the work\n}\n",
		},
	}
}

func skipRule() rule {
	return rule{
		name: "no silent skip", check: checkSkip,
		bad: map[string]string{
			"group/a_test.go":     "package group\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Skip(\"today\") }\n",
			"group/b_test.go":     "package group\nimport \"testing\"\nfunc TestB(t *testing.T) { if testing.Short() { t.SkipNow() } }\n",
			"internal/xtest/c.go": "package xtest\nimport \"testing\"\nfunc C(tb testing.TB) { tb.Skipf(\"x\") }\n",
		},
		want: []string{"group/a_test.go:3", "group/b_test.go:3", "internal/xtest/c.go:3"},
		good: map[string]string{
			"integration/a_test.go": "package integration\nimport (\"os\"; \"testing\")\nfunc TestA(t *testing.T) { if os.Getenv(\"REBAL_REQUIRE\") == \"\" { t.Skip(\"no server\") } }\n",
			"group/b.go":            "package group\nfunc f(r reader) { r.Skip() }\n",
		},
	}
}

func guardsRule() rule {
	return rule{
		name: "guards stay", check: checkGuards,
		bad: map[string]string{
			"group/a.go": "package group\nimport \"github.com/rebalancer-go/rebalancer/coord\"\nvar c = coord.Config{Without: 1}\nfunc f() { c.Without = 2 }\n",
		},
		want: []string{"group/a.go:3", "group/a.go:4"},
		good: map[string]string{
			"group/a_test.go":    "package group\nimport \"github.com/rebalancer-go/rebalancer/coord\"\nvar c = coord.Config{Without: 1}\n",
			"group/b.go":         "package group\nimport \"github.com/rebalancer-go/rebalancer/coord\"\nvar c = coord.Config{Group: \"g\"}\n",
			"coord/sim/world.go": "package sim\nimport \"github.com/rebalancer-go/rebalancer/coord\"\nvar c = coord.Config{Without: 1}\n",
		},
	}
}
