"""Robots: bridges to simulators, their server, and the agents that drive them."""
