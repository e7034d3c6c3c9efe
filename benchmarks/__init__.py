"""Measurements that back the claims made about speed and likeness; run apart from the tests."""
