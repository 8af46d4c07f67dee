package files

import (
	"fmt"
	"path"
	"strings"
)

// star is a pattern with one *, which stands for the name of another file. In a tree it is about the last part of a name: what
// belongs together is in one folder.
type star struct{ before, after string }

func parseStar(pattern string) star {
	before, after, _ := strings.Cut(pattern, "*")
	return star{before, after}
}

// with is the name that belongs to another one.
func (s star) with(name string) string {
	dir, name := path.Split(name)
	return dir + s.before + name + s.after
}

// of is what the * stands for in a name, if the pattern fits.
func (s star) of(name string) (string, bool) {
	dir, name := path.Split(name)
	if len(name) <= len(s.before)+len(s.after) || !strings.HasPrefix(name, s.before) || !strings.HasSuffix(name, s.after) {
		return "", false
	}
	return dir + name[len(s.before):len(name)-len(s.after)], true
}

// companion is a second file that each file must have: a done-file or a checksum file.
type companion struct {
	star
	checksum bool
}

// oneStar checks a pattern of a file name with one *.
func oneStar(field, pattern, example string) error {
	if strings.Count(pattern, "*") != 1 || pattern == "*" || strings.Contains(pattern, "/") {
		return fmt.Errorf("%s is %q, must be a file name with one * for the name of the file, like %q", field, pattern, example)
	}
	return nil
}

// complete makes what Options say of names ready for use.
func (o *Options) complete() (errs []error) {
	if o.DoneFile != "" {
		errs = append(errs, oneStar("DoneFile", o.DoneFile, "*.done"))
		o.companions = append(o.companions, companion{star: parseStar(o.DoneFile)})
	}
	if o.ChecksumFile != "" {
		errs = append(errs, oneStar("ChecksumFile", o.ChecksumFile, "*.sha256"))
		o.companions = append(o.companions, companion{star: parseStar(o.ChecksumFile), checksum: true})
	}
	if o.DoneFile != "" && o.DoneFile == o.ChecksumFile {
		errs = append(errs, fmt.Errorf("DoneFile and ChecksumFile are both %q, must differ", o.DoneFile))
	}
	if o.Trigger != "" && (!sound(o.Trigger) || strings.HasPrefix(o.Trigger, ours)) {
		errs = append(errs, fmt.Errorf("TriggerFile is %q, must be the name of a file", o.Trigger))
	}
	if len(o.Set) == 1 {
		errs = append(errs, fmt.Errorf("the Set has one pattern, must have none or at least two"))
	}
	for i, p := range o.Set {
		errs = append(errs, oneStar("Set", p, "*.xml"))
		o.set = append(o.set, parseStar(p))
		for _, before := range o.Set[:i] {
			if p == before {
				errs = append(errs, fmt.Errorf("the Set has %q twice", p))
			}
		}
	}
	return errs
}

// member tells which pattern of the set a name belongs to, and what its * stands for; -1 for none.
func (o *Options) member(name string) (int, string) {
	best, key := -1, ""
	for i, s := range o.set {
		if k, ok := s.of(name); ok && (best < 0 || len(k) < len(key)) {
			best, key = i, k
		}
	}
	return best, key
}

// beside is a companion of one of the files of a message.
type beside struct {
	part
	of       string // the name of that file
	checksum bool
}

// besides are what must stand beside the files of a message: a checksum file beside each, a done-file beside the one that leads.
func (o *Options) besides(f *file) []beside {
	var all []beside
	for p := range f.parts() {
		for _, c := range o.companions {
			if c.checksum || p == &f.part {
				all = append(all, beside{part: part{name: c.with(p.name)}, of: p.name, checksum: c.checksum})
			}
		}
	}
	return all
}

// checksumOf returns the checksum file of one of the files of a message as it was observed, which later observations leave as it
// is; nil when none is asked for.
func (f *file) checksumOf(name string) *part {
	for _, b := range f.beside {
		if b.checksum && b.of == name {
			p := b.part
			return &p
		}
	}
	return nil
}

// released tells whether the done-file is for what the file is now. One that is older than its file was written for what had the
// name before: its file came anew since.
func (f *file) released() bool {
	for i := range f.beside {
		if b := &f.beside[i]; !b.checksum && b.info.ModTime.Before(f.info.ModTime) {
			return false
		}
	}
	return true
}
