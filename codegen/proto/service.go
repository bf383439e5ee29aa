package proto

import (
	"fmt"
	"regexp"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
)

// Bounds of SOME/IP ids (PRS_SOMEIP header): what lies outside is reserved.
const (
	maxServiceID    = 0xFFFD // 0xFFFE is for services other than SOME/IP, 0xFFFF for SD
	maxInstanceID   = 0xFFFE
	maxMethodID     = 0x7FFE
	minEventID      = 0x8001
	maxEventID      = 0xFFFE
	maxEventgroup   = 0xFFFE
	maxMajor        = 0xFE       // 0xFF is any
	anyMinor        = 0xFFFFFFFF // any
	minErrorCode    = 0x20
	maxErrorCode    = 0x5E
	someipExtension = 53401
)

// interfaceReader reads one service.
type interfaceReader struct {
	*reports
	files   *files
	service protoreflect.ServiceDescriptor
	iface   *model.Interface
	options *optionsv1.SomeipService // nil without a SOME/IP deployment
	structs map[protoreflect.FullName]*model.Struct
	enums   map[protoreflect.FullName]*model.Enum
	open    []protoreflect.FullName // messages being read, to name a recursion
	// recursive messages, reported once
	recursive map[protoreflect.FullName]bool
	fields    map[string]*fieldReader
}

func readInterface(s protoreflect.ServiceDescriptor, f *files, r *reports) *model.Interface {
	ir := &interfaceReader{
		reports: r, files: f, service: s,
		iface:   &model.Interface{Pos: f.pos(s), Name: string(s.Name())},
		structs: map[protoreflect.FullName]*model.Struct{},
		enums:   map[protoreflect.FullName]*model.Enum{},
		fields:  map[string]*fieldReader{}, recursive: map[protoreflect.FullName]bool{},
	}
	if proto.HasExtension(s.Options(), optionsv1.E_Someip) {
		ir.options, _ = proto.GetExtension(s.Options(), optionsv1.E_Someip).(*optionsv1.SomeipService)
	}
	ir.readVersion()
	ir.readService()
	for i := range s.Methods().Len() {
		ir.readRPC(s.Methods().Get(i))
	}
	ir.checkFields()
	ir.checkIDs()
	return ir.iface
}

var versionedPackage = regexp.MustCompile(`^(.+)\.v(0|[1-9][0-9]{0,8})$`)

// readVersion takes the major version from the package.
func (r *interfaceReader) readVersion() {
	name := string(r.service.ParentFile().Package())
	m := versionedPackage.FindStringSubmatch(name)
	if m == nil {
		r.add(r.files.packagePos(r.service.ParentFile()), "a package such as cabin.climate.v1, whose last part is v and the major version",
			"the package %q of the interface %s has no version", name, r.service.Name())
		r.iface.Package = name
		return
	}
	major, _ := strconv.ParseUint(m[2], 10, 32)
	r.iface.Package = m[1]
	r.iface.Version.Major = uint32(major)
	if r.options != nil && major > maxMajor {
		r.add(r.files.packagePos(r.service.ParentFile()), "0 to 254", "SOME/IP has no major version %d", major)
	}
}

// at is the place of a member of the service's SOME/IP option.
func (r *interfaceReader) at(below ...int32) model.Position {
	return r.files.pos(r.service, append([]int32{optionsOfService, someipExtension}, below...)...)
}

func (r *interfaceReader) readService() {
	o := r.options
	if o == nil {
		return
	}
	r.iface.Version.Minor = o.GetMinor()
	if o.GetMinor() == anyMinor {
		r.add(r.at(2), "0 to 4294967294", "the minor version 4294967295 stands for any")
	}
	if o.GetServiceId() == 0 || o.GetServiceId() > maxServiceID {
		r.add(r.at(1), "0x0001 to 0xfffd", "service_id %s is not the id of a service", hex(o.GetServiceId()))
	}
	s := &model.SOMEIPService{
		ServiceID:             uint16(o.GetServiceId()),
		LittleEndian:          o.GetByteOrder() == optionsv1.ByteOrder_LITTLE_ENDIAN,
		LengthsInPayloadOrder: o.GetLengthFieldsInPayloadOrder(),
		StandardCodesOnly:     o.GetStandardCodesOnly(),
	}
	r.iface.SOMEIP = s
	r.readInstances(s)
	r.readErrors(s)
}

func hex(id uint32) string { return fmt.Sprintf("0x%04x", id) }

func (r *interfaceReader) readInstances(s *model.SOMEIPService) {
	ids, names, meshNames := map[uint32]string{}, map[string]bool{}, map[string]string{}
	for n, in := range r.options.GetInstances() {
		i := int32(n)
		name, id := in.GetName(), in.GetId()
		meshName := r.iface.MeshName(name)
		number, isNumber := (&model.SOMEIPService{}).InstanceID(name)
		switch {
		case name == "":
			r.add(r.at(5, i), "a name for each instance", "the instance has no name")
		case names[name]:
			r.add(r.at(5, i, 1), "each name once", "%q is the name of two instances", name)
		case meshNames[meshName] != "":
			r.add(r.at(5, i, 1), "names that differ in more than case", "%q and %q have the same mesh name %s", name, meshNames[meshName], meshName)
		case isNumber && uint32(number) != id:
			r.add(r.at(5, i, 1), "a name that is not a number", "%q is the name of the instance with this id, when it has no other", name)
		}
		if id == 0 || id > maxInstanceID {
			r.add(r.at(5, i, 2), "0x0001 to 0xfffe", "%s is not the id of an instance", hex(id))
		} else if ids[id] != "" {
			r.add(r.at(5, i, 2), "each id once", "%s is also the id of the instance %q", hex(id), ids[id])
		}
		ids[id], names[name], meshNames[meshName] = name, true, name
		s.Instances = append(s.Instances, model.SOMEIPInstance{Name: name, ID: uint16(id)})
	}
}

func (r *interfaceReader) readErrors(s *model.SOMEIPService) {
	codes, names := map[uint32]string{}, map[string]bool{}
	for n, e := range r.options.GetErrors() {
		i := int32(n)
		name, code := e.GetName(), e.GetCode()
		if name == "" {
			r.add(r.at(6, i), "a name for each error", "the error has no name")
		} else if names[name] {
			r.add(r.at(6, i, 1), "each name once", "%q is the name of two errors", name)
		}
		if code < minErrorCode || code > maxErrorCode {
			r.add(r.at(6, i, 2), "0x20 to 0x5e", "0x%02x is not the code of an application error", code)
		} else if codes[code] != "" {
			r.add(r.at(6, i, 2), "each code once", "0x%02x is also the code of %q", code, codes[code])
		}
		codes[code], names[name] = name, true
		s.Errors = append(s.Errors, model.SOMEIPError{Name: name, Code: uint8(code)})
	}
}

// checkIDs finds ids that two elements have.
func (r *interfaceReader) checkIDs() {
	seen := map[uint16]string{}
	check := func(rpc string, e *model.SOMEIPElement) {
		if e == nil {
			return
		}
		if before, ok := seen[e.ID]; ok {
			m := r.service.Methods().ByName(protoreflect.Name(rpc))
			r.add(r.rpcAt(m, someipRPCExtension, 1), "each id once", "%s is also the id of %s", hex(uint32(e.ID)), before)
			return
		}
		seen[e.ID] = rpc
	}
	methods, events := map[string]*model.SOMEIPElement{}, map[string]*model.SOMEIPElement{}
	for _, m := range r.iface.AllMethods() {
		methods[m.RPC] = m.SOMEIP
	}
	for _, e := range r.iface.AllEvents() {
		events[e.RPC] = e.SOMEIP
	}
	for i := range r.service.Methods().Len() { // in the order of the file
		rpc := string(r.service.Methods().Get(i).Name())
		check(rpc, methods[rpc])
		check(rpc, events[rpc])
	}
}
