//go:build linux

package order

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

const (
	sqsQueues = 3
	sqsKeys   = 12
)

// sqsWorld is FIFO queues on the small SQS, a store, and a group of processes; each process has a front of its own, so that it is known who
// received and who deleted.
type sqsWorld struct {
	fleet
	small  *sqstest.Server // nil on a real server
	server http.Handler
	post   func(queue, key, body string)
	region string
	store  *testserver.RedisServer
	fronts map[*node]*front
}

// front is what a node calls instead of the server.
type front struct {
	name     string
	mu       sync.Mutex
	received map[string]time.Time // by receipt
	frozen   time.Time            // when it was last frozen for longer than the ttl
	stale    []string             // what it deleted although it had been frozen since it received it
}

// to passes calls on to the server.
func (n *front) to(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it hung up
		}
		if call == "DeleteMessageBatch" {
			var in struct {
				Entries []struct{ ReceiptHandle string }
			}
			_ = json.Unmarshal(body, &in) // the server says what is wrong
			n.mu.Lock()
			for _, e := range in.Entries {
				if at := n.received[e.ReceiptHandle]; at.Before(n.frozen) {
					n.stale = append(n.stale, e.ReceiptHandle)
				}
			}
			n.mu.Unlock()
		}
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(strings.NewReader(string(body)))
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, again)
		if call == "ReceiveMessage" {
			var out struct {
				Messages []struct{ ReceiptHandle string }
			}
			_ = json.Unmarshal(answer.Body.Bytes(), &out) // an error has none
			n.mu.Lock()
			for _, m := range out.Messages {
				n.received[m.ReceiptHandle] = time.Now()
			}
			n.mu.Unlock()
		}
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // it may have hung up
	})
}

// onSmall uses the small SQS, which has all rules of FIFO queues.
func (w *sqsWorld) onSmall() {
	w.small, w.region = sqstest.New(), sqstest.Region
	w.server, w.post = w.small.Handler(), func(queue, key, body string) {
		if _, err := w.small.Send(queue, key, body); err != nil {
			w.t.Error(err)
		}
	}
	for i := range sqsQueues {
		w.small.Create(w.queue(i), nil)
	}
}

// onFauxQS uses a server that gives one message of a group at a time.
func (w *sqsWorld) onFauxQS() {
	s := testserver.StartFauxQS(w.t)
	to, err := url.Parse(s.Endpoint())
	if err != nil {
		w.t.Fatal(err)
	}
	w.region = "us-east-1"
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // nodes that die hang up
	w.server = proxy
	c := sqs.New(sqs.Options{Region: w.region, BaseEndpoint: aws.String(s.Endpoint()), Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
	})})
	urls := map[string]*string{}
	for i := range sqsQueues {
		name := w.queue(i)
		out, err := c.CreateQueue(w.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"FifoQueue": "true"}})
		if err != nil {
			w.t.Fatal(err)
		}
		urls[name] = out.QueueUrl
	}
	w.post = func(queue, key, body string) {
		in := &sqs.SendMessageInput{QueueUrl: urls[queue], MessageBody: &body, MessageGroupId: &key, MessageDeduplicationId: aws.String(key + "-" + body)}
		if _, err := c.SendMessage(context.Background(), in); err != nil {
			w.t.Error(err)
		}
	}
}

func newSQSWorld(t *testing.T, server func(*sqsWorld)) *sqsWorld {
	t.Helper()
	w := &sqsWorld{fleet: fleet{t: t, rnd: random(t), lines: filepath.Join(t.TempDir(), "lines")}, fronts: map[*node]*front{}}
	w.command, w.thaws = w.program, w.thawed
	server(w)
	w.store = testserver.StartRedis(t, testserver.Redis, "--appendonly", "yes", "--appendfsync", "always")
	c := exec.Command(binary, "create", "g", "--ttl", ttl.String(), "--store", "redis://"+w.store.Addr())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return w
}

func (w *sqsWorld) queue(i int) string { return fmt.Sprintf("orders%d.fifo", i) }

// program is the command line as a node of its own front and proxies.
func (w *sqsWorld) program(n *node) *exec.Cmd {
	f := &front{name: n.name, received: map[string]time.Time{}}
	w.fronts[n] = f
	server := httptest.NewServer(f.to(w.server))
	w.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	n.broker = testserver.Proxy(w.t, strings.TrimPrefix(server.URL, "http://"))
	n.store = testserver.Proxy(w.t, w.store.Addr())
	args := []string{"consume", "g", "--node", n.name, "--ttl", ttl.String(), "--drain", "3s", "--concurrency", "4", "--on-success", "delete",
		"--source", "sqs://" + w.region + "?visibility=6s&wait=2s", "--store", "redis://" + n.store.Addr()}
	for i := range sqsQueues {
		args = append(args, "--resource", w.queue(i))
	}
	c := exec.Command(binary, args...)
	c.Env = append(os.Environ(), "AWS_ENDPOINT_URL_SQS=http://"+n.broker.Addr(), "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=key",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true")
	return c
}

// thawed notes from when on a node must not delete what it received before.
func (w *sqsWorld) thawed(n *node) {
	f := w.fronts[n]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = time.Now()
}

// faults are one of each kind.
func (w *sqsWorld) faults() []func() string {
	all := []func() string{w.kill, w.freezeLong, w.freezeLong, w.freezeShort, w.cutBroker, w.cutStore, w.roll}
	if w.small != nil {
		all = append(all, w.expire)
	}
	return all
}

// expire ends the visibility of what a queue has in flight, as if the extensions had been lost.
func (w *sqsWorld) expire() string {
	q := w.queue(w.rnd.IntN(sqsQueues))
	w.small.Expire(q)
	return "everything in flight in " + q + " visible again"
}

// send numbers the messages of each key, until it is told to stop.
func (w *sqsWorld) send(stop <-chan struct{}) map[string]int {
	sent := map[string]int{}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return sent
		case <-time.After(5 * time.Millisecond):
		}
		k := i % sqsKeys
		key := fmt.Sprint("key", k)
		sent[key]++
		w.post(w.queue(k%sqsQueues), key, fmt.Sprint(sent[key]))
	}
}

// TestFIFOOrderUnderFaults: for each message group no gap and no step back among first completions, and nothing lost; and who was frozen for longer than its
// ttl deletes nothing that it received before.
func TestFIFOOrderUnderFaults(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(*sqsWorld){"small": (*sqsWorld).onSmall, "fauxqs": (*sqsWorld).onFauxQS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fifoUnderFaults(t, newSQSWorld(t, server))
		})
	}
}

func fifoUnderFaults(t *testing.T, w *sqsWorld) {
	for range 4 {
		w.join()
	}
	stop, sending := make(chan struct{}), make(chan map[string]int)
	go func() { sending <- w.send(stop) }()
	check := newVerifier(t, w.lines)
	if !within(time.Minute, func() bool { check.read(); return len(check.byQueue) == sqsQueues }) {
		t.Errorf("only %v are worked at first", check.byQueue)
	}
	began := time.Now()
	for round := 0; round == 0 || *soak && time.Since(began) < *lasting; round++ {
		deck := w.faults()
		w.rnd.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, fault := range deck {
			w.pause(200*time.Millisecond, time.Second)
			what := fault()
			check.read()
			t.Logf("%6.1f s: %s; %d done, %d again", time.Since(began).Seconds(), what, check.first, check.again)
		}
	}
	close(stop)
	sent := <-sending
	if !within(2*time.Minute, func() bool { return check.complete(sent) }) {
		t.Errorf("not done: %s", strings.Join(check.missing(sent), "\n"))
	}
	for _, f := range check.wrong {
		t.Error(f)
	}
	for _, n := range w.fronts {
		n.mu.Lock()
		if len(n.stale) > 0 {
			t.Errorf("%s deleted %q, received before it was frozen", n.name, n.stale)
		}
		n.mu.Unlock()
	}
	t.Logf("%d messages of %d groups from %v, %d again", check.first, len(sent), check.byQueue, check.again)
}
