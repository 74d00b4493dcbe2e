"""What group and transaction coordinators do in a second, and how long groups take to come to rest."""
