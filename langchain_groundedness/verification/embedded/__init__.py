"""The embedded verifier: a small model that judges claims on the CPU."""
