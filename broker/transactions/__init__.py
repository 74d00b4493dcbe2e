"""The transaction coordinator: who may write in which transaction, and how each of them ends."""
