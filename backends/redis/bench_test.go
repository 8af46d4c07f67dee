package redis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func BenchmarkStore(b *testing.B) {
	for _, kind := range []testserver.RedisKind{testserver.Redis, testserver.Valkey} {
		b.Run(string(kind), func(b *testing.B) {
			storetest.Benchmark(b, connect(b, testserver.StartRedis(b, kind).Addr()))
		})
	}
}

// What the client takes for a round trip by itself, and for a hash with an expiry.
func BenchmarkRawClient(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: testserver.StartRedis(b, testserver.Redis).Addr()})
	defer client.Close()
	b.Run("Ping", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := client.Ping(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := client.Set(b.Context(), "k", "value", 0).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	script := redis.NewScript("#!lua\nredis.call('SET', KEYS[1], ARGV[1]) return redis.call('TIME')")
	b.Run("Script", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := script.Run(b.Context(), client, []string{"k"}, "value").Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
