// Renders a chart as Helm does: Go templates, the functions of Sprig, and include, toYaml and required. Arguments: the directory of the
// chart, the name of the release, a file with values that replace those of the chart.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) map[string]interface{} {
	bytes, err := os.ReadFile(path)
	check(err)
	values := map[string]interface{}{}
	check(yaml.Unmarshal(bytes, &values))
	return values
}

func merge(to, from map[string]interface{}) {
	for key, value := range from {
		old, oldIsMap := to[key].(map[string]interface{})
		fresh, isMap := value.(map[string]interface{})
		if oldIsMap && isMap {
			merge(old, fresh)
		} else {
			to[key] = value
		}
	}
}

func main() {
	folder, release := os.Args[1], os.Args[2]
	chart := read(filepath.Join(folder, "Chart.yaml"))
	values := read(filepath.Join(folder, "values.yaml"))
	merge(values, read(os.Args[3]))
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	check(err)
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		_, err = all.New(filepath.Base(file)).Parse(string(text))
		check(err)
	}
	data := map[string]interface{}{
		"Values": values,
		"Chart":  map[string]interface{}{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": map[string]interface{}{
			"Name": release, "Namespace": "default", "Service": "Helm",
		},
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		if filepath.Ext(file) == ".txt" {
			check(all.ExecuteTemplate(os.Stderr, filepath.Base(file), data))
			continue
		}
		fmt.Println("---")
		check(all.ExecuteTemplate(os.Stdout, filepath.Base(file), data))
	}
}
