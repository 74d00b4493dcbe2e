package main

import (
	driver "ottla/compat/go_driver"

	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

func (a *admin) callOnTransactions(ctx context.Context, operation string, with driver.Arguments) (any, error) {
	switch operation {
	case "describe_producers":
		return a.describeProducers(ctx, driver.Get[driver.Partition](with, "partition"))
	case "list_transactions":
		return a.listTransactions(ctx)
	case "describe_transaction":
		return a.describeTransaction(ctx, driver.Get[string](with, "transactional_id"))
	case "fence_producer":
		return nil, driver.NotOffered("its admin client cannot fence producers")
	case "abort_transaction":
		return nil, a.abortTransaction(ctx, driver.Get[driver.Partition](with, "partition"))
	}
	return nil, driver.Unknown(operation)
}

func (a *admin) producersOf(ctx context.Context, of driver.Partition) (kadm.DescribedProducers, error) {
	topics, err := a.kadm.DescribeProducers(ctx, setOf([]driver.Partition{of}))
	found := topics[of.Topic].Partitions[of.Number]
	return found.ActiveProducers, firstError(err, found.Err)
}

func (a *admin) describeProducers(ctx context.Context, of driver.Partition) ([][3]int64, error) {
	found, err := a.producersOf(ctx, of)
	told := [][3]int64{}
	for _, each := range found {
		told = append(told, [3]int64{each.ProducerID, int64(each.ProducerEpoch), int64(each.LastSequence)})
	}
	return told, err
}

func (a *admin) listTransactions(ctx context.Context) (map[string]string, error) {
	found, err := a.kadm.ListTransactions(ctx, nil, nil)
	told := make(map[string]string)
	for _, each := range found {
		told[each.TxnID] = each.State
	}
	return told, err
}

func (a *admin) describeTransaction(ctx context.Context, id string) (any, error) {
	transactions, err := a.kadm.DescribeTransactions(ctx, id)
	found := transactions[id]
	if err := firstError(err, found.Err); err != nil {
		return nil, err
	}
	return []any{found.State, found.TimeoutMillis, partitionsOf(found.Topics)}, nil
}

func (a *admin) abortTransaction(ctx context.Context, of driver.Partition) error {
	found, err := a.producersOf(ctx, of)
	for _, each := range found {
		if each.CurrentTxnStartOffset < 0 {
			continue
		}
		markers := kadm.TxnMarkers{
			ProducerID:       each.ProducerID,
			ProducerEpoch:    each.ProducerEpoch,
			CoordinatorEpoch: max(each.CoordinatorEpoch, 0),
			Topics:           setOf([]driver.Partition{of}),
		}
		responses, failed := a.kadm.WriteTxnMarkers(ctx, markers)
		written := responses[each.ProducerID].Topics[of.Topic].Partitions[of.Number]
		err = firstError(err, failed, written.Err)
	}
	return err
}
