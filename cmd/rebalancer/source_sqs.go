package main

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/sqs"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqspayload"
)

// sqsSource opens sqs://region: each queue of the account is a resource. Credentials, endpoint, profile and, unless it is given, the region are those of
// the environment and the files that every program of AWS reads.
func sqsSource() sourceDriver {
	return sourceDriver{scheme: "sqs", form: "sqs://[account@][region]", open: openSQS}
}

func openSQS(ctx context.Context, u *url.URL, o sourceOptions) (*openSource, error) {
	c, payloads, err := sqsConfig(u)
	if err != nil {
		return nil, err
	}
	if o.success.stays() || o.failure.stays() {
		return nil, usagef("--on-success and --on-failure: a message of SQS cannot be kept or tagged")
	}
	if o.success.action == "move" {
		return nil, usagef("--on-success is move:%s: a message of SQS that was worked cannot be moved; use delete", o.success.folder)
	}
	if o.failure.action == "move" {
		c.DeadLetter = o.failure.folder
	}
	shared, err := awsConfig(ctx, u, c.Region, "", "write sqs://REGION")
	if err != nil {
		return nil, err
	}
	c.Region = shared.Region
	c.Client, c.Logger = awssqs.NewFromConfig(shared), o.logger
	if payloads {
		c.Payloads = sqspayload.New(s3.NewFromConfig(shared, pathStyle))
	}
	s, err := sqs.New(c)
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	doctor := &sqsDoctor{client: awssqs.NewFromConfig(shared), account: c.Account, redrive: c.Redrive}
	return &openSource{
		Source: s, close: s.Close, examineResource: doctor.queue, path: func(*rebalancer.Message) string { return "" },
		notLocal: "the queues can be reached by nodes on other machines, and all must use one store",
	}, nil
}

// sqsConfig reads the URL. No error shows more of it than its account, its region and the names of its parameters.
func sqsConfig(u *url.URL) (c sqs.Config, payloads bool, err error) {
	if u.Opaque != "" || u.Port() != "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return c, false, usagef("--source %s: the form is sqs://[account@][region]; queues are given by --resource", shown(u))
	}
	if u.User != nil {
		if _, set := u.User.Password(); set {
			return c, false, usagef("--source: credentials do not belong into sqs://; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
		}
		c.Account = u.User.Username()
	}
	c.Region = u.Hostname()
	var errs []error
	for name, values := range u.Query() {
		v, err := values[len(values)-1], error(nil)
		switch name {
		case "visibility":
			c.Visibility, err = seconds(v)
		case "wait":
			c.Wait, err = seconds(v)
		case "linger":
			c.Linger, err = seconds(v)
		case "redrive":
			if c.Redrive, err = strconv.ParseBool(v); err != nil {
				err = errors.New("it must be true or false") // the other one quotes what it was given
			}
		case "payloads":
			payloads, c.KeepPayloads = true, v == "keep"
			if v != "keep" && v != "delete" {
				err = errors.New("it must be delete or keep")
			}
		default:
			err = errors.New("it is not known: use visibility, wait, linger, redrive or payloads")
		}
		if err != nil {
			errs = append(errs, usagef("--source: the parameter %s: %v", name, err))
		}
	}
	return c, payloads, errors.Join(errs...)
}
