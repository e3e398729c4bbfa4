"""Telling people and programs what the nights found: messages on a change of state, JUnit XML, Prometheus' text."""
