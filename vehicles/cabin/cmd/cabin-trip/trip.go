package main

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

// legs are the routes that the trip computer knows.
var legs = map[string]*tripv1.TripComputerLegResponse{
	"commute": {Kilometres: 42.5, Waypoints: []string{"Home", "Bridge", "Office"}},
	"holiday": {Kilometres: 1280.25, Waypoints: []string{"Home", "Alps", "Lake"}},
}

const (
	maxSpeed            = 400 // km/h
	consumptionInterval = 500 * time.Millisecond
	fullRange           = 600 // km
	lowRange            = 500 // km
)

type tripComputer struct {
	tripv1.UnimplementedTripComputerServer
}

// Leg returns a leg by name.
func (*tripComputer) Leg(_ context.Context, in *tripv1.TripComputerLegRequest) (*tripv1.TripComputerLegResponse, error) {
	if in.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "name is empty")
	}
	leg, ok := legs[in.GetName()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no leg %q", in.GetName())
	}
	return leg, nil
}

// Average returns the mean of some speeds and its class.
func (*tripComputer) Average(_ context.Context, in *tripv1.TripComputerAverageRequest) (*tripv1.TripComputerAverageResponse, error) {
	if len(in.GetSpeeds()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no speeds")
	}
	var sum float32
	for i, v := range in.GetSpeeds() {
		if v > maxSpeed {
			return nil, status.Errorf(codes.OutOfRange, "speeds[%d] is %d km/h, above %d", i, v, maxSpeed)
		}
		sum += float32(v)
	}
	mean := sum / float32(len(in.GetSpeeds()))
	return &tripv1.TripComputerAverageResponse{Mean: mean, SpeedClass: classOf(mean)}, nil
}

func classOf(mean float32) tripv1.SpeedClass {
	switch {
	case mean < 30:
		return tripv1.SpeedClass_SPEED_CLASS_CITY
	case mean < 90:
		return tripv1.SpeedClass_SPEED_CLASS_ROAD
	default:
		return tripv1.SpeedClass_SPEED_CLASS_HIGHWAY
	}
}

// WatchConsumption sends the consumption until the watcher leaves.
func (*tripComputer) WatchConsumption(_ *tripv1.TripComputerWatchConsumptionRequest, stream grpc.ServerStreamingServer[tripv1.TripComputerWatchConsumptionResponse]) error {
	ticker := time.NewTicker(consumptionInterval)
	defer ticker.Stop()
	for km := uint32(fullRange); ; km-- {
		if km < lowRange {
			km = fullRange
		}
		if err := stream.Send(&tripv1.TripComputerWatchConsumptionResponse{Litres: 6.5, RangeKm: km}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-ticker.C:
		}
	}
}
