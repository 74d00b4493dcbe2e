"""What every client of every language is asked to do, and how its answers are written down."""
