"""What the check runs on: executors, call flow, telemetry, options and files."""
