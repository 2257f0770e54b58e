"""Source code: its comments, by sections of the Python language reference. Names and values are no text: of the lines of
code, the account has the number."""

from tests.consumers.parsing.conservation.places import text_table

HEAD = {
    "licence": ("2.1.3", "# Copyright 2024 Ann {}, all rights reserved to her."),
    "docstring of the module": ("7.1", '"""The {} grinds corn for the village."""'),
}
BODY = {
    "comment": ("2.1.3", "# The {} stands at the weir."),
    "short comment": ("2.1.3", "# {}"),
    "comment behind code": ("2.1.3", "gate = 1  # the {} of the weir is here"),
    "short comment behind code": ("2.1.3", "gate = 1  # {}"),
    "comment that is code": ("2.1.3", "# {}(x)[1] = {'a': [2, 3]}"),
    "line of code in a comment": ("2.1.3", "# The wheel stands at the weir:\n# {}(x)[1] = {'a': [2, 3]}\n# It turns."),
    "docstring": ("8.7", 'def turn():\n    """Turns the {} at the weir."""'),
    "docstring of one word": ("8.7", 'def turn():\n    """{}"""'),
    "docstring of a class": ("8.8", "class Mill:\n    '''The {} grinds\n\n    corn.'''"),
}

TABLE = text_table(
    "mill.py",
    "The Python Language Reference 3.13",
    BODY,
    head=HEAD,
    between=("# The wheel turns at the weir.\nimport os", ""),
)
