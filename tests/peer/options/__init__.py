"""Tests of the options of the daemons."""
