//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// TestRuns: prefixes that match are found, and their objects worked and moved.
func TestRuns(t *testing.T) {
	server, db := testserver.StartVersityGW(t), testserver.StartPostgres(t, 15)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.Endpoint(), "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": server.Access, "AWS_SECRET_ACCESS_KEY": server.Secret, "AWS_PROFILE": "",
	} {
		t.Setenv(k, v)
	}
	url := db.URL("postgres", "")
	store, err := postgres.Open(url, postgres.CreateSchema())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := admin.Create(t.Context(), store, "customers", admin.Settings{TTL: group.DefaultTTL, Origin: "discovered"}); err != nil { // or the first start waits for a ttl
		t.Fatal(err)
	}
	shared, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := awss3.NewFromConfig(shared, func(o *awss3.Options) { o.UsePathStyle = true })
	bucket := aws.String("files")
	if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: bucket}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"incoming/customer-1/a", "incoming/customer-2/b", "incoming/other/c"} {
		if _, err := client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader("hello")}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	worked := make(chan string, 10)
	err = run(ctx, url, []string{"files", "incoming", "customer-*"}, func(format string, args ...any) {
		if worked <- fmt.Sprintf(format, args...); len(worked) == 2 {
			cancel()
		}
	})
	if err != nil || len(worked) != 2 {
		t.Errorf("%v: %d worked", err, len(worked))
	}
	out, err := client.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	if got := strings.Join(keys, " "); got != "done/customer-1/a done/customer-2/b incoming/other/c" {
		t.Errorf("objects %s", got)
	}
}
