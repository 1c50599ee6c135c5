package main

import (
	"encoding/json"
	"strings"
)

// The bill of materials has the format SPDX 2.3, as JSON. Each program is a package, which depends on the modules that it
// says it was built from.

type spdxDocument struct {
	SPDXVersion   string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string          `json:"SPDXID"`
	Name             string          `json:"name"`
	Version          string          `json:"versionInfo"`
	FileName         string          `json:"packageFileName,omitempty"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	SourceInfo       string          `json:"sourceInfo,omitempty"`
	Concluded        string          `json:"licenseConcluded"`
	Declared         string          `json:"licenseDeclared"`
	Copyright        string          `json:"copyrightText"`
	Purpose          string          `json:"primaryPackagePurpose,omitempty"`
	References       []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const noAssertion = "NOASSERTION"

// source is where the project is.
const source = "https://github.com/holdfast-go/holdfast"

// dashboard lists what the dashboard in the program contains: libraries and the font Geist, as in web/vendor/README.md.
var dashboard = []struct{ name, version, license string }{
	{"preact", "11.2.0", "MIT"},
	{"@preact/signals", "2.11.0", "MIT"},
	{"@preact/signals-core", "1.14.5", "MIT"},
	{"uplot", "1.6.32", "MIT"},
	{"@fontsource-variable/geist", "5.3.0", "OFL-1.1"},
	{"@fontsource-variable/geist-mono", "5.3.0", "OFL-1.1"},
}

func (r *Release) sbom() ([]byte, error) {
	d := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "holdfast " + r.Version,
		Creation: spdxCreation{Created: r.Time.Format("2006-01-02T15:04:05Z"), Creators: []string{"Tool: " + source + "/internal/release"}},
	}
	known := make(map[string]bool)
	sums := ""
	for _, b := range r.Binaries {
		id := "SPDXRef-holdfast-" + b.OS + "-" + b.Arch
		sums += checksum(b.Content)
		d.Packages = append(d.Packages, spdxPackage{
			ID: id, Name: "holdfast", Version: r.Version, FileName: "holdfast_" + r.Version + "_" + b.OS + "_" + b.Arch + "/holdfast" + b.exe(),
			DownloadLocation: "git+" + source + "@" + r.Commit, Checksums: []spdxChecksum{{"SHA256", checksum(b.Content)}},
			Concluded: noAssertion, Declared: "Apache-2.0", Copyright: noAssertion, Purpose: "APPLICATION",
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/github.com/holdfast-go/holdfast@" + r.Version}},
		})
		d.Relationships = append(d.Relationships, spdxRelationship{d.ID, "DESCRIBES", id})
		depends := func(on spdxPackage) {
			if !known[on.ID] {
				known[on.ID] = true
				d.Packages = append(d.Packages, on)
			}
			d.Relationships = append(d.Relationships, spdxRelationship{id, "DEPENDS_ON", on.ID})
		}
		version := strings.TrimPrefix(b.Info.GoVersion, "go")
		depends(spdxPackage{
			ID: "SPDXRef-go-stdlib", Name: "stdlib", Version: version, DownloadLocation: "https://go.dev/dl/", Concluded: noAssertion, Declared: "BSD-3-Clause", Copyright: noAssertion,
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/stdlib@" + version}},
		})
		for _, l := range dashboard {
			name := strings.Replace(l.name, "@", "%40", 1)
			depends(spdxPackage{
				ID: "SPDXRef-npm-" + spdxName(strings.TrimPrefix(l.name, "@")+"-"+l.version), Name: l.name, Version: l.version,
				DownloadLocation: "https://www.npmjs.com/package/" + l.name + "/v/" + l.version, Concluded: noAssertion, Declared: l.license, Copyright: noAssertion, Purpose: "LIBRARY",
				References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:npm/" + name + "@" + l.version}},
			})
		}
		for _, m := range modules(b.Info) {
			depends(spdxPackage{
				ID: "SPDXRef-" + spdxName(m.Path+"-"+m.Version), Name: m.Path, Version: m.Version, DownloadLocation: "https://proxy.golang.org/" + escapedPath(m.Path) + "/@v/" + escapedPath(m.Version) + ".zip",
				SourceInfo: "go.sum " + m.Sum, Concluded: noAssertion, Declared: noAssertion, Copyright: noAssertion, Purpose: "LIBRARY",
				References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}},
			})
		}
	}
	d.Namespace = source + "/releases/download/" + r.Version + "/sbom-" + checksum([]byte(sums))[:32]
	out, err := json.MarshalIndent(d, "", " ")
	return append(out, '\n'), err
}

// spdxName replaces what an identifier may not contain.
func spdxName(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, text)
}

// escapedPath escapes a path as module proxies do: an upper case letter is an exclamation mark and the lower case letter.
func escapedPath(path string) string {
	var b strings.Builder
	for _, c := range path {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('!')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
