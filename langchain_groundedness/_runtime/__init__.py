"""Executors, flow of calls, telemetry, options and files: what runs the check, apart from its subject."""
