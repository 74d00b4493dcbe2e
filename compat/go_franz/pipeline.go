package main

import (
	driver "ottla/compat/go_driver"

	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A pipeline consumes with a group, and commits its offsets in the transactions of what it produces.
type pipeline struct {
	session *kgo.GroupTransactSession
}

func newPipeline(with driver.Arguments) (driver.Subject, error) {
	options := append(transactional(with), memberOptions(with)...)
	options = append(options,
		kgo.ConsumeTopics(driver.Get[[]string](with, "topics")...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	session, err := kgo.NewGroupTransactSession(options...)
	return &pipeline{session}, err
}

func (p *pipeline) Call(operation string, with driver.Arguments) (any, error) {
	switch operation {
	case "poll":
		wait := time.Duration(driver.Get[int](with, "wait_ms")) * time.Millisecond
		return poll(p.session, wait, driver.Get[int](with, "records_max"), nil)
	case "begin":
		return nil, ofTransaction(p.session.Begin())
	case "send":
		return send(p.session, with)
	case "commit":
		return p.end(kgo.TryCommit)
	case "abort":
		return p.end(kgo.TryAbort)
	case "close":
		p.session.Close()
		return nil, nil
	}
	return nil, driver.Unknown(operation)
}

// end gives whether the transaction was committed.
func (p *pipeline) end(how kgo.TransactionEndTry) (bool, error) {
	ctx, done := bounded()
	defer done()
	committed, err := p.session.End(ctx, how)
	return committed, ofTransaction(err)
}
