"""What clients may use of a broker, what they have used of it, and how long they have to wait for more."""
