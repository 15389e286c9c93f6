"""What `import verl` offers when the packages of its Ray trainers are not installed.

A delivery that only uses verl's scoring and recipe has no need for Ray, tensordict and omegaconf. Their
absence is looked up, not caught: an import error in a package that is there stays an error.
"""

import importlib.util

LEAN = any(importlib.util.find_spec(name) is None for name in ("ray", "tensordict", "omegaconf"))

if LEAN:
    DataProto = None
    is_npu_available = False

    def import_external_libs(external_libs=None):
        for name in [external_libs] if isinstance(external_libs, str) else external_libs or ():
            importlib.import_module(name)

    def set_basic_config(level):
        import logging

        logging.basicConfig(format="%(levelname)s:%(asctime)s:%(message)s", level=level)

else:
    from verl.protocol import DataProto
    from verl.utils.device import is_npu_available
    from verl.utils.import_utils import import_external_libs
    from verl.utils.logging_utils import set_basic_config

__all__ = ["LEAN", "DataProto", "import_external_libs", "is_npu_available", "set_basic_config"]
