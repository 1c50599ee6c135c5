package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// The container image has the layout of the Open Container Initiative, in an archive. It has one layer, with the program and
// an empty folder for data, and nothing else: no shell and no other program.

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// imageUser is the user that the server runs as, and the owner of the data.
const imageUser = 65532

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type imageConfig struct {
	Created time.Time `json:"created"`
	platform
	Config  containerConfig `json:"config"`
	RootFS  rootFS          `json:"rootfs"`
	History []history       `json:"history"`
}

type containerConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	WorkingDir   string
	Labels       map[string]string
	StopSignal   string
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// layout collects the files of an image.
type layout struct{ files []entry }

// add adds a blob and returns its descriptor.
func (l *layout) add(mediaType string, content []byte) descriptor {
	l.files = append(l.files, entry{name: "blobs/sha256/" + checksum(content), mode: 0o644, content: content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + checksum(content), Size: len(content)}
}

func (l *layout) addJSON(mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	return l.add(mediaType, text), err
}

// image returns the archive of the image for all platforms.
func (r *Release) image(binaries []Binary) ([]byte, error) {
	var l layout
	all := index{SchemaVersion: 2, MediaType: typeIndex, Annotations: r.labels()}
	for _, b := range binaries {
		d, err := r.addPlatform(&l, b)
		if err != nil {
			return nil, err
		}
		all.Manifests = append(all.Manifests, d)
	}
	image, err := l.addJSON(typeIndex, all)
	if err != nil {
		return nil, err
	}
	image.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": r.Version,
		"io.containerd.image.name":          "localhost/holdfast:" + r.Version, // the name after an engine has loaded the archive
	}
	top, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{image}})
	if err != nil {
		return nil, err
	}
	return tarball(append(l.files,
		entry{name: "index.json", mode: 0o644, content: top},
		entry{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)}), r.Time)
}

// addPlatform adds the image of one platform.
func (r *Release) addPlatform(l *layout, b Binary) (descriptor, error) {
	files, err := r.imageFiles(b)
	if err != nil {
		return descriptor{}, err
	}
	layer, err := tarball(files, r.Time)
	if err != nil {
		return descriptor{}, err
	}
	compressed, err := compress(layer)
	if err != nil {
		return descriptor{}, err
	}
	of := platform{b.Arch, b.OS}
	config, err := l.addJSON(typeConfig, imageConfig{
		Created: r.Time, platform: of, Config: r.container(),
		RootFS:  rootFS{"layers", []string{"sha256:" + checksum(layer)}},
		History: []history{{r.Time, "holdfast " + r.Version}},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.addJSON(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: config, Layers: []descriptor{l.add(typeLayer, compressed)}, Annotations: r.labels(),
	})
	d.Platform = &of
	return d, err
}

// imageFiles returns the files of the layer. SQLite puts large sorts into files in /tmp.
func (r *Release) imageFiles(b Binary) ([]entry, error) {
	notices, err := r.notices(b)
	if err != nil {
		return nil, err
	}
	license, err := r.Root.read("LICENSE")
	if err != nil {
		return nil, err
	}
	return []entry{
		{name: "usr/bin/holdfast", mode: 0o755, content: b.Content},
		{name: "usr/share/doc/holdfast/LICENSE", mode: 0o644, content: license},
		{name: "usr/share/doc/holdfast/THIRD_PARTY_LICENSES", mode: 0o644, content: notices},
		{name: "data/", mode: 0o700, owner: imageUser},
		{name: "tmp/", mode: 0o1777},
	}, nil
}

// container returns how the image runs: a server on all addresses of the container, with its data in /data.
func (r *Release) container() containerConfig {
	return containerConfig{
		User:         fmt.Sprintf("%d:%d", imageUser, imageUser),
		ExposedPorts: map[string]struct{}{"7070/tcp": {}},
		Env:          []string{"PATH=/usr/bin", "HOLDFAST_DB=sqlite:/data/holdfast.db", "HOLDFAST_LISTEN=0.0.0.0:7070"},
		Entrypoint:   []string{"/usr/bin/holdfast"},
		Cmd:          []string{"serve"},
		Volumes:      map[string]struct{}{"/data": {}},
		WorkingDir:   "/data",
		Labels:       r.labels(),
		StopSignal:   "SIGTERM",
	}
}

func (r *Release) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "Holdfast",
		"org.opencontainers.image.version":  r.Version,
		"org.opencontainers.image.revision": r.Commit,
		"org.opencontainers.image.created":  r.Time.Format(time.RFC3339),
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}
