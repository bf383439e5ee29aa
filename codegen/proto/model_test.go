package proto_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
)

const cabin = "../../vehicles/cabin/interfaces"

// number, text and so on are the defaults of options.proto, written out.
func number(k model.Kind, p model.ProtoType, width uint8) *model.Type {
	return &model.Type{Kind: k, Proto: p, SOMEIP: model.SOMEIPType{Width: width, DataID: -1}}
}

func text(change func(*model.SOMEIPType)) *model.Type {
	t := &model.Type{Kind: model.String, Proto: model.ProtoString, SOMEIP: model.SOMEIPType{LengthWidth: 4, BOM: true, Terminator: true, DataID: -1}}
	if change != nil {
		change(&t.SOMEIP)
	}
	return t
}

func array(elem *model.Type, lengthWidth uint8, limit uint32) *model.Type {
	return &model.Type{Kind: model.ArrayKind, Elem: elem, SOMEIP: model.SOMEIPType{LengthWidth: lengthWidth, Max: limit, DataID: -1}}
}

func member(number int32, name string, t *model.Type) *model.Member {
	return &model.Member{Name: name, Number: number, Type: t}
}

// literals takes names and values in turn.
func literals(list ...any) []model.Literal {
	var out []model.Literal
	for i := 0; i < len(list); i += 2 {
		out = append(out, model.Literal{Name: list[i].(string), Value: int64(list[i+1].(int))})
	}
	return out
}

func args(name string, members ...*model.Member) *model.Struct {
	return &model.Struct{Name: "cabin.climate.v1.Climate" + name, Members: members}
}

func requireModel(t *testing.T, want, got any) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreTypes(model.Position{}), cmpopts.EquateEmpty()))
}

func TestLoadCabin(t *testing.T) {
	set, err := proto.Load(cabin)
	require.NoError(t, err)
	require.Len(t, set.Interfaces, 2)
	climate := set.Interface("cabin.climate.v1.Climate")
	require.Same(t, climate, set.BySOMEIP(0x4001, 1))
	require.Equal(t, "cabin.trip.v1.TripComputer", set.BySOMEIP(0x5001, 1).FullName())
	require.Nil(t, set.BySOMEIP(0x4001, 2))
	require.Nil(t, set.Interface("cabin.climate.v2.Climate"))
	require.Equal(t, model.Position{File: cabin + "/cabin/climate/v1/climate.proto", Line: 17, Column: 1}, climate.Pos)

	mode := &model.Enum{Name: "cabin.climate.v1.Mode", Width: 1, Literals: literals("MODE_OFF", 0, "MODE_AUTO", 1, "MODE_HEAT", 2, "MODE_COOL", 3)}
	modeType := &model.Type{Kind: model.EnumKind, Enum: mode, Proto: model.ProtoEnum, SOMEIP: model.SOMEIPType{Width: 1, DataID: -1}}
	direction := &model.Enum{Name: "cabin.climate.v1.Direction", Width: 2, Literals: literals("DIRECTION_CENTER", 0, "DIRECTION_UP", 1, "DIRECTION_DOWN", 2)}
	float := number(model.Float32, model.ProtoFloat, 0)
	u8, u16 := number(model.Uint8, model.ProtoUint32, 1), number(model.Uint16, model.ProtoUint32, 2)
	sensor := &model.Struct{Name: "cabin.climate.v1.Sensor", Members: []*model.Member{
		member(1, "name", text(nil)), member(2, "celsius", float), member(3, "healthy", number(model.Bool, model.ProtoBool, 0)),
	}}
	vent := &model.Struct{Name: "cabin.climate.v1.Vent", SOMEIP: model.SOMEIPStruct{LengthWidth: 2}, Members: []*model.Member{
		member(1, "position", u8), member(2, "opening", u8),
		member(3, "direction", &model.Type{Kind: model.EnumKind, Enum: direction, Proto: model.ProtoEnum, SOMEIP: model.SOMEIPType{Width: 2, DataID: -1}}),
	}}
	structType := func(s *model.Struct) *model.Type {
		return &model.Type{Kind: model.StructKind, Struct: s, Proto: model.ProtoMessage, SOMEIP: model.SOMEIPType{LengthWidth: s.SOMEIP.LengthWidth, DataID: -1}}
	}
	packed := func(m *model.Member) *model.Member { m.Packed = true; return m }
	element := func(id uint16, groups ...uint16) *model.SOMEIPElement {
		return &model.SOMEIPElement{ID: id, Eventgroups: groups}
	}

	temperature := &model.Field{
		Name: "TargetTemperature",
		Getter: &model.Method{
			Name: "TargetTemperature", RPC: "GetTargetTemperature", SOMEIP: element(0x10),
			In: args("GetTargetTemperatureRequest"), Out: args("GetTargetTemperatureResponse", member(1, "celsius", float)),
		},
		Setter: &model.Method{
			Name: "TargetTemperature", RPC: "SetTargetTemperature", SOMEIP: element(0x11),
			In: args("SetTargetTemperatureRequest", member(1, "celsius", float)), Out: args("SetTargetTemperatureResponse", member(1, "celsius", float)),
		},
		Notifier: &model.Event{
			Name: "TargetTemperature", RPC: "WatchTargetTemperature", SOMEIP: element(0x8002, 2), MetaNumber: 1000,
			Args: args("WatchTargetTemperatureResponse", member(1, "celsius", float)),
		},
	}
	temperature.Notifier.Field = temperature
	requireModel(t, &model.Interface{
		Package: "cabin.climate", Name: "Climate", Version: model.Version{Major: 1, Minor: 2},
		Methods: []*model.Method{
			{
				Name: "Describe", RPC: "Describe", Idempotent: true, SOMEIP: element(1), In: args("DescribeRequest"),
				Out: args("DescribeResponse", member(1, "zone", text(nil)), member(2, "mode", modeType),
					member(3, "sensors", array(structType(sensor), 4, 0)), member(4, "software_version", u16)),
			},
			{
				Name: "SetVents", RPC: "SetVents", SOMEIP: &model.SOMEIPElement{ID: 2, Reliable: true},
				In:  args("SetVentsRequest", member(1, "vents", array(structType(vent), 2, 16))),
				Out: args("SetVentsResponse", packed(member(1, "moved", array(u8, 1, 0)))),
			},
			{
				Name: "SetMode", RPC: "SetMode", SOMEIP: element(3),
				In: args("SetModeRequest", member(1, "mode", modeType),
					member(2, "reason", text(func(s *model.SOMEIPType) { s.LengthWidth, s.Max = 2, 64 }))),
				Out: args("SetModeResponse", member(1, "previous", modeType)),
			},
			{
				Name: "Boost", RPC: "Boost", SOMEIP: element(4),
				In: args("BoostRequest", member(1, "seconds", u16)), Out: args("BoostResponse", member(1, "granted", u16)),
			},
			{
				Name: "Purge", RPC: "Purge", FireAndForget: true, SOMEIP: element(5),
				In: args("PurgeRequest", member(1, "strength", u8)), Out: args("PurgeResponse"),
			},
		},
		Events: []*model.Event{{
			Name: "AirQuality", RPC: "WatchAirQuality", SOMEIP: element(0x8001, 1), MetaNumber: 1000,
			Args: args("WatchAirQualityResponse", member(1, "co2_ppm", u16), member(2, "dust", float), member(3, "source", text(nil)),
				packed(member(4, "samples", array(u16, 4, 0)))),
		}},
		Fields: []*model.Field{temperature},
		SOMEIP: &model.SOMEIPService{
			ServiceID: 0x4001,
			Instances: []model.SOMEIPInstance{{Name: "left", ID: 1}, {Name: "right", ID: 2}},
			Errors:    []model.SOMEIPError{{Name: "BLOWER_BLOCKED", Code: 0x21}, {Name: "NOT_IN_THIS_MODE", Code: 0x22}},
		},
	}, climate)
}

func TestKindsOfRPC(t *testing.T) {
	set, err := proto.Load("testdata/good")
	require.NoError(t, err)
	kinds := set.Interface("kinds.v2.Kinds")
	require.Equal(t, model.Version{Major: 2, Minor: 7}, kinds.Version)
	require.Equal(t, &model.SOMEIPService{ServiceID: 0x2001, LittleEndian: true, LengthsInPayloadOrder: true, StandardCodesOnly: true}, kinds.SOMEIP)

	var methods, events []string
	for _, m := range kinds.Methods {
		methods = append(methods, m.Name)
	}
	for _, e := range kinds.Events {
		events = append(events, e.Name)
	}
	require.Equal(t, []string{"Take", "Choose", "Local", "GetDevices"}, methods)
	require.Equal(t, []string{"Plain", "Marked", "Watch"}, events)
	require.True(t, kinds.Methods[0].Idempotent)
	require.Nil(t, kinds.Methods[2].SOMEIP)
	require.Equal(t, &model.SOMEIPElement{ID: 0x8001, Reliable: true, Eventgroups: []uint16{1, 2}}, kinds.Events[0].SOMEIP)
	require.Equal(t, []model.Unexposed{
		{RPC: "Up", Reason: "a stream from the client"},
		{RPC: "Both", Reason: "a stream in both directions"},
		{RPC: "Arguments", Reason: "a stream with arguments"},
	}, kinds.Unexposed)
	devices := kinds.Fields[0]
	require.Equal(t, "Devices", devices.Name)
	require.Equal(t, "GetDevicesField", devices.Getter.RPC)
	require.Nil(t, devices.Setter)
	require.Same(t, devices, devices.Notifier.Field)
	require.EqualValues(t, 1000, devices.Notifier.MetaNumber)
}

func TestKindsOfType(t *testing.T) {
	set, err := proto.Load("testdata/good")
	require.NoError(t, err)
	take := set.Interface("kinds.v2.Kinds").Methods[0]
	le := func(t *model.Type) *model.Type { t.SOMEIP.LittleEndian = true; return t }
	packed := func(m *model.Member) *model.Member { m.Packed = true; return m }
	ordinal := &model.Enum{Name: "kinds.v2.Ordinal", Width: 2, Literals: literals("ORDINAL_NONE", 0, "ORDINAL_MANY", 65535)}
	counted := func(elem *model.Type, count uint32, lengthWidth uint8) *model.Type {
		a := le(array(elem, lengthWidth, 0))
		a.SOMEIP.Count = count
		return a
	}
	requireModel(t, []*model.Member{
		member(1, "flag", number(model.Bool, model.ProtoBool, 0)),
		member(2, "i8", le(number(model.Int8, model.ProtoInt32, 1))),
		member(3, "i16", number(model.Int16, model.ProtoSint32, 2)),
		member(4, "i32", le(number(model.Int32, model.ProtoSfixed32, 4))),
		member(5, "i64", le(number(model.Int64, model.ProtoSint64, 8))),
		member(6, "u8", le(number(model.Uint8, model.ProtoFixed32, 1))),
		member(7, "u16", le(number(model.Uint16, model.ProtoUint64, 2))),
		member(8, "u32", le(number(model.Uint32, model.ProtoUint64, 4))),
		member(9, "u64", le(number(model.Uint64, model.ProtoFixed64, 8))),
		member(10, "f32", le(number(model.Float32, model.ProtoFloat, 0))),
		member(11, "f64", le(number(model.Float64, model.ProtoDouble, 0))),
		member(12, "ordinal", &model.Type{Kind: model.EnumKind, Enum: ordinal, Proto: model.ProtoEnum, SOMEIP: model.SOMEIPType{Width: 2, LittleEndian: true, DataID: -1}}),
		member(13, "unpacked", counted(le(number(model.Int32, model.ProtoSfixed64, 4)), 3, 0)),
		packed(member(14, "counted", counted(le(number(model.Uint8, model.ProtoUint32, 1)), 3, 2))),
	}, take.In.Members)

	part := &model.Struct{Name: "kinds.v2.Part", SOMEIP: model.SOMEIPStruct{LengthWidth: 4}, Members: []*model.Member{
		member(1, "number", le(number(model.Uint32, model.ProtoUint32, 4))),
	}}
	requireModel(t, []*model.Member{
		member(1, "plain", le(text(nil))),
		member(2, "fixed", le(text(func(s *model.SOMEIPType) { s.LengthWidth, s.FixedLength, s.Encoding = 0, 10, model.UTF16BE }))),
		member(3, "bare", le(text(func(s *model.SOMEIPType) { s.LengthWidth, s.BOM, s.Terminator, s.Max = 1, false, false, 20 }))),
		member(4, "raw", &model.Type{Kind: model.Bytes, Proto: model.ProtoBytes, SOMEIP: model.SOMEIPType{LengthWidth: 2, LittleEndian: true, DataID: -1}}),
		member(5, "list", le(array(le(text(func(s *model.SOMEIPType) { s.Encoding = model.UTF16LE })), 2, 9))),
		member(6, "parts", &model.Type{
			Kind: model.MapKind, Proto: model.ProtoMessage, Key: le(text(nil)),
			Elem:   le(&model.Type{Kind: model.StructKind, Struct: part, Proto: model.ProtoMessage, SOMEIP: model.SOMEIPType{LengthWidth: 4, DataID: -1}}),
			SOMEIP: model.SOMEIPType{LengthWidth: 1, Max: 3, LittleEndian: true, DataID: -1},
		}),
	}, take.Out.Members)

	requireModel(t, []*model.Member{
		member(1, "before", number(model.Bool, model.ProtoBool, 0)),
		member(0, "choice", le(&model.Type{
			Kind: model.UnionKind, SOMEIP: model.SOMEIPType{Width: 4, LengthWidth: 4, DataID: -1},
			Struct: &model.Struct{Name: "kinds.v2.Choice.choice", Members: []*model.Member{
				member(5, "number", le(number(model.Uint16, model.ProtoUint32, 2))),
				member(2, "part", le(&model.Type{Kind: model.StructKind, Struct: part, Proto: model.ProtoMessage, SOMEIP: model.SOMEIPType{LengthWidth: 4, DataID: -1}})),
			}},
		})),
		member(3, "after", number(model.Bool, model.ProtoBool, 0)),
	}, set.Interface("kinds.v2.Kinds").Methods[1].In.Members)

	level := set.Interface("kinds.v2.Kinds").Fields[0].Getter.Out.Members[0].Type.Struct
	require.True(t, level.Members[0].Optional)
	require.EqualValues(t, 0, level.Members[0].Type.SOMEIP.DataID)
	require.False(t, level.Members[1].Optional)
	require.EqualValues(t, 7, level.Members[1].Type.SOMEIP.DataID)
}

// An interface without SOME/IP deployment may have types that SOME/IP has not.
func TestNativeTypes(t *testing.T) {
	set, err := proto.Load("testdata/good")
	require.NoError(t, err)
	native := set.Interface("kinds.v2.Native")
	require.Nil(t, native.SOMEIP)
	tree := native.Methods[0].In
	require.Len(t, tree.Members, 2)
	require.Equal(t, model.UnionKind, tree.Members[0].Type.Kind)
	left := tree.Members[0].Type.Struct.Members[1].Type.Struct
	require.Same(t, left, left.Members[0].Type.Struct.Members[1].Type.Struct)
	require.True(t, tree.Members[1].Optional)
}
