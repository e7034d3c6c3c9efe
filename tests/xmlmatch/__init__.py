"""Tests of xmlmatch."""
