module ottla/compat/go_driver

go 1.26.0
