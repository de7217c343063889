"""Customers and their orders, over HTTP."""
