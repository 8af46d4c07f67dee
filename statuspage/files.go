package statuspage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed page
var page embed.FS

// file is one of the page's, ready to be sent.
type file struct {
	kind          string
	tag           string
	plain, zipped []byte
}

// pageFiles are the files by the paths under which they are served.
var pageFiles = sync.OnceValue(func() map[string]file {
	kinds := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
	all := map[string]file{}
	_ = fs.WalkDir(page, "page", func(name string, d fs.DirEntry, _ error) error { // what is embedded can be read
		if d.IsDir() {
			return nil
		}
		b, err := page.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		f := file{kind: kinds[path.Ext(name)] + "; charset=utf-8", tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: b, zipped: zipped(b)}
		at := strings.TrimPrefix(name, "page")
		if at == "/index.html" {
			at = "/{$}"
		}
		all[at] = f
		return nil
	})
	return all
})

// serve sends the file, unless the browser has it.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // ask each time whether it is still the same
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, r, f.plain, f.zipped)
}
