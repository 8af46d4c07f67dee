//go:build linux

package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// head is the first line of each body: what the rest must be.
type head struct {
	Version string // of all that were ever uploaded, the only one of that name
	Length  int
	Sum     string
}

// next is the version that replaces one while it is read; "" for one that is not replaced.
func (h head) next() string {
	if strings.HasSuffix(h.Version, replaced) {
		return h.Version + "2"
	}
	return ""
}

// replaced ends the versions that a handler replaces while it reads them.
const replaced = "-replaced"

// body makes the body of a version. Its length is different for the next version too: over FTP and SFTP a file is known by its size and its time in
// seconds.
func body(version string, length int) []byte {
	sum := sha256.Sum256([]byte(version))
	rest := bytes.Repeat(sum[:], length/len(sum)+1)[:length]
	all := sha256.Sum256(rest)
	line, err := json.Marshal(head{Version: version, Length: length, Sum: hex.EncodeToString(all[:])})
	if err != nil {
		panic(err) // it marshals
	}
	return append(append(line, '\n'), rest...)
}

// parse checks that a body is whole.
func parse(b []byte) (head, error) {
	var h head
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return h, errors.New("no first line")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, err
	}
	sum := sha256.Sum256(rest)
	if len(rest) != h.Length || hex.EncodeToString(sum[:]) != h.Sum {
		return h, fmt.Errorf("%d bytes of %d, or others", len(rest), h.Length)
	}
	return h, nil
}

func TestBody(t *testing.T) {
	t.Parallel()
	whole := body("v", 1000)
	if h, err := parse(whole); err != nil || h.Version != "v" {
		t.Errorf("%+v, %v", h, err)
	}
	other := bytes.Clone(whole)
	other[len(other)-1]++
	for _, b := range [][]byte{whole[:len(whole)-1], whole[:10], nil, append(whole, 'x'), other} {
		if _, err := parse(b); err == nil {
			t.Errorf("%d bytes are whole", len(b))
		}
	}
}
