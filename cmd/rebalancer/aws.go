package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// awsConfig is the configuration that every program of AWS reads from its environment and files, but for what is given. add says how the URL u names a region.
func awsConfig(ctx context.Context, u *url.URL, region, endpoint, add string) (aws.Config, error) {
	// Each request that waits has a connection; the ten of a kind that are kept by default are soon too few.
	many := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 100 })
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(many)}
	if region != "" {
		load = append(load, config.WithRegion(region))
	}
	if endpoint != "" {
		load = append(load, config.WithBaseEndpoint(endpoint))
	}
	shared, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return aws.Config{}, &kindError{errUsage, "--source: the configuration of AWS: " + err.Error()}
	}
	if shared.Region == "" {
		return aws.Config{}, usagef("--source %s: no region: %s, or set AWS_REGION", shown(u), add)
	}
	return shared, nil
}

// pathStyle: an endpoint of one's own seldom has a host name for each bucket.
func pathStyle(o *s3.Options) { o.UsePathStyle = aws.ToString(o.BaseEndpoint) != "" }
