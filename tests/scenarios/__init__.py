"""Tests of the workload generators and scenarios."""
