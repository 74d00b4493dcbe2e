"""What several tests share: clients and helpers that are not tests themselves."""
