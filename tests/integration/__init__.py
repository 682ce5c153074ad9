"""Tests that need a real model server."""
