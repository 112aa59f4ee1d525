// Package compose holds compose.yaml to its promises, with the specification's own loader.
package compose

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const root = "../.."

var secrets = []string{
	"LIKEWISE_SERVICE_TOKEN", "LIKEWISE_OPERATOR_TOKEN", "LIKEWISE_JWT_SECRET", "LIKEWISE_CURSOR_KEY",
	"MYSQL_ROOT_PASSWORD", "MYSQL_APP_PASSWORD", "MYSQL_ADMIN_PASSWORD", "MYSQL_DEBEZIUM_PASSWORD",
}

// load fails on what the specification does not know: its schema refuses unknown keys.
func load(secrets []string) (*types.Project, error) {
	var environment []string
	for _, name := range secrets {
		environment = append(environment, name+"=dummy")
	}
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "compose.yaml")}, cli.WithEnv(environment))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

func stack(t *testing.T) *types.Project {
	t.Helper()
	project, err := load(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func runsOnce(service types.ServiceConfig) bool { return service.Restart == "no" }

func TestEverySecretIsRequired(t *testing.T) {
	for i, missing := range secrets {
		others := append(append([]string{}, secrets[:i]...), secrets[i+1:]...)
		if _, err := load(others); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestPortsAreOpenToThisMachineOnly(t *testing.T) {
	for name, service := range stack(t).Services {
		if service.NetworkMode != "" {
			t.Errorf("%s leaves the project's network: %s", name, service.NetworkMode)
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, port.Published, port.HostIP)
			}
		}
	}
}

func TestServicesAreCheckedAndRestarted(t *testing.T) {
	for name, service := range stack(t).Services {
		if runsOnce(service) {
			continue
		}
		if service.Restart != "unless-stopped" {
			t.Errorf("%s: restart is %q", name, service.Restart)
		}
		if check := service.HealthCheck; check == nil || check.Disable || len(check.Test) < 2 {
			t.Errorf("%s has no health check", name)
		}
	}
}

func TestLogsAreRotated(t *testing.T) {
	for name, service := range stack(t).Services {
		if service.Logging == nil || service.Logging.Options["max-size"] == "" || service.Logging.Options["max-file"] == "" {
			t.Errorf("%s keeps its log for ever", name)
		}
	}
}

func TestDependenciesWaitForTheRightThing(t *testing.T) {
	services := stack(t).Services
	awaited := map[string]bool{}
	for name, service := range services {
		for other, dependency := range service.DependsOn {
			wanted := types.ServiceConditionHealthy
			if runsOnce(services[other]) {
				wanted = types.ServiceConditionCompletedSuccessfully
			}
			if dependency.Condition != wanted {
				t.Errorf("%s waits for %s: %s, want %s", name, other, dependency.Condition, wanted)
			}
			awaited[other] = true
		}
	}
	for name, service := range services {
		if runsOnce(service) && !awaited[name] {
			t.Errorf("nothing waits for %s, so `up --wait` would take its end for a failure", name)
		}
	}
}

func TestImagesArePinned(t *testing.T) {
	pinned := func(image string) bool {
		_, tag, found := strings.Cut(image, ":")
		return found && regexp.MustCompile(`[0-9]|bookworm`).MatchString(tag)
	}
	from := regexp.MustCompile(`(?m)^FROM (\S+)`)
	for name, service := range stack(t).Services {
		if service.Build == nil {
			if !pinned(service.Image) {
				t.Errorf("%s runs %q", name, service.Image)
			}
			continue
		}
		dockerfile := read(t, filepath.Join(service.Build.Context, service.Build.Dockerfile))
		for _, base := range from.FindAllStringSubmatch(dockerfile, -1) {
			if !pinned(base[1]) {
				t.Errorf("%s is built from %q", name, base[1])
			}
		}
	}
}

func TestMountedFilesExist(t *testing.T) {
	for name, service := range stack(t).Services {
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			if info, err := os.Stat(volume.Source); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s mounts %s, which is no file", name, volume.Source)
			}
			if !volume.ReadOnly {
				t.Errorf("%s can write to %s", name, volume.Source)
			}
		}
	}
}

func TestDataLivesInNamedVolumes(t *testing.T) {
	project := stack(t)
	for name, target := range map[string]string{
		"mysql": "/var/lib/mysql", "mongodb": "/data/db", "kafka": "/var/lib/kafka/data",
	} {
		kept := false
		for _, volume := range project.Services[name].Volumes {
			_, named := project.Volumes[volume.Source]
			kept = kept || named && volume.Type == types.VolumeTypeVolume && volume.Target == target
		}
		if !kept {
			t.Errorf("%s keeps %s in no named volume", name, target)
		}
	}
}

func TestMySQLIsConfiguredAsOutsideContainers(t *testing.T) {
	flags := map[string]bool{}
	for _, flag := range stack(t).Services["mysql"].Command {
		flags[flag] = true
	}
	setting := regexp.MustCompile(`(?m)^([a-z-]+) *= *(\S+)`)
	for _, line := range setting.FindAllStringSubmatch(read(t, filepath.Join(root, "scripts/mysql.cnf")), -1) {
		if flag := "--" + line[1] + "=" + line[2]; !flags[flag] {
			t.Errorf("mysql is not told %s", flag)
		}
	}
}

func TestVersionsAreThoseOfTheCheckout(t *testing.T) {
	rust := first(t, "rust-toolchain.toml", `channel = "(.+)"`)
	if built := first(t, "Dockerfile", `FROM rust:([0-9.]+)`); built != rust {
		t.Errorf("the image is built with Rust %s, the checkout with %s", built, rust)
	}
	kafka := first(t, "kafka/pom.xml", `<version>(.+)</version>`)
	if worker := first(t, "debezium/Dockerfile", `FROM apache/kafka:(.+)`); worker != kafka {
		t.Errorf("the Connect worker is Kafka %s, outside containers %s", worker, kafka)
	}
	if broker := stack(t).Services["kafka"].Image; broker != "apache/kafka:"+kafka {
		t.Errorf("the broker is %s, outside containers %s", broker, kafka)
	}
}

// first is what the pattern's group matches first in a file of the repository.
func first(t *testing.T, file, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, filepath.Join(root, file)))
	if found == nil {
		t.Fatalf("%s holds no %s", file, pattern)
	}
	return found[1]
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
