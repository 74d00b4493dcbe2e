package driver

import (
	"errors"
	"fmt"
)

// A failure says in an answer what went wrong.
type failure struct {
	Error string `json:"error,omitempty"`
	Code  int16  `json:"code,omitempty"`
	Text  string `json:"text,omitempty"`
}

// NotOffered: the library has no way to do what it is asked for; the text says what is missing.
type NotOffered string

func (e NotOffered) Error() string { return string(e) }

// Fenced: a producer has lost its transactional id, or its transaction.
type Fenced struct{ Cause error }

func (e Fenced) Error() string { return e.Cause.Error() }

// CommitFailed: a group's offsets were not committed.
type CommitFailed struct{ Cause error }

func (e CommitFailed) Error() string { return e.Cause.Error() }

func (d *driver) failureOf(err error) failure {
	var missing NotOffered
	var fenced Fenced
	var commit CommitFailed
	switch {
	case errors.As(err, &missing):
		return failure{Error: "not offered", Text: string(missing)}
	case errors.As(err, &fenced):
		return failure{Error: "fenced", Text: err.Error()}
	case errors.As(err, &commit):
		return failure{Error: "commit failed", Text: err.Error()}
	}
	if code, text := d.refusal(err); code > 0 {
		return failure{Error: "refused", Code: code, Text: text}
	}
	return failure{Error: "failed", Text: fmt.Sprintf("%T: %v", err, err)}
}
