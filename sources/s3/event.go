package s3

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// event is what a notification tells of one object that appeared.
type event struct {
	bucket, key string
}

// errNoEvent is returned for a message that S3 did not send.
var errNoEvent = errors.New("it is no notification of S3: neither records, nor an event of EventBridge, nor one of the two in a message of SNS")

// letterText is a notification in each of its forms.
type letterText struct {
	Event   string // s3:TestEvent
	Records []struct {
		Source string `json:"eventSource"`
		Name   string `json:"eventName"`
		S3     struct {
			Bucket bucketText `json:"bucket"`
			Object objectText `json:"object"`
		} `json:"s3"`
	}

	// Of SNS.
	Type, Message string

	// Of EventBridge.
	Source     string `json:"source"`
	DetailType string `json:"detail-type"`
	Detail     struct {
		Bucket bucketText `json:"bucket"`
		Object objectText `json:"object"`
	} `json:"detail"`
}

type bucketText struct {
	Name string `json:"name"`
}

type objectText struct {
	Key string `json:"key"`
}

// parseEvents reads a notification: each object that appeared, was copied or was restored; none for a test, or for what happens to others.
func parseEvents(text []byte) ([]event, error) {
	var l letterText
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, errNoEvent
	}
	if l.Type == "Notification" && l.Message != "" {
		inner := []byte(l.Message)
		if l = (letterText{}); json.Unmarshal(inner, &l) != nil {
			return nil, errNoEvent
		}
	}
	switch {
	case l.Event == "s3:TestEvent":
		return nil, nil
	case l.Source == "aws.s3" && l.DetailType != "":
		if l.DetailType != "Object Created" && l.DetailType != "Object Restore Completed" {
			return nil, nil
		}
		return []event{{l.Detail.Bucket.Name, l.Detail.Object.Key}}, nil
	case len(l.Records) == 0:
		return nil, errNoEvent
	}
	var events []event
	for _, r := range l.Records {
		if r.S3.Object.Key == "" || r.S3.Bucket.Name == "" {
			return nil, errNoEvent
		}
		name := strings.TrimPrefix(r.Name, "s3:")
		if !strings.HasPrefix(name, "ObjectCreated:") && name != "ObjectRestore:Completed" {
			continue
		}
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil {
			return nil, fmt.Errorf("the key %q of a record is not encoded as S3 does: %w", r.S3.Object.Key, err)
		}
		events = append(events, event{r.S3.Bucket.Name, key})
	}
	return events, nil
}
