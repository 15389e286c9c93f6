from setuptools import Extension, setup

# -g0: debug information would carry the folder of the build into the file.
flags = ["-std=c11", "-O2", "-g0", "-ffp-contract=off"]
sources = ["src/tic_mini_gamma/_mask.c"]
setup(ext_modules=[Extension("tic_mini_gamma._mask", sources, extra_compile_args=flags, libraries=["m"])])
