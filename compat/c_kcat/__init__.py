"""kcat, the command line on librdkafka: ``python -m compat.c_kcat`` plays what one does with it."""
