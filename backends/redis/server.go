package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
)

const (
	// oldest is the first version of Redis whose scripts are refused as a whole before they begin, never in the middle.
	oldest = 7
	// inspectEvery spares a server that many sessions are opened on at once.
	inspectEvery = 10 * time.Second
	// unknownLag is min-replicas-max-lag where CONFIG is forbidden: the server's default.
	unknownLag = 10 * time.Second
	// lagMargin is how much later than its max-lag a server may notice that its replicas are gone.
	lagMargin = 3 * time.Second
)

// seen is what the store knows of its servers.
type seen struct {
	noInfo atomic.Bool
	delay  atomic.Int64 // µs by which a new incarnation begins later

	mu sync.Mutex
	at map[string]time.Time // last inspection, by first key of the space
}

// server is the state of one master.
type server struct {
	name        string // Redis or Valkey
	version     string // of itself
	speaks      string // version of Redis that it is compatible with
	role        string
	replicas    int
	minReplicas int
	maxLag      time.Duration
	maxMemory   int64
	policy      string
	persists    bool   // it has an append-only file
	fsync       string // when that is written to the disk; "" where it is not told
	noInfo      bool
	noConfig    bool
}

// inspectFor looks at the server that has the group, and refuses one that cannot keep it.
func (s *Store) inspectFor(ctx context.Context, sp space) error {
	s.seen.mu.Lock()
	fresh := time.Since(s.seen.at[sp.keys[0]]) < inspectEvery
	s.seen.mu.Unlock()
	if fresh {
		return nil
	}
	var found server
	err := s.within(ctx, func(ctx context.Context) error {
		var node redis.UniversalClient = s.client
		if c, ok := s.client.(*redis.ClusterClient); ok {
			master, err := c.MasterForKey(ctx, sp.keys[0])
			if err != nil {
				return err
			}
			node = master
		}
		got, err := inspect(ctx, node)
		if err == nil {
			found = got
		}
		return err
	})
	if err != nil {
		return s.wrap(err)
	}
	s.reached.Store(true)
	if err := found.unfit(); err != nil {
		return s.wrap(fmt.Errorf("%w: %w", backends.ErrFatal, err))
	}
	s.seen.noInfo.Store(found.noInfo)
	s.seen.delay.Store(found.delay().Microseconds())
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if s.seen.at == nil {
		s.seen.at = map[string]time.Time{}
	}
	s.seen.at[sp.keys[0]] = time.Now()
	return nil
}

// inspect asks a server about itself, as far as its rights allow.
func inspect(ctx context.Context, c redis.UniversalClient) (server, error) {
	p := c.Pipeline()
	info := p.Info(ctx)
	config := p.Do(ctx, "config", "get", "maxmemory", "maxmemory-policy", "min-replicas-to-write", "min-replicas-max-lag", "appendfsync")
	var sv server
	if err := sent(p.Exec(ctx)); err != nil {
		return sv, err
	}
	text, err := info.Result()
	if sv.noInfo = forbidden(err); err != nil && !sv.noInfo {
		return sv, err
	}
	settings, err := config.Result()
	sv.noConfig = err != nil // also of a version that is too old for the question
	sv.read(fields(text), pairs(settings))
	return sv, nil
}

// pairs are names and values as the second and the third version of the protocol give them.
func pairs(raw any) map[string]string {
	out := map[string]string{}
	switch raw := raw.(type) {
	case []any:
		for i := 0; i+1 < len(raw); i += 2 {
			out[fmt.Sprint(raw[i])] = fmt.Sprint(raw[i+1])
		}
	case map[any]any:
		for name, value := range raw {
			out[fmt.Sprint(name)] = fmt.Sprint(value)
		}
	}
	return out
}

// forbidden tells of a command that the user has no right to, or that a provider has taken away.
func forbidden(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command")
}

// fields are the lines name:value of INFO.
func fields(info string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[name] = value
		}
	}
	return out
}

func (sv *server) read(info, config map[string]string) {
	number := func(m map[string]string, name string) int64 {
		n, _ := strconv.ParseInt(m[name], 10, 64) // 0 where it is not told
		return n
	}
	sv.name, sv.version, sv.speaks, sv.role = "Redis", info["redis_version"], info["redis_version"], info["role"]
	if v := info["valkey_version"]; v != "" {
		sv.name, sv.version = "Valkey", v
	}
	sv.replicas = int(number(info, "connected_slaves"))
	sv.maxMemory, sv.policy = number(info, "maxmemory"), info["maxmemory_policy"]
	sv.persists, sv.fsync = info["aof_enabled"] == "1", config["appendfsync"]
	if sv.noInfo {
		sv.maxMemory, sv.policy = number(config, "maxmemory"), config["maxmemory-policy"]
	}
	sv.minReplicas = int(number(config, "min-replicas-to-write"))
	sv.maxLag = time.Duration(number(config, "min-replicas-max-lag")) * time.Second
	if _, told := info["min_slaves_good_slaves"]; sv.noConfig && told {
		sv.minReplicas, sv.maxLag = 1, unknownLag // at least
	}
}

// unfit is why no group may be kept there.
func (sv *server) unfit() error {
	var errs []error
	if major, _, _ := strings.Cut(sv.speaks, "."); sv.speaks != "" {
		if n, err := strconv.Atoi(major); err == nil && n < oldest {
			errs = append(errs, fmt.Errorf("the server has version %s: Redis 7.0 or newer, or Valkey, is needed", sv.speaks))
		}
	}
	if sv.maxMemory > 0 && sv.policy != "" && sv.policy != "noeviction" {
		errs = append(errs, fmt.Errorf("maxmemory-policy is %s with a limit of %d bytes, so the server may drop claims: set it to noeviction, or use a server of its own",
			sv.policy, sv.maxMemory))
	}
	return errors.Join(errs...)
}

// delay is for how long a server that was replaced may go on acknowledging.
func (sv *server) delay() time.Duration {
	if sv.minReplicas > 0 && sv.maxLag > 0 {
		return sv.maxLag + lagMargin
	}
	return 0
}

// Version is the name and version of the server, or of the masters where they differ.
func (s *Store) Version(ctx context.Context) (string, error) {
	found, err := s.inspected(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, sv := range found {
		if sv.noInfo {
			names = append(names, "Redis or Valkey of a version that INFO would tell")
		} else {
			names = append(names, sv.name+" "+sv.version)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", "), nil
}

// Warnings tells what of the set-up weakens the promises, in sentences for people; none when all is well. It asks every master.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	found, err := s.inspected(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		sv := found[name]
		for _, w := range sv.warnings(s.replicas, s.name == sentinel) {
			all = append(all, "redis server "+name+": "+w)
		}
	}
	return all, nil
}

// inspected is the state of every master, by address.
func (s *Store) inspected(ctx context.Context) (found map[string]server, _ error) {
	err := s.within(ctx, func(ctx context.Context) error {
		got, err := s.inspectAll(ctx)
		if err == nil {
			found = got
		}
		return err
	})
	if err != nil {
		return nil, s.wrap(err)
	}
	return found, nil
}

func (s *Store) inspectAll(ctx context.Context) (map[string]server, error) {
	found := map[string]server{}
	c, ok := s.client.(*redis.ClusterClient)
	if !ok {
		sv, err := inspect(ctx, s.client)
		found[s.name] = sv
		return found, err
	}
	var mu sync.Mutex
	err := c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		sv, err := inspect(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		found[c.Options().Addr] = sv
		return err
	})
	return found, err
}

// warnings are those of one master. Sentinel may promote a replica that is not connected.
func (sv *server) warnings(waits int, bySentinel bool) []string {
	var out []string
	if err := sv.unfit(); err != nil {
		out = append(out, strings.Split(err.Error(), "\n")...)
	}
	if sv.noInfo {
		out = append(out, "INFO is forbidden: restarts and failovers that lose writes cannot be seen; give the user the right to it")
	}
	if sv.noConfig {
		out = append(out, "CONFIG GET is forbidden: what becomes of writes in a failover is not known for certain")
	}
	need := (sv.replicas + 1) / 2
	if bySentinel {
		need = max(need, 1)
	}
	switch have := max(waits, sv.minReplicas); {
	case sv.role == "slave":
		out = append(out, "it is a replica: connect to the master, or through Sentinel")
	case have < need && sv.noInfo:
	case have < need:
		out = append(out, fmt.Sprintf("unsafe under failover: it has %d replicas and confirms writes with %d of them, so a master that is cut off goes on beside the one "+
			"that is promoted: set min-replicas-to-write to %d on every server, or use WithReplicas(%d) on every node", sv.replicas, have, need, need))
	}
	switch {
	case sv.noInfo:
	case !sv.persists:
		out = append(out, "it has no append-only file: a restart loses checkpoints, registered resources and settings, and everybody waits the grace; set appendonly to yes")
	case sv.fsync != "" && sv.fsync != "always":
		out = append(out, "appendfsync is "+sv.fsync+": a crash of its machine may lose the last checkpoints, whose work is then done again; set it to always")
	}
	return out
}
