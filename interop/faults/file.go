// Package faults runs a vehicle under a steady load, does something bad to a part
// of it, and judges from what every load has seen who was concerned, what they
// were told, how soon, and when they were served again.
//
// A scenario file has steps and, for the loads that are concerned, bounds. Every
// load that it does not name must not notice anything: no failed call, no end of a
// stream, no item lost without a word.
package faults

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/config"
)

// Suite is a vehicle and what is done to it: all that is in a directory.
type Suite struct {
	About     string // the vehicle, for the page
	Vehicle   string // its directory
	Loads     []Load
	Scenarios []*Scenario
}

// loadsFile is the content of loads.yaml.
type loadsFile struct {
	About string `yaml:"about" doc:"The vehicle, for the page."`
	Loads []Load `yaml:"loads" required:"true" doc:"The steady load."`
}

// Load is a client that never stops: of calls or of one stream, through the
// egress listener of an HPC, or a program on a network.
type Load struct {
	Pos model.Position `yaml:"-"`

	Name      string        `yaml:"name" required:"true" pattern:"[a-z0-9-]+" doc:"Name of the load in scenarios."`
	Doc       string        `yaml:"doc" required:"true" doc:"Who calls whom, for the page."`
	Host      string        `yaml:"host" doc:"HPC whose egress listener is used."`
	Authority string        `yaml:"authority" doc:"Mesh name of what is called."`
	Method    string        `yaml:"method" pattern:"/[\\w.]+/\\w+" doc:"Path of the rpc."`
	Watch     bool          `yaml:"watch" doc:"The rpc is a server stream: it is opened again whenever it ends."`
	Quiet     bool          `yaml:"quiet" doc:"The stream has no items unless something asks for them."`
	Field     bool          `yaml:"field" doc:"The stream is of a field: each opening begins with the current value."`
	Pause     time.Duration `yaml:"pause" default:"20ms" min:"1ms" doc:"Time between two calls."`
	Program   string        `yaml:"program" doc:"Component that is a load itself and writes its records to its log."`
	Extra     bool          `yaml:"extra" doc:"It runs in the scenarios only that have it."`
	Of        Records       `yaml:"of" doc:"Which records of the program: calls or events."`
}

// Records says which of a program's records belong to a load.
type Records string

// The records of a program.
const (
	Calls  Records = "calls"
	Events Records = "events"
)

// Scenario is the content of a scenario file.
type Scenario struct {
	Name string `yaml:"-"` // of the file, without its number and suffix

	Title     string      `yaml:"title" required:"true" doc:"The fault, as the page names it."`
	With      []string    `yaml:"with" doc:"Extra loads that run meanwhile."`
	Slice     bool        `yaml:"slice" doc:"It belongs to the short slice that runs everywhere."`
	Steps     []Step      `yaml:"steps" required:"true" doc:"What is done, in order."`
	Concerned []Concerned `yaml:"concerned" doc:"Loads that may notice, and what."`
	Same      []Same      `yaml:"same" doc:"What must be after as it was before."`
	Memory    []Memory    `yaml:"memory" doc:"How much programs may grow while it lasts."`
	Note      string      `yaml:"note" doc:"A remark for the page."`
}

// Step is one action, or one condition to wait for. The first action that is
// neither wait, calm, connected, settled, balanced, call, add, remove nor a repair is
// the fault; the last one of start, thaw, plug and add_address that is not late is the repair. Without a repair the time of the
// fault stands for it.
type Step struct {
	Pos model.Position `yaml:"-"`

	Wait      time.Duration `yaml:"wait" doc:"Let so much time pass under load."`
	Kill      string        `yaml:"kill" doc:"Program to kill (SIGKILL): a component, HOST/gateway, HOST/control-plane or HOST/envoy."`
	Freeze    string        `yaml:"freeze" doc:"Program to freeze (SIGSTOP)."`
	Thaw      string        `yaml:"thaw" doc:"Program to let go on (SIGCONT)."`
	Stop      string        `yaml:"stop" doc:"Program to ask to end."`
	Start     string        `yaml:"start" doc:"Program to start."`
	Unplug    *Plug         `yaml:"unplug" doc:"Cable to take out: the link goes down."`
	Plug      *Plug         `yaml:"plug" doc:"Cable to put back in."`
	Remove    *Plug         `yaml:"remove_address" doc:"Host whose address goes."`
	Address   *Plug         `yaml:"add_address" doc:"Host whose address comes back."`
	Wipe      string        `yaml:"wipe" doc:"HPC whose control plane's store is removed, while the control plane is not running."`
	Add       *Service      `yaml:"add" doc:"Native service to add to an HPC."`
	Leave     *Service      `yaml:"remove" doc:"Native service to remove from an HPC, after it was drained."`
	Balanced  *Balanced     `yaml:"balanced" doc:"Let time pass in which the calls of loads are shared evenly by so many programs."`
	Settled   *Settled      `yaml:"settled" doc:"Wait until one node alone serves an instance and others stand by, and nothing in the mesh changes any more."`
	Call      *Once         `yaml:"call" doc:"A call made once, such as one that starts a burst."`
	Slow      *Slow         `yaml:"slow" doc:"A watcher that reads nothing for a time, then all."`
	Many      *Many         `yaml:"many" doc:"Calls that are outstanding all at once."`
	Connected time.Duration `yaml:"connected" doc:"Wait until every gateway and every proxy has the control plane again; within this of the latest start of it."`
	Nodes     []string      `yaml:"nodes" doc:"Of connected: the nodes that lost it; without it, all."`
	Calm      time.Duration `yaml:"calm" doc:"Wait until every load was served for half a second, no longer than this."`
	// Late is no action.
	Late bool `yaml:"late" doc:"The loads do not need this repair: times do not count from it."`
}

// Plug is a host's device on a network.
type Plug struct {
	Host    string `yaml:"host" required:"true" doc:"Host."`
	Network string `yaml:"network" required:"true" doc:"Network."`
}

// Service is a native service of an HPC.
type Service struct {
	Host      string        `yaml:"host" required:"true" doc:"HPC."`
	Name      string        `yaml:"name" required:"true" doc:"Mesh name."`
	Interface string        `yaml:"interface" doc:"Full name, of a service to add."`
	Instance  string        `yaml:"instance" doc:"Instance, of a service to add."`
	Address   string        `yaml:"address" doc:"Where it listens, of a service to add."`
	Drain     time.Duration `yaml:"drain" default:"1s" doc:"How long calls may take to end, of a service to remove."`
}

// Balanced is loads whose calls several programs share.
type Balanced struct {
	For      time.Duration `yaml:"for" required:"true" doc:"How long."`
	Loads    []string      `yaml:"loads" required:"true" doc:"Loads of calls."`
	Programs int           `yaml:"programs" default:"2" min:"2" doc:"How many programs answer."`
	Percent  float64       `yaml:"percent" default:"5" doc:"How far the share of each may be off."`
}

// Settled is who serves an instance.
type Settled struct {
	Name     string        `yaml:"name" required:"true" doc:"Mesh name."`
	Standbys int           `yaml:"standbys" doc:"How many nodes stand by."`
	For      time.Duration `yaml:"for" default:"1s" doc:"How long nothing changes."`
}

// Once is a call made once.
type Once struct {
	Host      string        `yaml:"host" required:"true" doc:"HPC whose egress listener is used."`
	Authority string        `yaml:"authority" required:"true" doc:"Mesh name of what is called."`
	Method    string        `yaml:"method" required:"true" doc:"Path of the rpc."`
	Number    uint32        `yaml:"number" doc:"Field 1 of the request."`
	Timeout   time.Duration `yaml:"timeout" default:"5s" doc:"Deadline of the call."`
}

// Slow is a watcher that does not read.
type Slow struct {
	Host      string        `yaml:"host" required:"true" doc:"HPC whose egress listener is used."`
	Authority string        `yaml:"authority" required:"true" doc:"Mesh name of what is watched."`
	Method    string        `yaml:"method" required:"true" doc:"Path of the rpc."`
	Asleep    time.Duration `yaml:"asleep" required:"true" doc:"How long it reads nothing."`
	Burst     uint32        `yaml:"burst" doc:"Ask the ECU for so many Bulk events while it sleeps."`
	Last      bool          `yaml:"last" doc:"The last item of the burst must arrive."`
}

// Many is a number of calls at once.
type Many struct {
	Host      string        `yaml:"host" required:"true" doc:"HPC whose egress listener is used."`
	Authority string        `yaml:"authority" required:"true" doc:"Mesh name of what is called."`
	Method    string        `yaml:"method" required:"true" doc:"Path of the rpc."`
	Number    uint32        `yaml:"number" doc:"Field 1 of the requests."`
	Count     int           `yaml:"count" required:"true" min:"1" doc:"How many."`
	Timeout   time.Duration `yaml:"timeout" default:"10s" doc:"Deadline of each."`
}

// Concerned bounds what some loads see. A bound that is left out is none, but
// codes: a code that is not listed is a failure.
type Concerned struct {
	Pos model.Position `yaml:"-"`

	Loads   []string      `yaml:"loads" required:"true" doc:"Names of loads; at their end, owner and standby stand for nodes as in steps."`
	Codes   []string      `yaml:"codes" doc:"gRPC codes that their calls and streams may fail with."`
	Reason  Pattern       `yaml:"reason" doc:"Regular expression that at least one failure matches."`
	Failed  *int          `yaml:"failed" doc:"Most calls that may fail, or most ends of a stream."`
	Noticed time.Duration `yaml:"noticed" doc:"From the fault to the first failure: somebody is told within this."`
	Waits   time.Duration `yaml:"waits" doc:"Longest that one call goes without an answer, or a stream without an item or an end."`
	Served  time.Duration `yaml:"served" doc:"From the repair until all is well again."`
	Lost    bool          `yaml:"lost" doc:"Items may be missing, as long as the stream does not end."`
	Value   *uint32       `yaml:"value" doc:"Value of the field in the last item."`
}

// Same names what a fault must not change.
type Same string

// What can stay the same.
const (
	Identities Same = "identities" // node ids, and epochs that do not fall (CAR-10)
	Envoys     Same = "envoys"     // process ids of the proxies: adopted, not started anew
)

// Memory bounds the anonymous memory of a program.
type Memory struct {
	Program string `yaml:"program" required:"true" doc:"HOST/gateway, HOST/control-plane or HOST/envoy."`
	Grows   int    `yaml:"grows" required:"true" min:"1" doc:"Most MiB more than before, at any time."`
}

// Pattern is a regular expression.
type Pattern struct{ re *regexp.Regexp }

// UnmarshalConfig compiles the expression.
func (p *Pattern) UnmarshalConfig(v config.Value) {
	text, _ := v.Text()
	re, err := regexp.Compile(text)
	if err != nil {
		v.Fail("a regular expression", "%v", err)
		return
	}
	p.re = re
}

// CheckConfig wants a load to be one of the two kinds.
func (l *Load) CheckConfig(v config.Value) {
	program, rpc := l.Program != "", l.Host != "" && l.Authority != "" && l.Method != ""
	if program == rpc {
		v.Fail("program and of, or host, authority and method", "the load %q is no program and no rpc, or both", l.Name)
	}
	if program && l.Of != Calls && l.Of != Events {
		v.Fail("of: calls or of: events", "the load %q does not say which records it has", l.Name)
	}
}

// periodic says that a stream that is well has items all the time.
func (l *Load) periodic() bool { return l.stream() && !l.Field && !l.Quiet }

func (l *Load) stream() bool { return l.Watch || l.Of == Events }

// action returns the name of a step's action and how many it has.
func (s *Step) action() (name string, n int) {
	for _, a := range []struct {
		name  string
		given bool
	}{
		{"wait", s.Wait != 0},
		{"kill", s.Kill != ""},
		{"freeze", s.Freeze != ""},
		{"thaw", s.Thaw != ""},
		{"stop", s.Stop != ""},
		{"start", s.Start != ""},
		{"unplug", s.Unplug != nil},
		{"plug", s.Plug != nil},
		{"remove_address", s.Remove != nil},
		{"add_address", s.Address != nil},
		{"wipe", s.Wipe != ""},
		{"add", s.Add != nil},
		{"remove", s.Leave != nil},
		{"balanced", s.Balanced != nil},
		{"settled", s.Settled != nil},
		{"call", s.Call != nil},
		{"slow", s.Slow != nil},
		{"many", s.Many != nil},
		{"connected", s.Connected != 0},
		{"calm", s.Calm != 0},
	} {
		if a.given {
			name = a.name
			n++
		}
	}
	return name, n
}

// CheckConfig requires exactly one action.
func (s *Step) CheckConfig(v config.Value) {
	if _, n := s.action(); n != 1 {
		v.Fail("one action", "the step has %d actions", n)
	}
}

// LoadSuites reads the suites of a directory: of its vehicle and scenarios, and of
// those in shared.
func LoadSuites(dir string) (suites []*Suite, err error) {
	for _, d := range []string{dir, filepath.Join(dir, "shared")} {
		s, err := LoadSuite(filepath.Join(d, "scenarios"))
		if err != nil {
			return nil, err
		}
		s.Vehicle = filepath.Join(d, "vehicle")
		suites = append(suites, s)
	}
	return suites, nil
}

// LoadSuite reads a directory of scenarios. Its error lists every mistake with its
// place.
func LoadSuite(dir string) (*Suite, error) {
	var loads loadsFile
	if err := decode(filepath.Join(dir, "loads.yaml"), &loads); err != nil {
		return nil, err
	}
	suite := &Suite{About: strings.TrimSpace(loads.About), Loads: loads.Loads}
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, cmp.Compare)
	for _, path := range files {
		s := new(Scenario)
		if err := decode(path, s); err != nil {
			return nil, err
		}
		_, s.Name, _ = strings.Cut(strings.TrimSuffix(filepath.Base(path), ".yaml"), "-")
		if err := suite.check(s); err != nil {
			return nil, err
		}
		suite.Scenarios = append(suite.Scenarios, s)
	}
	return suite, nil
}

func decode(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return config.Decode(path, data, into)
}

// check finds names that mean nothing.
func (s *Suite) check(sc *Scenario) error {
	for _, name := range sc.With {
		if l := s.load(name); l == nil || !l.Extra {
			return fmt.Errorf("%s: there is no extra load %q", sc.Title, name)
		}
	}
	for _, c := range sc.Concerned {
		for _, name := range c.Loads {
			if base, _, ok := cutRole(name); s.load(name) == nil && !ok || ok && !s.any(base) {
				return fmt.Errorf("%s: there is no load %q", c.Pos, name)
			}
		}
	}
	return nil
}

// any reports whether there is a load whose name has that beginning.
func (s *Suite) any(base string) bool {
	return slices.ContainsFunc(s.Loads, func(l Load) bool { return strings.HasPrefix(l.Name, base) })
}

func (s *Suite) load(name string) *Load {
	for i := range s.Loads {
		if s.Loads[i].Name == name {
			return &s.Loads[i]
		}
	}
	return nil
}
