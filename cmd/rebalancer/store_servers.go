package main

import (
	"context"
	"net/url"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/backends/sqlserver"
	"github.com/rebalancer-go/rebalancer/backends/zookeeper"
)

const redisNote = `-- Redis and Valkey need no schema. A user that can do what the store needs and no more; replace PASSWORD:
`

// redisStores open redis:// and, over TLS, rediss://.
func redisStores() []storeDriver {
	open := func(_ context.Context, u *url.URL, _ bool) (backends.Store, error) { return redis.Open(u.String()) }
	schema := func(u *url.URL) (string, error) { return redisNote + redis.ACL("rebalancer", "") + "\n", nil }
	return []storeDriver{
		{scheme: "redis", form: "redis://host:port/db", open: open, schema: schema},
		{scheme: "rediss", form: "rediss://host:port/db", open: open, schema: schema},
	}
}

// schemaParameter names the schema of the store's tables in the URL of a database. It is not one of the database's own.
const schemaParameter = "rebalancer_schema"

// postgresStores open postgres:// and postgresql://. Whoever joins makes the tables when they are missing and the role may; who looks does not.
func postgresStores() []storeDriver {
	open := func(_ context.Context, u *url.URL, existing bool) (backends.Store, error) {
		u, name := withoutParameter(u, schemaParameter)
		var opts []postgres.Option
		if name != "" {
			opts = append(opts, postgres.Schema(name))
		}
		if !existing {
			opts = append(opts, postgres.CreateSchema())
		}
		return postgres.Open(u.String(), opts...)
	}
	schema := func(u *url.URL) (string, error) {
		_, name := withoutParameter(u, schemaParameter)
		if name == "" {
			name = postgres.DefaultSchema
		}
		text := postgres.DDL(name)
		if role := u.User.Username(); role != "" {
			text += "\n" + postgres.Grants(name, role)
		}
		return text, nil
	}
	return []storeDriver{
		{scheme: "postgres", form: "postgres://user@host/database", open: open, schema: schema},
		{scheme: "postgresql", open: open, schema: schema},
	}
}

// sqlserverStore opens sqlserver://. Whoever joins makes the tables when they are missing and the login may; who looks does not.
func sqlserverStore() storeDriver {
	return storeDriver{
		scheme: "sqlserver", form: "sqlserver://user@host?database=name",
		open: func(_ context.Context, u *url.URL, existing bool) (backends.Store, error) {
			u, name := withoutParameter(u, schemaParameter)
			var opts []sqlserver.Option
			if name != "" {
				opts = append(opts, sqlserver.Schema(name))
			}
			if !existing {
				opts = append(opts, sqlserver.CreateSchema())
			}
			return sqlserver.Open(u.String(), opts...)
		},
		schema: func(u *url.URL) (string, error) {
			_, name := withoutParameter(u, schemaParameter)
			if name == "" {
				name = sqlserver.DefaultSchema
			}
			text := sqlserver.DDL(name)
			if user := u.User.Username(); user != "" {
				text += "\n" + sqlserver.Grants(name, user)
			}
			return text, nil
		},
	}
}

// withoutParameter takes a parameter out of a URL.
func withoutParameter(u *url.URL, name string) (*url.URL, string) {
	q := u.Query()
	value := q.Get(name)
	q.Del(name)
	c := *u
	c.RawQuery = q.Encode()
	return &c, value
}

// zookeeperStore opens zk://h1,h2/chroot.
func zookeeperStore() storeDriver {
	return storeDriver{scheme: "zk", form: "zk://h1,h2/chroot", open: func(_ context.Context, u *url.URL, _ bool) (backends.Store, error) {
		return zookeeper.Open(u.String())
	}}
}
