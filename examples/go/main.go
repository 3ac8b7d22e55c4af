package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// main takes units one after the other, and prints for each when it was had, in microseconds of the wall clock. A line
// "wants N" of standard input changes the wants, and the end of it is the end.
func main() {
	resource := flag.String("resource", "db-orders", "what to lease")
	wants := flag.String("wants", "100", "units a second that the program could use")
	servers := flag.String("servers", "127.0.0.1:15000", "HOST:PORT, and more of them after commas")
	client := flag.String("id", fmt.Sprintf("go-%d", os.Getpid()), "name of this process, which no other has")
	workers := flag.Int("workers", 1, "goroutines that take units")
	pause := flag.Int("pause", 0, "instead of waiting, to come after so many milliseconds for what is there")
	flag.Parse()
	rate := Open(*client, *resource, units(*wants), strings.Split(*servers, ","), grpc.WithInsecure())
	for i := 0; i < *workers; i++ {
		if *pause > 0 {
			go pick(rate, time.Duration(*pause)*time.Millisecond)
		} else {
			go work(rate)
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		rate.SetWants(units(strings.TrimPrefix(lines.Text(), "wants ")))
	}
	rate.Close()
}

func units(text string) float64 {
	units, err := strconv.ParseFloat(text, 64)
	if err != nil || !(units >= 0) {
		fmt.Fprintf(os.Stderr, "wants %q: wanted a number of units a second\n", text)
		os.Exit(2)
	}
	return units
}

func work(rate *Rate) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := rate.Acquire(ctx, 1)
		had := time.Now().UnixMicro()
		cancel()
		switch {
		case err == nil:
			fmt.Printf("%d had\n", had)
		case errors.Is(err, ErrClosed):
			return
		default:
			fmt.Printf("%d denied: %v\n", had, err)
		}
	}
}

func pick(rate *Rate, pause time.Duration) {
	for range time.Tick(pause) {
		for rate.TryAcquire(1) {
			fmt.Printf("%d had\n", time.Now().UnixMicro())
		}
	}
}
