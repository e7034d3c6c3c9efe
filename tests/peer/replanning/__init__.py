"""Tests of planning anew, without Spark: the batch is a small script here."""
