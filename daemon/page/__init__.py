"""The page that shows the memory: static files, the plotting library from its package, and the login on TCP.

The page uses the API's routes like any other client; `routes` adds those that only the page needs.
"""
