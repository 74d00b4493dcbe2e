"""What drivers of Go's clients share: in Go, a module of their own; in Python, how one is had."""
