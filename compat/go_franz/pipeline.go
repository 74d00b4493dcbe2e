package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A pipeline consumes with a group, and commits its offsets in the transactions of what it produces.
type pipeline struct {
	session *kgo.GroupTransactSession
}

func newPipeline(with arguments) (subject, error) {
	options := append(transactional(with), memberOptions(with)...)
	options = append(options,
		kgo.ConsumeTopics(get[[]string](with, "topics")...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	session, err := kgo.NewGroupTransactSession(options...)
	return &pipeline{session}, err
}

func (p *pipeline) call(operation string, with arguments) (any, error) {
	switch operation {
	case "poll":
		wait := time.Duration(get[int](with, "wait_ms")) * time.Millisecond
		return poll(p.session, wait, get[int](with, "records_max"), nil)
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
	return nil, unknown(operation)
}

// end gives whether the transaction was committed.
func (p *pipeline) end(how kgo.TransactionEndTry) (bool, error) {
	ctx, done := bounded()
	defer done()
	committed, err := p.session.End(ctx, how)
	return committed, ofTransaction(err)
}
