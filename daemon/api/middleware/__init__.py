"""What every request passes before its route: connection, peer, rate, token, log."""
