// A gRPC server and a client of grpc-go, whose client runs the cases of gRPC's interoperability tests that the gateway must pass.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"io/ioutil"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	pb "google.golang.org/grpc/test/grpc_testing"
)

const (
	initialKey  = "x-grpc-test-echo-initial"
	trailingKey = "x-grpc-test-echo-trailing-bin"
	maxMessage  = 16 << 20
)

type service struct {
	pb.UnimplementedTestServiceServer
}

// echo sends the metadata back, as headers and as trailers.
func echo(ctx context.Context, header, trailer func(metadata.MD)) {
	fields, _ := metadata.FromIncomingContext(ctx)
	if values := fields[initialKey]; len(values) > 0 {
		header(metadata.Pairs(initialKey, values[0]))
	}
	if values := fields[trailingKey]; len(values) > 0 {
		trailer(metadata.Pairs(trailingKey, values[0]))
	}
}

// failure returns the status that the payload asks for, as "code message".
func failure(payload *pb.Payload) error {
	text := string(payload.GetBody())
	if !strings.HasPrefix(text, "fail ") {
		return nil
	}
	var code uint32
	fmt.Sscanf(text, "fail %d", &code)
	return status.Error(codes.Code(code), text[strings.Index(text[5:], " ")+6:])
}

func (service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) {
	return &pb.Empty{}, nil
}

func (service) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	echo(ctx,
		func(fields metadata.MD) { grpc.SetHeader(ctx, fields) },
		func(fields metadata.MD) { grpc.SetTrailer(ctx, fields) })
	if err := failure(in.Payload); err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: make([]byte, in.ResponseSize)}}, nil
}

func (service) StreamingOutputCall(in *pb.StreamingOutputCallRequest, stream pb.TestService_StreamingOutputCallServer) error {
	for _, parameters := range in.ResponseParameters {
		time.Sleep(time.Duration(parameters.IntervalUs) * time.Microsecond)
		out := &pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, parameters.Size)}}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
	return nil
}

func (service) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	size := 0
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)})
		}
		if err != nil {
			return err
		}
		size += len(in.GetPayload().GetBody())
	}
}

func (service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	echo(stream.Context(), func(fields metadata.MD) { stream.SetHeader(fields) }, stream.SetTrailer)
	for {
		in, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := failure(in.Payload); err != nil {
			return err
		}
		for _, parameters := range in.ResponseParameters {
			time.Sleep(time.Duration(parameters.IntervalUs) * time.Microsecond)
			out := &pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, parameters.Size)}}
			if err := stream.Send(out); err != nil {
				return err
			}
		}
	}
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	pb.RegisterTestServiceServer(server, service{})
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		io.Copy(ioutil.Discard, os.Stdin)
		os.Exit(0)
	}()
	check(server.Serve(listener))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(ok bool, format string, values ...interface{}) {
	if !ok {
		panic(fmt.Sprintf(format, values...))
	}
}

func payload(size int) *pb.Payload { return &pb.Payload{Body: make([]byte, size)} }

func sizes(all ...int32) []*pb.ResponseParameters {
	out := []*pb.ResponseParameters{}
	for _, size := range all {
		out = append(out, &pb.ResponseParameters{Size: size})
	}
	return out
}

func withDeadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}

var requestSizes = []int{27182, 8, 1828, 45904}
var responseSizes = []int32{31415, 9, 2653, 58979}

// cases have the names of gRPC's doc/interop-test-descriptions.md where they are the same.
var cases = []struct {
	name string
	run  func(connection *grpc.ClientConn)
}{
	{"empty_unary", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		_, err := pb.NewTestServiceClient(connection).EmptyCall(ctx, &pb.Empty{})
		check(err)
	}},
	{"large_unary", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		in := &pb.SimpleRequest{ResponseSize: 314159, Payload: payload(271828)}
		out, err := pb.NewTestServiceClient(connection).UnaryCall(ctx, in)
		check(err)
		expect(len(out.Payload.Body) == 314159, "%d bytes", len(out.Payload.Body))
	}},
	{"four_megabytes", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		in := &pb.SimpleRequest{ResponseSize: 4 << 20, Payload: payload(4 << 20)}
		out, err := pb.NewTestServiceClient(connection).UnaryCall(ctx, in,
			grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage))
		check(err)
		expect(len(out.Payload.Body) == 4<<20, "%d bytes", len(out.Payload.Body))
	}},
	{"client_compressed_unary", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		in := &pb.SimpleRequest{ResponseSize: 314159, Payload: payload(271828)}
		out, err := pb.NewTestServiceClient(connection).UnaryCall(ctx, in, grpc.UseCompressor(gzip.Name))
		check(err)
		expect(len(out.Payload.Body) == 314159, "%d bytes", len(out.Payload.Body))
	}},
	{"client_streaming", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		stream, err := pb.NewTestServiceClient(connection).StreamingInputCall(ctx)
		check(err)
		for _, size := range requestSizes {
			check(stream.Send(&pb.StreamingInputCallRequest{Payload: payload(size)}))
		}
		out, err := stream.CloseAndRecv()
		check(err)
		expect(out.AggregatedPayloadSize == 74922, "%d bytes", out.AggregatedPayloadSize)
	}},
	{"server_streaming", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		in := &pb.StreamingOutputCallRequest{ResponseParameters: sizes(responseSizes...)}
		stream, err := pb.NewTestServiceClient(connection).StreamingOutputCall(ctx, in)
		check(err)
		for _, size := range responseSizes {
			out, err := stream.Recv()
			check(err)
			expect(len(out.Payload.Body) == int(size), "%d bytes", len(out.Payload.Body))
		}
		_, err = stream.Recv()
		expect(err == io.EOF, "%v", err)
	}},
	{"ping_pong", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		stream, err := pb.NewTestServiceClient(connection).FullDuplexCall(ctx)
		check(err)
		for index, size := range responseSizes {
			check(stream.Send(&pb.StreamingOutputCallRequest{
				ResponseParameters: sizes(size), Payload: payload(requestSizes[index])}))
			out, err := stream.Recv()
			check(err)
			expect(len(out.Payload.Body) == int(size), "%d bytes", len(out.Payload.Body))
		}
		check(stream.CloseSend())
		_, err = stream.Recv()
		expect(err == io.EOF, "%v", err)
	}},
	{"empty_stream", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		stream, err := pb.NewTestServiceClient(connection).FullDuplexCall(ctx)
		check(err)
		check(stream.CloseSend())
		_, err = stream.Recv()
		expect(err == io.EOF, "%v", err)
	}},
	{"timeout_on_sleeping_server", func(connection *grpc.ClientConn) {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		in := &pb.StreamingOutputCallRequest{
			ResponseParameters: []*pb.ResponseParameters{{Size: 1, IntervalUs: 3_000_000}}}
		stream, err := pb.NewTestServiceClient(connection).StreamingOutputCall(ctx, in)
		if err == nil {
			_, err = stream.Recv()
		}
		expect(status.Code(err) == codes.DeadlineExceeded, "%v", err)
	}},
	{"cancel_after_begin", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		stream, err := pb.NewTestServiceClient(connection).StreamingInputCall(ctx)
		check(err)
		cancel()
		_, err = stream.CloseAndRecv()
		expect(status.Code(err) == codes.Canceled, "%v", err)
	}},
	{"cancel_after_first_response", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		stream, err := pb.NewTestServiceClient(connection).FullDuplexCall(ctx)
		check(err)
		check(stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: sizes(31415)}))
		_, err = stream.Recv()
		check(err)
		cancel()
		_, err = stream.Recv()
		expect(status.Code(err) == codes.Canceled, "%v", err)
	}},
	{"status_code_and_message", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		fail := &pb.Payload{Body: []byte("fail 2 test status message")}
		client := pb.NewTestServiceClient(connection)
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{Payload: fail})
		expect(status.Code(err) == codes.Unknown && status.Convert(err).Message() == "test status message", "%v", err)
		stream, err := client.FullDuplexCall(ctx)
		check(err)
		check(stream.Send(&pb.StreamingOutputCallRequest{Payload: fail}))
		_, err = stream.Recv()
		expect(status.Code(err) == codes.Unknown && status.Convert(err).Message() == "test status message", "%v", err)
	}},
	{"special_status_message", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		message := "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
		fail := &pb.Payload{Body: []byte("fail 2 " + message)}
		_, err := pb.NewTestServiceClient(connection).UnaryCall(ctx, &pb.SimpleRequest{Payload: fail})
		expect(status.Convert(err).Message() == message, "%q", status.Convert(err).Message())
	}},
	{"custom_metadata", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		raw := string([]byte{0xab, 0xab, 0xab, 0, 10, 13})
		ctx = metadata.AppendToOutgoingContext(ctx, initialKey, "test_initial_metadata_value", trailingKey, raw)
		var header, trailer metadata.MD
		client := pb.NewTestServiceClient(connection)
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: 1}, grpc.Header(&header), grpc.Trailer(&trailer))
		check(err)
		checkMetadata(header, trailer, raw)
		stream, err := client.FullDuplexCall(ctx)
		check(err)
		check(stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: sizes(1)}))
		_, err = stream.Recv()
		check(err)
		header, err = stream.Header()
		check(err)
		check(stream.CloseSend())
		_, err = stream.Recv()
		expect(err == io.EOF, "%v", err)
		checkMetadata(header, stream.Trailer(), raw)
	}},
	{"unimplemented_method", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		err := connection.Invoke(ctx, "/grpc.testing.TestService/None", &pb.Empty{}, &pb.Empty{})
		expect(status.Code(err) == codes.Unimplemented, "%v", err)
	}},
	{"unimplemented_service", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		err := connection.Invoke(ctx, "/grpc.testing.None/None", &pb.Empty{}, &pb.Empty{})
		expect(status.Code(err) == codes.Unimplemented, "%v", err)
	}},
	{"concurrent_large_unary", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		client := pb.NewTestServiceClient(connection)
		results := make(chan error)
		for index := 0; index < 100; index++ {
			go func(size int32) {
				out, err := client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: size, Payload: payload(100_000)})
				if err == nil && len(out.Payload.Body) != int(size) {
					err = fmt.Errorf("%d bytes", len(out.Payload.Body))
				}
				results <- err
			}(int32(1000 * index))
		}
		for index := 0; index < 100; index++ {
			check(<-results)
		}
	}},
	{"health", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		out, err := healthpb.NewHealthClient(connection).Check(ctx, &healthpb.HealthCheckRequest{})
		check(err)
		expect(out.Status == healthpb.HealthCheckResponse_SERVING, "%v", out.Status)
	}},
	{"reflection", func(connection *grpc.ClientConn) {
		ctx, cancel := withDeadline()
		defer cancel()
		stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
		check(err)
		check(stream.Send(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}))
		out, err := stream.Recv()
		check(err)
		names := []string{}
		for _, one := range out.GetListServicesResponse().GetService() {
			names = append(names, one.Name)
		}
		expect(strings.Contains(strings.Join(names, " "), "grpc.testing.TestService"), "%v", names)
		check(stream.CloseSend())
		_, err = stream.Recv()
		expect(err == io.EOF, "%v", err)
	}},
}

func checkMetadata(header, trailer metadata.MD, raw string) {
	expect(len(header[initialKey]) == 1 && header[initialKey][0] == "test_initial_metadata_value", "headers %v", header)
	expect(len(trailer[trailingKey]) == 1 && bytes.Equal([]byte(trailer[trailingKey][0]), []byte(raw)), "trailers %v", trailer)
}

// run prints "pass NAME" or "fail NAME REASON".
func run(name string, body func(*grpc.ClientConn), connection *grpc.ClientConn) {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Printf("fail %s %v\n", name, reason)
		}
	}()
	body(connection)
	fmt.Printf("pass %s\n", name)
}

func main() {
	address := flag.String("address", "", "of the gateway, for the client; none: be the server")
	authority := flag.String("authority", "", "the name to call, and that of the certificate")
	ca := flag.String("ca", "", "file with the CA of the certificate; none: cleartext")
	flag.Parse()
	if *address == "" {
		serve()
	}
	options := []grpc.DialOption{grpc.WithAuthority(*authority), grpc.WithInsecure()}
	if *ca != "" {
		pem, err := ioutil.ReadFile(*ca)
		check(err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		to := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: *authority})
		options = []grpc.DialOption{grpc.WithTransportCredentials(to)}
	}
	connection, err := grpc.Dial(*address, options...)
	check(err)
	for _, one := range cases {
		run(one.name, one.run, connection)
	}
}
