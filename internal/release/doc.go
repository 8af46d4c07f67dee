// Package release has no code: its tests hold what a release is made of (the image, the workflow, the manifests for Kubernetes) against what exists,
// as far as that can be done without the services that use it.
package release
