package cli

import (
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

const deployed = "../../deploy/"

func deployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(deployed + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parseAs parses a command line with an environment, as the program does, and reports an unknown flag, an unknown variable or an
// invalid value.
func parseAs(t *testing.T, where string, args []string, env map[string]string) *grammar {
	t.Helper()
	p := newProgram(nil, io.Discard, io.Discard)
	known, err := p.allSettings()
	if err != nil {
		t.Fatal(err)
	}
	foreign := []string{"PATH", "PGPASSWORD", "GOMEMLIMIT"}
	for name, value := range env {
		if known[setting(name)] == nil && !slices.Contains(foreign, name) {
			t.Errorf("%s sets %s, which is no setting", where, name)
		}
		p.env[name] = value
	}
	// The file of the package is installed there.
	for i, arg := range args {
		args[i] = strings.Replace(arg, "/etc/holdfast/", deployed+"debian/", 1)
	}
	var g grammar
	parser, err := p.parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.parse(parser, args); err != nil {
		t.Errorf("%s runs %q, which fails: %v", where, args, err)
	}
	return &g
}

// directives returns the values of the directives of a systemd unit.
func directives(t *testing.T, text string) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Errorf("the unit has the line %q", line)
		}
		all[name] = append(all[name], value)
	}
	return all
}

// The systemd unit uses flags that exist, and gives the server more time to stop than the server takes.
func TestTheSystemdUnit(t *testing.T) {
	testlevel.OneGoroutine(t)
	unit := directives(t, deployFile(t, "systemd/holdfast.service"))
	if len(unit["ExecStart"]) != 1 {
		t.Fatalf("ExecStart is %q", unit["ExecStart"])
	}
	command := strings.Fields(unit["ExecStart"][0])
	if command[0] != "/usr/bin/holdfast" || command[1] != "serve" {
		t.Errorf("the unit runs %q", command)
	}
	g := parseAs(t, "the systemd unit", command[1:], nil)
	if g.Serve.DB != "sqlite:/var/lib/"+unit["StateDirectory"][0]+"/holdfast.db" || unit["WorkingDirectory"][0] != "/var/lib/"+unit["StateDirectory"][0] {
		t.Errorf("the database of the package is %s, and the unit may write to %s", g.Serve.DB, unit["StateDirectory"])
	}
	if stop, err := time.ParseDuration(unit["TimeoutStopSec"][0]); err != nil || stop < g.Serve.ShutdownTimeout+10*time.Second {
		t.Errorf("systemd kills the server after %s, which drains requests for %s: %v", stop, g.Serve.ShutdownTimeout, err)
	}
	if code := exitCode(misuse("x")); unit["RestartPreventExitStatus"][0] != strconv.Itoa(code) {
		t.Errorf("wrong usage exits with %d, the unit does not restart after %s", code, unit["RestartPreventExitStatus"])
	}
	if user := strings.Fields(deployFile(t, "systemd/sysusers.conf"))[1]; user != unit["User"][0] || user != unit["Group"][0] {
		t.Errorf("sysusers.conf creates %s, the unit uses %s", user, unit["User"])
	}
}

// The files of the Debian package name settings and commands that exist.
func TestTheDebianFiles(t *testing.T) {
	testlevel.OneGoroutine(t)
	parseAs(t, "holdfast.yaml", []string{"serve", "--config", deployed + "debian/holdfast.yaml"}, nil)
	env := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z_]+)=$`).FindAllStringSubmatch(deployFile(t, "debian/environment"), -1) {
		env[m[1]] = ""
	}
	if len(env) != 2 {
		t.Errorf("environment names %v", env)
	}
	parseAs(t, "environment", []string{"version"}, env)
	command := regexp.MustCompile(`/usr/bin/holdfast (keys create .*)`).FindStringSubmatch(deployFile(t, "debian/holdfast.yaml"))
	parseAs(t, "a comment in holdfast.yaml", strings.Fields(command[1]), nil)
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if info, err := os.Stat(deployed + "debian/" + script); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed: %v", script, err)
		}
	}
}

// The Dockerfile starts a command that exists, with variables that exist.
func TestTheDockerfile(t *testing.T) {
	testlevel.OneGoroutine(t)
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	one := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile("(?m)^"+pattern+"$").FindAllStringSubmatch(string(text), -1)
		if len(m) != 1 {
			t.Fatalf("the Dockerfile has %q", m)
		}
		return m[0][1]
	}
	env := make(map[string]string)
	for _, pair := range strings.Fields(one("ENV (.*)")) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	if entry := one(`ENTRYPOINT \["(.*)"\]`); entry != "/usr/bin/holdfast" {
		t.Errorf("the image runs %s", entry)
	}
	g := parseAs(t, "the Dockerfile", []string{one(`CMD \["(.*)"\]`)}, env)
	if g.Serve.Listen != "0.0.0.0:"+one(`EXPOSE (\d+)`) || g.Serve.DB != "sqlite:"+one("VOLUME (.*)")+"/holdfast.db" {
		t.Errorf("the image listens on %s and has its data in %s", g.Serve.Listen, g.Serve.DB)
	}
	for _, name := range regexp.MustCompile(`internal/cli\.(\w+)=`).FindAllStringSubmatch(string(text), -1) {
		if source, err := os.ReadFile("version.go"); err != nil || !regexp.MustCompile(`(?m)^var .*\b`+name[1]+`\b.* string$`).Match(source) {
			t.Errorf("the Dockerfile stamps %s, which does not exist: %v", name[1], err)
		}
	}
}

// object is what the test reads of a Kubernetes object.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace string
		Labels          map[string]string
	}
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Replicas       int
		Selector       map[string]any
		MaxUnavailable int `yaml:"maxUnavailable"`
		Ports          []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				ServiceAccountName string `yaml:"serviceAccountName"`
				Grace              int    `yaml:"terminationGracePeriodSeconds"`
				SecurityContext    struct {
					RunAsNonRoot bool `yaml:"runAsNonRoot"`
					RunAsUser    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				InitContainers []container `yaml:"initContainers"`
				Containers     []container
			}
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// objects returns the objects in a manifest by kind.
func objects(t *testing.T, name string) map[string]object {
	t.Helper()
	text := deployFile(t, name)
	all := make(map[string]object)
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[o.Kind] = o
	}
}

// The Kubernetes manifests use flags, variables, secrets, ports and probes that exist, and fit together.
func TestTheKubernetesManifests(t *testing.T) {
	testlevel.OneGoroutine(t)
	all := objects(t, "kubernetes/holdfast.yaml")
	secret := objects(t, "kubernetes/secret.example.yaml")["Secret"]
	deployment := all["Deployment"]
	pod := deployment.Spec.Template
	if deployment.Spec.Replicas != 3 || all["PodDisruptionBudget"].Spec.MaxUnavailable != 1 {
		t.Errorf("%d replicas, of which %d may be disrupted", deployment.Spec.Replicas, all["PodDisruptionBudget"].Spec.MaxUnavailable)
	}
	label := pod.Metadata.Labels["app.kubernetes.io/name"]
	matches := func(kind string, selector any) {
		t.Helper()
		if m, ok := selector.(map[string]any); !ok || label == "" || len(m) != 1 || m["app.kubernetes.io/name"] != label {
			t.Errorf("the selector of the %s is %v, the pods have the label %q", kind, selector, label)
		}
	}
	matches("Deployment", deployment.Spec.Selector["matchLabels"])
	matches("PodDisruptionBudget", all["PodDisruptionBudget"].Spec.Selector["matchLabels"])
	matches("Service", all["Service"].Spec.Selector)
	for kind, o := range all {
		if kind != "Namespace" && (o.Metadata.Namespace != all["Namespace"].Metadata.Name || o.Metadata.Namespace != secret.Metadata.Namespace) {
			t.Errorf("the %s is in the namespace %q", kind, o.Metadata.Namespace)
		}
	}
	if pod.Spec.ServiceAccountName != all["ServiceAccount"].Metadata.Name || !pod.Spec.SecurityContext.RunAsNonRoot || pod.Spec.SecurityContext.RunAsUser != 65532 {
		t.Errorf("the pods run as %+v with the account %q", pod.Spec.SecurityContext, pod.Spec.ServiceAccountName)
	}
	if len(pod.Spec.InitContainers) != 1 || len(pod.Spec.Containers) != 1 {
		t.Fatalf("the pods have %d and %d containers", len(pod.Spec.InitContainers), len(pod.Spec.Containers))
	}
	used := make(map[string]bool)
	var g *grammar
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		env := make(map[string]string)
		for _, e := range c.Env {
			env[e.Name] = e.Value
			if ref := e.ValueFrom.SecretKeyRef; ref.Name != "" {
				value, ok := secret.StringData[ref.Key]
				if !ok || ref.Name != secret.Metadata.Name {
					t.Errorf("%s needs %s of the secret %s, which has %v", c.Name, ref.Key, ref.Name, secret.StringData)
				}
				env[e.Name], used[ref.Key] = value, true
			}
		}
		g = parseAs(t, "the container "+c.Name, c.Args, env)
		if c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation || !c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s has the security context %+v", c.Name, c.SecurityContext)
		}
	}
	for name, value := range secret.StringData {
		if _, err := url.Parse(value); err == nil && strings.HasSuffix(name, "url") {
			t.Errorf("the placeholder in %s is accepted", name)
		}
	}
	if _, err := secretKeys(secret.StringData["secret-key"]); err == nil {
		t.Error("the placeholder of the secret key is accepted")
	}
	if len(used) != len(secret.StringData) {
		t.Errorf("the pods use %v of the secret, which has %v", used, secret.StringData)
	}
	server := pod.Spec.Containers[0]
	if path.Base(server.Image) != path.Base(pod.Spec.InitContainers[0].Image) {
		t.Errorf("the containers have the images %s and %s", server.Image, pod.Spec.InitContainers[0].Image)
	}
	if len(server.Ports) != 1 || g.Serve.Listen != "0.0.0.0:"+strconv.Itoa(server.Ports[0].ContainerPort) || all["Service"].Spec.Ports[0].TargetPort != server.Ports[0].Name {
		t.Errorf("the server listens on %s, its ports are %v", g.Serve.Listen, server.Ports)
	}
	for at, p := range map[string]probe{"/healthz": server.LivenessProbe, "/readyz": server.ReadinessProbe} {
		if p.HTTPGet.Path != at || p.HTTPGet.Port != server.Ports[0].Name {
			t.Errorf("the probe for %s is %+v", at, p)
		}
	}
	if server.StartupProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("the startup probe is %+v", server.StartupProbe)
	}
	drained := time.Duration(server.Lifecycle.PreStop.Sleep.Seconds)*time.Second + g.Serve.ShutdownTimeout
	if grace := time.Duration(pod.Spec.Grace) * time.Second; server.Lifecycle.PreStop.Sleep.Seconds == 0 || grace < drained+10*time.Second {
		t.Errorf("Kubernetes kills the server after %s, which stops after %s at the latest", grace, drained)
	}
}

// The CI workflow runs the two commands that a change must pass. They are those of .ci/run, which runs a part of the second.
func TestTheWorkflow(t *testing.T) {
	testlevel.OneGoroutine(t)
	text, err := os.ReadFile("../../.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	var runs []string
	for _, s := range workflow.Jobs["check"].Steps {
		if s.Run != "" {
			runs = append(runs, s.Run)
		}
	}
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(runs, []string{"make test", "make check"}) || !regexp.MustCompile(`(?m)^make test\b.*\nmake check\b`).Match(script) {
		t.Errorf("the workflow runs %q, .ci/run is %s", runs, script)
	}
}

// Every command that connects to PostgreSQL has root certificates, also in an image that has none.
func TestADatabaseIsOpenedWithRoots(t *testing.T) {
	calls := 0
	defer func(f func()) { trustRoots = f }(trustRoots)
	trustRoots = func() { calls++ }
	for db, want := range map[string]int{"postgres://app@db.internal/app?sslmode=verify-full": 1, "host=db.internal": 1, "sqlite:x.db": 0} {
		calls = 0
		if _, err := (databaseFlags{DB: db, Schema: "s"}).open(); err != nil || calls != want {
			t.Errorf("%s: %d calls, want %d: %v", db, calls, want, err)
		}
	}
}
