"""Attribute filters, messages and regions: values shared by planned feeds and the content-driven network."""
