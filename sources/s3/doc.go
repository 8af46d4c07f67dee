// Package s3 is the source of Amazon S3 and of stores that speak its protocol: a resource is a prefix of a bucket, and each object below it is
// a message.
//
//	client := awss3.NewFromConfig(cfg) // github.com/aws/aws-sdk-go-v2/service/s3
//	src, err := s3.New(s3.Config{Client: client, Bucket: "orders", Base: "in", Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
//
// # Guarantees
//
// Delivery is at least once, and no object that is there is passed over: each listing is of the whole prefix, and nothing depends on the clock, so that
// objects written late, under earlier keys or within one second are found like all others. What is not needed costs no memory: of a million
// keys that are no messages nothing is kept.
//
// What identifies an object is its key, its ETag, its size and its time. A read asks for the ETag that was listed, and for its version as soon as that is
// known; when a connection drops, it goes on in another one from where it was. It ends without an error only after the last byte, and with
// rebalancer.ErrChanged when the object is not the listed one any more, or vanished. It takes constant memory.
//
// An object is deleted only if it still has its ETag, which the store itself checks; one that was replaced while it was worked stays, and is
// delivered as what it is then. A move is a copy under the same condition, which overwrites nothing, then such a deletion. What fails alone, such as an object
// that is archived, holds nothing else up.
//
// # Failure model
//
//   - Pages of a listing, and reads, that fail for want of an answer are tried again from where they were, beyond the tries of the client. What then fails is
//     reported by Fetch, or by the handler's read; nothing that could not be listed counts as absent.
//   - A process that dies between the end of a handler and the deletion leaves the object, which comes again. One that dies between the two steps of a move
//     leaves the object and its copy: the object comes again, and the next copy has the time in its name.
//   - When nobody knows whether the deletion of a move was carried out, the copy stays. A copy whose answer was lost is taken for what it is by the next try: the
//     same content under the name, written after the object (but not a copy in parts, whose ETag differs: there another copy is made).
//   - A missing bucket is sources.ErrGone. A prefix without keys is an empty resource, as S3 does not know of prefixes.
//
// # Notifications
//
// A Source lists, and what it lists is the truth. Where a bucket tells of new objects through a queue, such as one of SQS, [Notifications] is a source of
// those objects without a listing. It is a source of its own rather than a hint that wakes the lister, because a queue gives each notification to one
// node, which need not be the one that works the prefix.
//
// # Limits
//
//   - Only the newest version of a key is seen. An object that is replaced by one with the same content while it is worked is taken for the same one.
//   - Objects in the classes GLACIER and DEEP_ARCHIVE, and in an archive tier, are reported, and delivered when they are restored.
//   - A key with an empty part, "." or ".." between slashes is reported and not delivered: where keys are taken for paths it leads elsewhere. Other keys are
//     delivered as they are; a handler that makes paths of them must expect any character.
//   - Empty objects whose key ends with a slash, or with _$folder$, mark directories and are no messages.
//   - Directory buckets (S3 Express One Zone) are refused: their listings have no order.
//   - A move above 5 GB is a copy in parts. It takes what describes the object and its tags along, but not access control lists, and its ETag differs.
//   - A store that ignores If-Match in a DELETE is found out when a resource is opened, and refused unless Config.Deletion is DeleteChecked.
//   - At most 8 objects of a resource are settled at once: at 20 ms each a node deletes 400 objects of a prefix in a second. Spread objects over more
//     prefixes for more.
//
// # What becomes what
//
//	Resource   the prefix without Config.Base, without a slash at its end; "." for Base itself
//	ID         name, size, time and ETag
//	Key        the rest of the key; with Config.Subtree it may have slashes
//	Body       nil, use Open
//	Size       of the object
//	Published  LastModified, whole seconds
//	Attempt    counted in memory: a minimum after a move of the resource
//	Native     *Object
//
// # Requests, which are money
//
//	                    LIST                 GET    HEAD   other
//	opening             1                    -      -      1 to 3 DELETE, 1 PUT, once for a Source
//	idle                1 for 1,000 keys, each IdleInterval
//	delivery            of the listing       1 for each Open, and each time that a connection drops
//	Delete()            -                    -      -      1 DELETE (which S3 does not charge for)
//	  DeleteChecked     -                    -      1      1 DELETE
//	MoveTo(folder)      -                    -      1      1 COPY, 1 DELETE
//	  above 5 GB        -                    -      2      3 and 1 for each 512 MiB, 1 DELETE
//	Tag(key, value)     -                    1      2      1 PUT; with versions 1 HEAD
//	Keep()              -                    -      -      -
//	giving up           -                    -      2      1 COPY, 1 PUT (the reason), 1 DELETE
//	done-file           -                    -      1      1 DELETE
//	archived            -                    -      1 a minute
//	StableFor above 0, INTELLIGENT_TIERING   -      1 or more
//
// A LIST costs as much as twelve GETs: an idle prefix that is polled every 15 seconds costs about 0.03 USD a day where 1,000 LISTs cost 0.005,
// and one with a million idle keys a thousand times that. A hand-over opens the resource anew.
//
// # What to set up
//
// The rights: s3:ListBucket on the bucket, s3:GetObject and s3:DeleteObject below the prefixes, and s3:PutObject, which finds out whether deletions
// can be conditional (or set Config.Deletion). Where objects are moved to: s3:PutObject, s3:GetObject, s3:DeleteObject, and s3:ListBucket on that bucket.
// s3:GetObjectTagging and s3:PutObjectTagging for objects with tags and for Tag; s3:AbortMultipartUpload for moves above 5 GB; kms:Decrypt, and for moves
// kms:GenerateDataKey, where objects are encrypted with a key of KMS. In a bucket with versions, a lifecycle rule that ends old ones; and one
// that ends incomplete uploads. Two groups on one prefix are both given its objects.
package s3
