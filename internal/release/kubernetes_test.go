package release

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// What the manifests use of Kubernetes, and no more: a key that is misspelt is one that is not known.
type (
	object struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   meta              `yaml:"metadata"`
		Type       string            `yaml:"type"`
		Data       map[string]string `yaml:"data"`
		StringData map[string]string `yaml:"stringData"`
		Spec       spec              `yaml:"spec"`
	}
	meta struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	}
	spec struct {
		ClusterIP           string    `yaml:"clusterIP"`
		Ports               []port    `yaml:"ports"`
		Selector            yaml.Node `yaml:"selector"`
		Replicas            int       `yaml:"replicas"`
		ServiceName         string    `yaml:"serviceName"`
		PodManagementPolicy string    `yaml:"podManagementPolicy"`
		UpdateStrategy      strategy  `yaml:"updateStrategy"`
		Strategy            strategy  `yaml:"strategy"`
		MaxUnavailable      int       `yaml:"maxUnavailable"`
		Template            struct {
			Metadata meta `yaml:"metadata"`
			Spec     pod  `yaml:"spec"`
		} `yaml:"template"`
	}
	port struct {
		Name          string `yaml:"name"`
		Port          int    `yaml:"port"`
		ContainerPort int    `yaml:"containerPort"`
	}
	strategy struct {
		Type          string `yaml:"type"`
		RollingUpdate *struct {
			MaxSurge       int `yaml:"maxSurge"`
			MaxUnavailable int `yaml:"maxUnavailable"`
		} `yaml:"rollingUpdate"`
	}
	pod struct {
		Grace          int         `yaml:"terminationGracePeriodSeconds"`
		Automount      *bool       `yaml:"automountServiceAccountToken"`
		Security       security    `yaml:"securityContext"`
		Containers     []container `yaml:"containers"`
		Volumes        []volume    `yaml:"volumes"`
		ServiceAccount string      `yaml:"serviceAccountName"`
	}
	security struct {
		RunAsNonRoot             bool                `yaml:"runAsNonRoot"`
		RunAsUser                int                 `yaml:"runAsUser"`
		RunAsGroup               int                 `yaml:"runAsGroup"`
		FSGroup                  int                 `yaml:"fsGroup"`
		Seccomp                  map[string]string   `yaml:"seccompProfile"`
		AllowPrivilegeEscalation *bool               `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool                `yaml:"readOnlyRootFilesystem"`
		Capabilities             map[string][]string `yaml:"capabilities"`
	}
	container struct {
		Name      string                       `yaml:"name"`
		Image     string                       `yaml:"image"`
		Command   []string                     `yaml:"command"`
		Args      []string                     `yaml:"args"`
		Env       []env                        `yaml:"env"`
		Ports     []port                       `yaml:"ports"`
		Startup   *probe                       `yaml:"startupProbe"`
		Liveness  *probe                       `yaml:"livenessProbe"`
		Readiness *probe                       `yaml:"readinessProbe"`
		Resources map[string]map[string]string `yaml:"resources"`
		Security  security                     `yaml:"securityContext"`
		Mounts    []struct {
			Name     string `yaml:"name"`
			Path     string `yaml:"mountPath"`
			ReadOnly bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	env struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom struct {
			FieldRef map[string]string `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	probe struct {
		HTTPGet struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
		Period    int `yaml:"periodSeconds"`
		Threshold int `yaml:"failureThreshold"`
	}
	volume struct {
		Name      string `yaml:"name"`
		ConfigMap struct {
			Name string `yaml:"name"`
		} `yaml:"configMap"`
		Secret struct {
			Name string `yaml:"secretName"`
			Mode int    `yaml:"defaultMode"`
		} `yaml:"secret"`
		EmptyDir map[string]string `yaml:"emptyDir"`
	}
)

// manifests are the objects of a file, by kind. A key that is not known, or stands twice, is an error.
func manifests(t *testing.T, file string) map[string]object {
	t.Helper()
	out := map[string]object{}
	d := yaml.NewDecoder(strings.NewReader(read(t, filepath.Join("examples/kubernetes", file))))
	d.KnownFields(true)
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		versions := map[string]string{"ConfigMap": "v1", "Secret": "v1", "Service": "v1", "StatefulSet": "apps/v1", "Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1"}
		if o.APIVersion != versions[o.Kind] || o.Metadata.Name == "" || out[o.Kind].Kind != "" {
			t.Errorf("%s: %s %s %q", file, o.APIVersion, o.Kind, o.Metadata.Name)
		}
		out[o.Kind] = o
	}
}

// TestManifests: what refers to each other is there, the program understands what it is given, and the pods may no more than they need.
func TestManifests(t *testing.T) {
	t.Parallel()
	common := manifests(t, "common.yaml")
	binary := build(t)
	config := filepath.Join(t.TempDir(), "rebalancer.yaml")
	if err := os.WriteFile(config, []byte(common["ConfigMap"].Data["rebalancer.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"store-password", "source-password"} {
		if common["Secret"].StringData[key] == "" || !strings.Contains(common["ConfigMap"].Data["rebalancer.yaml"], "/etc/orders/secret/"+key) {
			t.Errorf("the secret %s is not used", key)
		}
	}
	for file, kind := range map[string]string{"statefulset.yaml": "StatefulSet", "deployment.yaml": "Deployment"} {
		all := manifests(t, file)
		set, budget := all[kind].Spec, all["PodDisruptionBudget"].Spec
		p := set.Template.Spec
		if len(p.Containers) != 1 || set.Replicas < 2 || budget.MaxUnavailable != 1 {
			t.Fatalf("%s: %d containers, %d replicas, %d unavailable", file, len(p.Containers), set.Replicas, budget.MaxUnavailable)
		}
		c := p.Containers[0]
		for what, s := range map[string]yaml.Node{"the set": set.Selector, "the budget": budget.Selector} {
			var sel struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			if err := s.Decode(&sel); err != nil || sel.MatchLabels["app"] == "" || sel.MatchLabels["app"] != set.Template.Metadata.Labels["app"] {
				t.Errorf("%s: %s selects %v: %v", file, what, sel.MatchLabels, err)
			}
		}
		if kind == "StatefulSet" && (all["Service"].Metadata.Name != set.ServiceName || !slices.Contains(c.Args, "--static")) {
			t.Errorf("%s: service %q, arguments %q", file, set.ServiceName, c.Args)
		}
		checkPod(t, file, p, common)
		checkArguments(t, file, binary, config, c, p.Grace)
	}
}

// checkPod looks at rights, probes, and what is mounted.
func checkPod(t *testing.T, file string, p pod, common map[string]object) {
	t.Helper()
	c := p.Containers[0]
	s := c.Security
	if !p.Security.RunAsNonRoot || p.Security.RunAsUser == 0 || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities["drop"], []string{"ALL"}) || p.Automount == nil || *p.Automount {
		t.Errorf("%s: the pod may more than it needs: %+v %+v", file, p.Security, s)
	}
	for name, pr := range map[string]*probe{"/livez startup": c.Startup, "/livez liveness": c.Liveness, "/readyz readiness": c.Readiness} {
		if pr == nil || pr.HTTPGet.Path != strings.Fields(name)[0] || !slices.ContainsFunc(c.Ports, func(p port) bool { return p.Name == pr.HTTPGet.Port }) {
			t.Errorf("%s: the probe of %s: %+v", file, name, pr)
		}
	}
	var volumes []string
	for _, v := range p.Volumes {
		volumes = append(volumes, v.Name)
		if v.ConfigMap.Name != "" && v.ConfigMap.Name != common["ConfigMap"].Metadata.Name || v.Secret.Name != "" && v.Secret.Name != common["Secret"].Metadata.Name {
			t.Errorf("%s: the volume %s is of nothing", file, v.Name)
		}
	}
	for _, m := range c.Mounts {
		if !slices.Contains(volumes, m.Name) {
			t.Errorf("%s: %s is mounted, and is no volume", file, m.Name)
		}
	}
}

// checkArguments has the program read its arguments and its configuration.
func checkArguments(t *testing.T, file, binary, config string, c container, grace int) {
	t.Helper()
	args := slices.Concat(c.Command[1:], []string{"--print-config"}, c.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$(POD_NAME)", "orders-0")
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = []string{"REBALANCER_CONFIG=" + config}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v: %s", file, err, errs.String())
	}
	lines := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		if f := strings.Fields(line); len(f) > 1 {
			lines[f[0]] = f[1]
		}
	}
	if lines["node"] != "orders-0" || lines["health"] != ":8081" || lines["drain"] != "20s" || grace <= 25 {
		t.Errorf("%s: grace %d s\n%s", file, grace, out)
	}
	if !slices.ContainsFunc(c.Env, func(e env) bool {
		return e.Name == "REBALANCER_CONFIG" && strings.HasSuffix(e.Value, "/rebalancer.yaml")
	}) {
		t.Errorf("%s: the program is not told of its configuration", file)
	}
}
