// Package postgres is a store in a schema of a PostgreSQL database, 15 or newer.
package postgres
