package main

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	driver "ottla/compat/go_driver"
)

func refusal(err error) (int16, string) {
	var refused *kerr.Error
	if errors.As(err, &refused) {
		return refused.Code, refused.Error()
	}
	return 0, ""
}

// ofTransaction marks those errors that say that a producer has lost its id or its transaction.
func ofTransaction(err error) error {
	for _, lost := range []*kerr.Error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping,
	} {
		if errors.Is(err, lost) {
			return driver.Fenced{Cause: err}
		}
	}
	return err
}
