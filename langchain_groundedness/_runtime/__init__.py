"""What the check runs on: executors, call flow, timeouts, streams, telemetry, options and files."""
