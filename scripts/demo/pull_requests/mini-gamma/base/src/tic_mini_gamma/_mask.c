#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *count(PyObject *self, PyObject *args) {
    const char *mask;
    Py_ssize_t size, valid = 0;
    if (!PyArg_ParseTuple(args, "y#", &mask, &size)) return NULL;
    for (Py_ssize_t i = 0; i < size; i++) valid += mask[i];
    return PyLong_FromSsize_t(valid);
}

static PyMethodDef methods[] = {
    {"count", count, METH_VARARGS, "count(mask): valid values, one byte each"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_mask", NULL, -1, methods};
PyMODINIT_FUNC PyInit__mask(void) { return PyModule_Create(&module); }
