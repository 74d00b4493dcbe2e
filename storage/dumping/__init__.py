"""What stored files hold, item by item, in the words of Kafka's own tools."""
