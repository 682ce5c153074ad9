"""Run `llama_cpp.server`, with the same options, on processors with AMX too.

There llama.cpp packs the weights anew by default, and a library that was compiled with
`-march=native` then crashes at the first request (llama-cpp-python 0.3.36 on Sapphire Rapids).
Neither the server nor `Llama` has an option for it, so the default is changed here.
"""

import sys

from llama_cpp import llama_cpp
from llama_cpp.server.__main__ import main

_default_params = llama_cpp.llama_model_default_params


def _without_packing() -> llama_cpp.llama_model_params:
    params = _default_params()
    params.use_extra_bufts = False
    return params


if __name__ == "__main__":
    llama_cpp.llama_model_default_params = _without_packing
    sys.exit(main())
