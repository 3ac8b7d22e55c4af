// A lease of a rate, held by polling: a client of lessor serve in one file, to be read and copied.
//
// It asks a server every few seconds for so much a second of one resource, and is given a lease: this much, until then.
// TryAcquire and Acquire take units from a bucket that the lease fills, and look at no network. Each field that is sent and
// heeded here stands in docs/wire.md, with its rule.
//
// Left out are gauges, streams, the measuring of demand (wants is what the program says), burst tiers of domains, and safe
// capacity: from the end of its lease on it uses nothing. One resource goes in a request, so a refusal is about that one.
//
// The package lessor/doorman is generated, under whichever import path suits your module:
//
//	protoc -I proto --go_out=DIR --go_opt=Mdoorman.proto=lessor/doorman \
//	  --go-grpc_out=DIR --go-grpc_opt=Mdoorman.proto=lessor/doorman doorman.proto
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "lessor/doorman"
)

const (
	generation = 1                     // Lease.generation of a rate
	timeout    = 5 * time.Second       // of one request
	soon       = 50 * time.Millisecond // no two reports are closer, but for redirects and a change of wants
	never      = time.Minute           // nothing is to be had before an answer comes, which ends the wait
)

// refusals are answers of a server that has understood, and says no: another one would say the same.
var refusals = map[codes.Code]bool{
	codes.InvalidArgument: true, codes.NotFound: true, codes.FailedPrecondition: true,
	codes.PermissionDenied: true, codes.Unauthenticated: true, codes.ResourceExhausted: true,
}

// ErrClosed says that the program itself has ended the lease.
var ErrClosed = errors.New("closed")

// Rate is so much a second of one resource. Its methods may be called by many goroutines at once.
type Rate struct {
	client, resource string
	servers          []string
	options          []grpc.DialOption
	incarnation      uint64 // drawn at random, so that the process before is not taken for this one
	going            context.Context
	stop             context.CancelFunc
	done             chan struct{}
	wake             chan struct{} // there is something to report
	turn             chan struct{} // held by the one who waits; the others wait for it, in order

	mu        sync.Mutex    // for what follows
	news      chan struct{} // closed and made anew when an answer has come
	wants     float64
	lease     *pb.Lease     // the one adopted last, as it came, unknown fields included
	capacity  float64       // units a second that may be used: nothing once the lease is over
	end       time.Duration // of the lease, by our clock
	saved     float64       // units in the bucket
	at        time.Duration // when it was filled last
	burst     time.Duration // what may be saved up, as the time in which the lease brings it
	unitDue   time.Duration // when the next unit is due, of a lease that is too small to save one up; else 0
	due       time.Duration // when to report next, but not before
	notBefore time.Duration // a server that failed or refused has had its rest
	fault     error         // why nothing is leased

	// What follows belongs to the goroutine of run, and to Close after that.
	conns    map[string]*grpc.ClientConn
	reportID uint64
	sent     map[uint64]time.Duration // when the last reports were sent
	fence    uint64                   // the greatest epoch of any answer
	leader   string                   // whom a server has named; "" for the one of the list whose turn it is
	server   int                      // whose turn that is
	hops     int                      // servers in a row that named another one
	failures int                      // in a row
	refused  int                      // in a row
}

// Open leases up to wants units a second of resource from servers, HOST:PORT each, of which one leads. No other process may
// have the name client at a time. The options say how to connect, with TLS or without.
func Open(client, resource string, wants float64, servers []string, options ...grpc.DialOption) *Rate {
	check(len(servers) > 0, "servers: none is given, wanted HOST:PORT at least once")
	checkWants(wants)
	var drawn [8]byte
	if _, err := rand.Read(drawn[:]); err != nil {
		panic(err)
	}
	going, stop := context.WithCancel(context.Background())
	r := &Rate{
		client: client, resource: resource, wants: wants, servers: servers, options: options,
		incarnation: binary.LittleEndian.Uint64(drawn[:]), going: going, stop: stop, done: make(chan struct{}),
		wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), news: make(chan struct{}), at: now(),
		fault: errors.New("no server has answered yet"),
		conns: map[string]*grpc.ClientConn{}, sent: map[uint64]time.Duration{},
	}
	go r.run()
	return r
}

// Close uses nothing from here on, and says so; where no server hears it the lease counts until it ends.
func (r *Rate) Close() {
	r.mu.Lock() // so that no attempt is half way
	r.stop()
	r.mu.Unlock()
	<-r.done
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if server, err := r.connect(); err == nil {
		_, _ = server.ReleaseCapacity(ctx, &pb.ReleaseCapacityRequest{
			ClientId: &r.client, ResourceId: []string{r.resource},
			Incarnation: &r.incarnation, ReportId: proto.Uint64(r.reportID + 1),
		})
	}
	for _, conn := range r.conns {
		conn.Close()
	}
}

// SetWants says how many units a second the program could use, and reports it at once.
func (r *Rate) SetWants(wants float64) {
	checkWants(wants)
	r.mu.Lock()
	r.wants, r.due = wants, 0
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
}

// TryAcquire takes n units if they are there, and says whether. It does not wait.
func (r *Rate) TryAcquire(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.take(now(), n) == 0
}

// Acquire takes n units as the lease brings them, and returns when it has the last one. Those who wait are served in order.
// What it has taken when ctx ends is lost, as it may not be used at another moment than when it was taken.
func (r *Rate) Acquire(ctx context.Context, n int) error {
	checkUnits(n)
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return r.denied(ctx.Err())
	}
	for n > 0 {
		r.mu.Lock()
		bit := int(math.Max(1, math.Min(float64(n), r.depth())))
		wait, news := r.take(now(), bit), r.news
		r.mu.Unlock()
		if wait == 0 {
			n -= bit
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-news:
		case <-r.going.Done():
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil || r.going.Err() != nil {
			return r.denied(ctx.Err())
		}
	}
	return nil
}

func (r *Rate) denied(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.going.Err() != nil:
		return fmt.Errorf("%s: %w", r.resource, ErrClosed)
	case r.fault != nil:
		return fmt.Errorf("%s: %w: %v", r.resource, err, r.fault)
	}
	return fmt.Errorf("%s: %w: all of the lease is used, or it is over", r.resource, err)
}

// === the bucket ===

// every is the time in which the lease brings a unit.
func (r *Rate) every() time.Duration { return latest(1, seconds(1/r.capacity)) }

// depth is the units that may be saved up: what the lease brings in the burst, and where that is less one, or none if the
// server says when one is due.
func (r *Rate) depth() float64 {
	if r.capacity == 0 || r.unitDue > 0 {
		return 0
	}
	return math.Max(1, r.capacity*r.burst.Seconds())
}

// flow fills the bucket with what the lease has brought, and empties it when the lease is over.
func (r *Rate) flow(now time.Duration) {
	if now >= r.end {
		r.capacity, r.unitDue = 0, 0
	}
	r.saved = math.Min(r.saved+r.capacity*(now-r.at).Seconds(), r.depth())
	r.at = now
}

// take takes n units and returns 0, or says after how long it is worth while to try again.
func (r *Rate) take(now time.Duration, n int) time.Duration {
	checkUnits(n)
	r.flow(now)
	switch {
	case r.going.Err() != nil || r.capacity == 0:
		return never
	case r.unitDue > 0:
		return r.takeDue(now, n)
	case float64(n) > r.depth():
		return never // so many never come together
	case r.saved < float64(n):
		return seconds((float64(n)-r.saved)/r.capacity) + 1
	}
	r.saved -= float64(n)
	return 0
}

// takeDue takes the unit that is due, within the burst; whom it finds absent loses it.
func (r *Rate) takeDue(now time.Duration, n int) time.Duration {
	if late := now - r.burst - r.unitDue; late >= 0 {
		r.unitDue += (late/r.every() + 1) * r.every()
	}
	if n > 1 {
		return never
	}
	if r.unitDue > now {
		return r.unitDue - now
	}
	r.unitDue += r.every()
	return 0
}

// === the lease ===

// report says what is wanted and what is held. The limit is lowered first, so that nobody can take what it gives back.
func (r *Rate) report(now time.Duration) *pb.ResourceRequest {
	r.flow(now)
	r.capacity = math.Min(r.capacity, r.wants)
	r.flow(now)
	report := &pb.ResourceRequest{
		ResourceId: &r.resource, Priority: proto.Int64(0), Wants: proto.Float64(r.wants), Integer: proto.Bool(false),
	}
	if r.lease == nil || (r.lease.Seq == nil && now >= r.end) {
		return report
	}
	// The whole lease with what is held of it, also when that is nothing, or we would pass for a newcomer.
	report.Has = proto.Clone(r.lease).(*pb.Lease)
	report.Has.Capacity = proto.Float64(r.capacity)
	if r.lease.Seq != nil {
		report.Held = proto.Float64(r.capacity)
	}
	if r.lease.Seq != nil && r.fence > r.lease.GetEpoch() && now < r.end {
		// To a leader that did not grant it.
		report.Has.RemainingMs = proto.Uint64(uint64(latest(1, (r.end-now)/time.Millisecond)))
	}
	return report
}

// adopt takes up a grant. It counts from when the report was sent that it answers, not from when the answer came.
func (r *Rate) adopt(now, sent time.Duration, lease *pb.Lease) {
	last := r.lease
	if lease.Seq != nil && lease.GetEpoch() < r.fence {
		return // of a leader that was succeeded
	}
	if lease.Seq != nil && last != nil && last.Seq != nil && (lease.GetEpoch() < last.GetEpoch() ||
		lease.GetEpoch() == last.GetEpoch() && lease.GetSeq() <= last.GetSeq()) {
		return // a later one has overtaken it
	}
	end := sent + time.Duration(lease.GetDurationMs())*time.Millisecond
	if lease.DurationMs == nil { // a server of Doorman's
		end = earliest(now+time.Until(time.Unix(lease.GetExpiryTime(), 0)), sent+time.Hour)
	}
	if end <= now {
		return
	}
	r.flow(now)
	r.lease, r.end, r.fault, r.capacity = lease, end, nil, math.Max(0, lease.GetCapacity())
	isOther := lease.Generation != nil && lease.GetGeneration() != generation
	if isOther {
		r.capacity, r.fault = 0, errors.New("it is a gauge")
	}
	// A little earlier than asked for, each client at another moment, and never later than at two thirds of the lease.
	refresh := math.Max(1, float64(lease.GetRefreshInterval())) * (0.9 + 0.1*mathrand.Float64())
	r.due = sent + earliest(seconds(refresh), (end-sent)*2/3)
	if lease.GetAckWanted() || isOther {
		r.due = latest(now, sent+soon) // somebody waits for what this takes away, and of a rate nothing stays in use
	}
	r.burst = 50 * time.Millisecond
	if lease.BurstUs != nil {
		r.burst = time.Duration(lease.GetBurstUs()) * time.Microsecond
	}
	before := r.unitDue
	r.unitDue = 0
	if lease.DueUs != nil && r.capacity > 0 {
		r.unitDue = sent + time.Duration(lease.GetDueUs())*time.Microsecond
		// A unit that was taken already is not due again.
		if ahead := before - r.unitDue - r.every()/2; before > now && ahead > 0 {
			r.unitDue += (ahead + r.every() - 1) / r.every() * r.every()
		}
	}
	r.flow(now) // down to what the bucket holds from here on
}

// === the network ===

func (r *Rate) run() {
	defer close(r.done)
	for r.going.Err() == nil {
		r.mu.Lock()
		wait := latest(r.due, r.notBefore) - now()
		r.mu.Unlock()
		if wait <= 0 {
			r.ask()
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.going.Done():
		}
		timer.Stop()
	}
}

// ask makes one request and takes up its answer. No other is under way.
func (r *Rate) ask() {
	r.mu.Lock()
	sent := now() // before it is sent
	report := r.report(sent)
	limit := timeout
	if r.end > sent { // a lease that ends soon leaves less time to ask another server
		limit = earliest(timeout, latest(time.Second, (r.end-sent)/3))
	}
	r.mu.Unlock()
	r.reportID++
	r.sent[r.reportID] = sent
	delete(r.sent, r.reportID-8)
	request := &pb.GetCapacityRequest{
		ClientId: &r.client, Incarnation: &r.incarnation, ReportId: proto.Uint64(r.reportID),
		Resource: []*pb.ResourceRequest{report},
	}
	if r.fence > 0 {
		request.TargetEpoch = proto.Uint64(r.fence)
	}
	ctx, cancel := context.WithTimeout(r.going, limit)
	defer cancel()
	server, err := r.connect()
	var answer *pb.GetCapacityResponse
	if err == nil {
		answer, err = server.GetCapacity(ctx, request)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.answered(answer)
	case refusals[status.Code(err)]:
		r.failures, r.refused, r.fault = 0, r.refused+1, errors.New(status.Convert(err).Message())
		r.due, r.notBefore = 0, now()+backOff(r.refused)
	default:
		r.failed(errors.New(status.Convert(err).Message()))
	}
	if r.wants != report.GetWants() {
		r.due = 0 // that is news
	}
	close(r.news)
	r.news = make(chan struct{})
}

// connect is the service of the server to be asked, over a connection that is kept.
func (r *Rate) connect() (pb.CapacityClient, error) {
	address := r.leader
	if address == "" {
		address = r.servers[r.server]
	}
	if r.conns[address] == nil {
		conn, err := grpc.Dial(address, r.options...)
		if err != nil {
			return nil, err
		}
		r.conns[address] = conn
	}
	return pb.NewCapacityClient(r.conns[address]), nil
}

func (r *Rate) answered(answer *pb.GetCapacityResponse) {
	if answer.GetEpoch() > r.fence {
		r.fence = answer.GetEpoch()
	}
	if answer.Mastership != nil { // another one leads
		r.leader, r.hops = answer.Mastership.GetMasterAddress(), r.hops+1
		if r.leader == "" || r.hops > 5 {
			r.failed(errors.New("no server leads"))
		} else {
			r.due = now()
		}
		return
	}
	r.failures, r.refused, r.hops = 0, 0, 0
	again := time.Second
	if answer.RetryMs != nil {
		again = latest(soon, time.Duration(answer.GetRetryMs())*time.Millisecond)
	}
	r.due = now() + again // unless there is a grant
	for _, response := range answer.Response {
		basis := r.reportID
		if response.Gets.Basis != nil {
			basis = response.Gets.GetBasis()
		}
		// A grant on a report that is not known here is too old.
		if sent, known := r.sent[basis]; known && response.GetResourceId() == r.resource {
			r.adopt(now(), sent, response.Gets)
		}
	}
	if answer.RetryMs != nil && r.capacity < r.wants { // there may be more before the refresh interval is over
		r.due = earliest(r.due, now()+again)
	}
}

// failed goes on to the next server of the list, after a wait that doubles with every round over all of them.
func (r *Rate) failed(err error) {
	for address, conn := range r.conns { // it would wait by a back-off of its own on top of ours
		conn.Close()
		delete(r.conns, address)
	}
	if r.leader == "" {
		r.server = (r.server + 1) % len(r.servers)
	}
	r.due, r.notBefore = 0, now()+backOff(r.failures/len(r.servers))
	r.leader, r.hops, r.failures = "", 0, r.failures+1
	if now() >= r.end {
		r.fault = err
	}
}

// backOff is a quarter of a second, doubled so many times, 16 seconds at the most; half of it is drawn at random.
func backOff(times int) time.Duration {
	return seconds(math.Min(0.25*math.Exp2(float64(times)), 16) * (0.5 + 0.5*mathrand.Float64()))
}

// check panics where the program is wrong.
func check(holds bool, format string, values ...interface{}) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

func checkUnits(n int) { check(n >= 1, "n: %d is no number of units, wanted 1 or more", n) }

func checkWants(wants float64) {
	check(wants >= 0, "wants: %v, wanted units a second, 0 or more", wants)
}

// === times ===

// now reads a clock that nobody sets, and that goes on while the machine is suspended. By one that stands still, as the
// monotonic clock of package time does, a lease would last for longer than its server counts it.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // Linux has had it since 2.6.39
	}
	return time.Duration(t.Nano())
}

// seconds is so many of them, and thirty years at the most, which a Duration holds.
func seconds(s float64) time.Duration { return time.Duration(math.Min(s, 1e9) * float64(time.Second)) }

func earliest(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

func latest(a, b time.Duration) time.Duration {
	if a > b {
		return a
	}
	return b
}
