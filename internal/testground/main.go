// Command testground prints the version of SQLite that the tests run on.
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

func main() {
	db, err := sql.Open("sqlite", ":memory:")
	if err == nil {
		var version string
		if err = db.QueryRow("SELECT sqlite_version()").Scan(&version); err == nil {
			fmt.Println(version)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "testground:", err)
	os.Exit(1)
}
