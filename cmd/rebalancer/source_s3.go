package main

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/s3"
)

// s3Source opens s3://bucket/base: each prefix below base is a resource, each object in it a message. Credentials, profile and, unless they are
// given, region and endpoint are those of the environment and the files that every program of AWS reads.
func s3Source() sourceDriver {
	return sourceDriver{scheme: "s3", form: "s3://bucket/base", open: openS3}
}

const s3Parameters = "region, endpoint, path_style (true), subtree (true), deletion (probed, conditional or checked)"

func openS3(ctx context.Context, u *url.URL, o sourceOptions) (*openSource, error) {
	c, params, err := s3Config(u, o)
	if err != nil {
		return nil, err
	}
	shared, err := awsConfig(ctx, u, params.region, params.endpoint, "add ?region=REGION")
	if err != nil {
		return nil, err
	}
	client := awss3.NewFromConfig(shared, func(o *awss3.Options) {
		pathStyle(o)
		if params.pathStyle != nil {
			o.UsePathStyle = *params.pathStyle
		}
	})
	c.Client = client
	s, err := s3.New(c)
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	doctor := &s3Doctor{client: client, bucket: c.Bucket, base: c.Base}
	return &openSource{
		Source: s, close: s.Close, examine: doctor.place, examineResource: doctor.prefix,
		notLocal: "the bucket can be reached by nodes on other machines, and all must use one store",
		path: func(m *rebalancer.Message) string {
			if at, ok := m.Native.(*s3.Object); ok {
				return "s3://" + at.Bucket + "/" + at.Key
			}
			return ""
		},
	}, nil
}

// s3Params are the parameters that are for the client.
type s3Params struct {
	region, endpoint string
	pathStyle        *bool
}

// s3Config reads the URL. No error shows more of it than the bucket and the names of its parameters.
func s3Config(u *url.URL, o sourceOptions) (c s3.Config, params s3Params, err error) {
	if u.User != nil {
		return c, params, usagef("--source: credentials do not belong into s3://; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if u.Opaque != "" || u.Port() != "" || u.Host == "" || u.Fragment != "" {
		return c, params, usagef("--source %s: the form is s3://bucket/base; prefixes are given by --resource", shown(u))
	}
	policy, rest, err := pickupPolicy(u.Query(), o)
	c = s3.Config{Bucket: u.Host, Base: strings.Trim(u.Path, "/"), Policy: policy}
	errs := []error{err}
	for _, name := range sortedNames(rest) {
		v, err := rest[name][len(rest[name])-1], error(nil)
		switch name {
		case "region":
			params.region = v
		case "endpoint":
			params.endpoint = v
			if at, bad := url.Parse(v); bad != nil || at.Host == "" || at.User != nil || at.Scheme != "http" && at.Scheme != "https" {
				err = errors.New("it must be like https://host:port, without credentials")
			}
		case "path_style":
			params.pathStyle = aws.Bool(false)
			err = setTruth(params.pathStyle)(v)
		case "subtree":
			err = setTruth(&c.Subtree)(v)
		case "deletion":
			err = oneOf(&c.Deletion, map[string]s3.Deletion{"probed": s3.DeleteProbed, "conditional": s3.DeleteConditional, "checked": s3.DeleteChecked})(v)
		default:
			err = errors.New("it is not known; there are " + s3Parameters + "; " + strings.ReplaceAll(pickupParameters, "\n", " "))
		}
		if err != nil {
			errs = append(errs, usagef("--source: the parameter %s: %v", name, err))
		}
	}
	return c, params, errors.Join(errs...)
}
