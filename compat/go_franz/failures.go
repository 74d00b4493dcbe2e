package main

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A failure says in an answer what went wrong.
type failure struct {
	Error string `json:"error,omitempty"`
	Code  int16  `json:"code,omitempty"`
	Text  string `json:"text,omitempty"`
}

// errNotOffered: the library has no way to do what it is asked for; the text says what is missing.
type errNotOffered string

func (e errNotOffered) Error() string { return string(e) }

// errFenced: a producer has lost its transactional id, or its transaction.
type errFenced struct{ error }

// errCommit: a group's offsets were not committed.
type errCommit struct{ error }

func failureOf(err error) failure {
	var missing errNotOffered
	var fenced errFenced
	var commit errCommit
	var refused *kerr.Error
	switch {
	case errors.As(err, &missing):
		return failure{Error: "not offered", Text: string(missing)}
	case errors.As(err, &fenced):
		return failure{Error: "fenced", Text: err.Error()}
	case errors.As(err, &commit):
		return failure{Error: "commit failed", Text: err.Error()}
	case errors.As(err, &refused):
		return failure{Error: "refused", Code: refused.Code, Text: refused.Error()}
	}
	return failure{Error: "failed", Text: fmt.Sprintf("%T: %v", err, err)}
}

// ofTransaction marks those errors that say that a producer has lost its id or its transaction.
func ofTransaction(err error) error {
	for _, lost := range []*kerr.Error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping,
	} {
		if errors.Is(err, lost) {
			return errFenced{err}
		}
	}
	return err
}
