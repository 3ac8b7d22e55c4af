package main

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
)

// codec is for Debian's packages, and of no use elsewhere: their gRPC stands on protobuf 1.3, which does not know the messages
// that their protoc-gen-go makes. By Go modules it stands on one that does.
type codec struct{}

func (codec) Name() string { return "proto" }
func (codec) Marshal(message interface{}) ([]byte, error) {
	return proto.Marshal(message.(proto.Message))
}
func (codec) Unmarshal(data []byte, message interface{}) error {
	return proto.Unmarshal(data, message.(proto.Message))
}

func init() { encoding.RegisterCodec(codec{}) }
