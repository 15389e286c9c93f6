"""The decision rules of other tools, over the facts that the gate records."""
