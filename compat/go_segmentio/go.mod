module ottla/compat/go_segmentio

go 1.26.0

require (
	github.com/segmentio/kafka-go v0.4.51
	ottla/compat/go_driver v0.0.0
)

require (
	github.com/klauspost/compress v1.15.9 // indirect
	github.com/pierrec/lz4/v4 v4.1.15 // indirect
)

replace ottla/compat/go_driver => ../go_driver
