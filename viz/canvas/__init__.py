"""Payloads of our own pictures; js/ has their scripts."""
