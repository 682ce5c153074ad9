"""Infrastructure of the check: executors, call flow, telemetry, options and files."""
