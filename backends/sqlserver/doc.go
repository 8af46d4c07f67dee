// Package sqlserver is a store in a schema of a SQL Server database, 2016 or newer, or Azure SQL. It is experimental: see the README for the server
// that its suite was last run on.
package sqlserver
