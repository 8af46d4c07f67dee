package ftp

import "testing"

// Lines as servers write them. The name is what follows, or the line is refused: a name that lacks a word is that of another file.
func TestListingLines(t *testing.T) {
	t.Parallel()
	c := &ftpConn{}
	for line, want := range map[string]entry{
		// vsftpd, proftpd, pure-ftpd, wu-ftpd
		"-rw-r--r--    1 1000     1000            5 Nov 30 19:16 a.csv":             {name: "a.csv"},
		"-rw-r--r--    1 1000     1000            5 Mar 02  2024 a.csv":             {name: "a.csv"},
		"-rw-r--r--   1 ftp      ftp      73741824 Feb  5 09:03 two  spaces .csv ":  {name: "two  spaces .csv "},
		"-rw-r--r--   1 ftp      ftp      73741824 Feb  5 09:03  begins with one":   {name: " begins with one"},
		"-rw-r--r--+  1 ftp      ftp             0 Feb  5 09:03 2024 13:45 b":       {name: "2024 13:45 b"},
		"-rw-r--r--    1 1000     1000            5 Nov 30 19:16 a -> b":            {name: "a -> b"},
		"drwxr-xr-x    2 1000     1000         4096 Nov 30 19:16 done":              {name: "done", kind: directory},
		"drwxrwsr-t.   2 1000     1000         4096 Nov 30 19:16 .":                 {name: ".", kind: directory},
		"lrwxrwxrwx    1 0        0               7 Jan 01  2020 latest -> a.csv":   {name: "latest -> a.csv", kind: other},
		"prw-r--r--    1 0        0               0 Jan 01  2020 fifo":              {name: "fifo", kind: other},
		"-rw-r--r--    1 1000     1000            5 Nov 30 19:16 \xe9t\xe9":         {name: "\xe9t\xe9"},
		"-rwxrwxrwx   1 owner    group        11384 Dec 24 23:59 IIS in Unix style": {name: "IIS in Unix style"},
		"-rw-r--r-- 1 svc Domain Users 1234 Jan 12 13:45 a group with a space.txt":  {name: "a group with a space.txt"},
		"-rw-r--r-- 1 svc 1234 Jan 12 13:45 without a group":                        {name: "without a group"},
		"-------r--         326  1391972  1392298 Nov 22  1995 NetPresenz":          {name: "NetPresenz"},
		"drwxrwxr-x               folder        2 May 10  1996 network":             {name: "network", kind: directory},
		"-rw-r--r-- 1 u g 1234 2026-01-12 13:45 long-iso with words":                {name: "long-iso with words"},
		"-rw-r--r-- 1 u g 1234 2026-01-12 13:45 +0100 is its name":                  {name: "+0100 is its name"},
		"-rw-r--r-- 1 u g 1234 2026-01-12 13:45 2026 is its name":                   {name: "2026 is its name"},
		"-rw-r--r-- 1 u g 1234 2026-01-12 13:45:07.123456789 +0100 full-iso":        {name: "full-iso"},
		"-rw-r--r-- 1 u g 1234 12. Jan 13:45 in German":                             {name: "in German"},
		"-rw-r--r-- 1 u g 1234 1月 12 13:45 in Chinese":                              {name: "in Chinese"},
		"-rw-r--r-- 1 u g 1234 12 janv. 2024 in French":                             {name: "in French"},
		"-rw-r--r-- 1 u g 1234 01/12/2026 13:45 with slashes":                       {name: "with slashes"},
		"02-03-26  04:05PM       <DIR>          folder of IIS":                      {name: "folder of IIS", kind: directory},
		"12-24-2025  11:00AM            12345 a file.txt":                           {name: "a file.txt"},
		"12-24-2025  11:00AM            12345  begins with one":                     {name: " begins with one"},
		"2025-12-24  23:00                  5 24 hours":                             {name: "24 hours"},
		"24.12.2025  23:00       <JUNCTION>     elsewhere [C:\\x]":                  {name: "elsewhere [C:\\x]", kind: other},
		"-rw-r--r-- 1 u g 1234 1月12日 13時45分 2024 name in Japanese":                  {kind: bogus},
		"-rw-r--r-- 1 u g 1234 Jan 12 yesterday at noon":                            {kind: bogus},
		"-rw-r--r-- 1 u g 1234 12 13 2024 which is the month":                       {kind: bogus},
		"-rw-r--r-- 1 u g big Jan 12 13:45 without a size":                          {kind: bogus},
		"-rw-r--r-- 1 u g 1234 Jan 12 13:45 ":                                       {kind: bogus},
		"-rw-r--r-- 1 u g 1234 Jan 12 13:45":                                        {kind: bogus},
		"-rw-r--r-- 1 u g 1234 Jan 12 13:45 a/b":                                    {kind: bogus},
		"?rw-r--r-- 1 u g 1234 Jan 12 13:45 what is it":                             {kind: bogus},
		"24.12.2025  11:00 AM           12345 a.txt":                                {kind: bogus},
		"12-24-2025  11:00AM            12,345 a.txt":                               {kind: bogus},
		"+i8388621.29609,m824255902,r,s10376,\teplf":                                {kind: bogus},
		"nonsense": {kind: bogus},
		"crw-rw----    1 0        5          4,   0 Jan 01  2020 tty0": {name: "tty0", kind: other},
	} {
		if want.kind == bogus {
			want.name = line
		}
		got, ok := c.parse(line + "\r\n")
		if !ok || got.name != want.name || got.kind != want.kind {
			t.Errorf("%q: %q of kind %d, %v; want %q of kind %d", line, got.name, got.kind, ok, want.name, want.kind)
		}
		if got.info != nil {
			t.Errorf("%q: a time that is not exact was used: %+v", line, got.info)
		}
	}
	for _, line := range []string{"", "total 12", "total 12 "} {
		if e, ok := c.parse(line); ok {
			t.Errorf("%q has the entry %+v", line, e)
		}
	}
}
