package arch

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	linkInPage    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingInPage = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	codeInPage    = regexp.MustCompile("(?s)```.*?```")
	noAnchor      = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// deadLinks finds links of pages to files and headings that are not there.
func deadLinks(root fs.FS) ([]string, error) {
	var bad []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && len(name) > 1 && strings.HasPrefix(path.Base(name), ".") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		page, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, m := range linkInPage.FindAllStringSubmatch(codeInPage.ReplaceAllString(string(page), ""), -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.Scheme != "" {
				continue
			}
			target := name
			if u.Path != "" {
				target = path.Join(path.Dir(name), u.Path)
			}
			if _, err := fs.Stat(root, target); err != nil || u.Fragment != "" && !hasHeading(root, target, u.Fragment) {
				bad = append(bad, name+": "+m[1])
			}
		}
		return nil
	})
	return bad, err
}

// hasHeading tells whether a page has a heading that the anchor means.
func hasHeading(root fs.FS, page, anchor string) bool {
	text, err := fs.ReadFile(root, page)
	if err != nil {
		return false
	}
	for _, m := range headingInPage.FindAllStringSubmatch(codeInPage.ReplaceAllString(string(text), ""), -1) {
		if strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Pages link to what is there.
func TestLinks(t *testing.T) {
	t.Parallel()
	bad, err := deadLinks(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bad {
		t.Errorf("%s: it leads nowhere", b)
	}
	found, err := deadLinks(fstest.MapFS{
		"a.md":   {Data: []byte("# A b, c\n[1](#a-b-c) [2](d/b.md#x) [3](https://example.com/none.md) [4](d)\n```\n[5](none.md)\n```\n")},
		"d/b.md": {Data: []byte("## X\n[6](../a.md) [7](c.md) [8](../a.md#d) [9](#y)\n")},
	})
	if want := "d/b.md: c.md, d/b.md: ../a.md#d, d/b.md: #y"; err != nil || strings.Join(found, ", ") != want {
		t.Errorf("of an example: %v, %v, want %s", found, err, want)
	}
}
