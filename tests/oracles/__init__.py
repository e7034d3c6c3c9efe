"""Slow, obvious twins of the project's routines; they share no code with what they check."""
