// Package scenario plays a script against a running vehicle: calls and watches
// through an egress listener, programs started, stopped and killed, services that
// move, and what must be seen. A played scenario prints a transcript that is the
// same each time.
package scenario

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"time"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
)

// Scenario is the content of a scenario file.
type Scenario struct {
	Title string `yaml:"title" required:"true" doc:"What the scenario shows."`
	Steps []Step `yaml:"steps" required:"true" doc:"The steps, in order; the first that fails ends the scenario."`

	vehicle *vehicles.Vehicle // nil if the names of hosts and programs are not checked
}

// Step is one step: a name and exactly one action.
type Step struct {
	Pos model.Position `yaml:"-"`

	Name   string        `yaml:"name" required:"true" doc:"What the step shows."`
	Within time.Duration `yaml:"within" default:"10s" doc:"How long the step may take; waits and expectations end with it."`

	Wait   *Wait   `yaml:"wait" doc:"Wait until services answer health checks through the mesh."`
	Call   *Call   `yaml:"call" doc:"Call a method."`
	Watch  *Watch  `yaml:"watch" doc:"Open a stream."`
	Expect *Expect `yaml:"expect" doc:"Wait for an item of an open stream."`
	Ends   *Ends   `yaml:"ends" doc:"Wait for the end of an open stream."`
	List   *List   `yaml:"list" doc:"List services and their methods by reflection."`
	Play   string  `yaml:"play" doc:"Run a component to its end; its output is part of the transcript."`
	Start  string  `yaml:"start" doc:"Start a program."`
	Stop   string  `yaml:"stop" doc:"Ask a program to end, and wait for that."`
	Kill   string  `yaml:"kill" doc:"Kill a program."`
	Reboot string  `yaml:"reboot" doc:"Kill a program and start it again at once."`

	Repeat *Repeat        `yaml:"repeat" doc:"Call a method again and again, until a step finish."`
	Finish *Finish        `yaml:"finish" doc:"End the calls of a step repeat, none of which may have failed."`
	Add    *AddService    `yaml:"add_service" doc:"Add a native gRPC service to an HPC, as carisma service add does, and wait until every HPC has it."`
	Remove *RemoveService `yaml:"remove_service" doc:"Remove a service from an HPC, as carisma service remove does."`
}

// Wait names mesh services that must be reachable from a host.
type Wait struct {
	Host string   `yaml:"host" required:"true" doc:"HPC whose egress listener is used."`
	Up   []string `yaml:"up" required:"true" doc:"Mesh names."`
}

// Target is what a call or watch goes to.
type Target struct {
	Host      string `yaml:"host" required:"true" doc:"HPC whose egress listener is used."`
	Authority string `yaml:"authority" doc:"Mesh name; without it the interface's default instance is called."`
	Instance  string `yaml:"instance" doc:"Value of the header carisma-instance."`
	Method    string `yaml:"method" required:"true" pattern:"[\\w.]+/\\w+" doc:"Full name of the interface, a slash and the rpc."`
	Request   JSON   `yaml:"request" doc:"Request as JSON; default {}."`
}

// Call is a unary call with its answer: a response or an error.
type Call struct {
	Target   Target `yaml:"to" required:"true" doc:"What is called."`
	Response JSON   `yaml:"response" doc:"The whole response as JSON."`
	Error    *Error `yaml:"error" doc:"The error expected."`
	// Retry is for steps that follow a change: UNAVAILABLE is tried again.
	Retry bool `yaml:"retry" doc:"Try again while the answer is another one, until the step's time is over."`
}

// Error is an expected status. What is left out may have any value.
type Error struct {
	Code        string `yaml:"code" required:"true" doc:"gRPC code, such as UNAVAILABLE."`
	Message     Regexp `yaml:"message" doc:"Regular expression for the message."`
	ReturnCode  uint32 `yaml:"return_code" doc:"SOME/IP return code in the detail."`
	Application string `yaml:"application_error" doc:"Application error in the detail."`
	FieldPath   string `yaml:"field_path" doc:"Field path in the detail."`
	Reason      Regexp `yaml:"reason" doc:"Regular expression for the reason in the detail, which then also says since when."`
}

// Watch opens a server stream under a name.
type Watch struct {
	As     string `yaml:"as" required:"true" doc:"Name of the stream in later steps."`
	Target Target `yaml:"to" required:"true" doc:"What is watched."`
}

// Expect waits for an item with the given members; others are passed over.
type Expect struct {
	Of   string `yaml:"of" required:"true" doc:"Name of the stream."`
	Item JSON   `yaml:"item" required:"true" doc:"Members that the item must have, as JSON."`
	// Next allows no other item before.
	Next bool `yaml:"next" doc:"It must be the very next item."`
}

// Ends waits for the end of a stream.
type Ends struct {
	Of    string `yaml:"of" required:"true" doc:"Name of the stream."`
	Error Error  `yaml:"error" required:"true" doc:"The status it must end with."`
}

// Repeat calls a method all the time, while later steps are played.
type Repeat struct {
	As       string        `yaml:"as" required:"true" doc:"Name of the calls in later steps."`
	Target   Target        `yaml:"to" required:"true" doc:"What is called."`
	Response JSON          `yaml:"response" required:"true" doc:"The whole response as JSON, of every call."`
	Every    time.Duration `yaml:"every" default:"5ms" min:"1ms" doc:"Time between two calls; a call waits for the one before."`
}

// Finish makes a last call and ends those of a repeat.
type Finish struct {
	Of string `yaml:"of" required:"true" doc:"Name of the calls."`
}

// AddService makes a gRPC service that runs on an HPC an instance of an interface.
type AddService struct {
	Component string `yaml:"component" required:"true" doc:"Component that serves it, where it listens, on the HPC that it is added to."`
	Interface string `yaml:"interface" required:"true" doc:"Full name of the interface."`
	Instance  string `yaml:"instance" default:"default" doc:"Name of the instance."`
}

// RemoveService takes an instance of an HPC out of the mesh.
type RemoveService struct {
	Host    string        `yaml:"host" required:"true" doc:"HPC that it is removed from."`
	Service string        `yaml:"service" required:"true" doc:"Mesh name of the service."`
	Drain   time.Duration `yaml:"drain" doc:"Let others take its calls first, and give those that run so long to end; default not at all."`
}

// List asks a host's egress listener what there is.
type List struct {
	Host     string   `yaml:"host" required:"true" doc:"HPC whose egress listener is used."`
	Services []string `yaml:"services" required:"true" doc:"Interfaces that must be listed, each with all its rpcs."`
}

// JSON is a text that holds a JSON object.
type JSON struct{ text string }

// UnmarshalConfig checks that the text is an object.
func (j *JSON) UnmarshalConfig(v config.Value) {
	text, ok := v.Text()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); !ok || err != nil {
		v.Fail(`a JSON object in quotes, such as '{"a": 1}'`, "is no JSON object: %v", err)
		return
	}
	j.text = text
}

func (j JSON) orEmpty() string {
	if j.text == "" {
		return "{}"
	}
	return j.text
}

// Regexp is a regular expression that is looked for in a text.
type Regexp struct{ re *regexp.Regexp }

// UnmarshalConfig compiles the expression.
func (r *Regexp) UnmarshalConfig(v config.Value) {
	text, _ := v.Text()
	if err := r.compile(text); err != nil {
		v.Fail("a regular expression", "%v", err)
	}
}

func (r *Regexp) compile(text string) (err error) {
	r.re, err = regexp.Compile(text)
	return err
}

func (r Regexp) matches(s string) bool { return r.re == nil || r.re.MatchString(s) }

// Load reads a scenario file and checks it against the vehicle that it is for;
// without one, nil, only what the file itself shows. Its error lists every mistake
// with file, line and column, as *config.Error.
func Load(path string, v *vehicles.Vehicle) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	s := &Scenario{vehicle: v}
	if err := config.Decode(path, data, s); err != nil {
		return nil, err
	}
	return s, nil
}
