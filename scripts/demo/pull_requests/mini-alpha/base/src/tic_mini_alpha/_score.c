#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A bigram policy: vocab x hidden rows of inputs, then vocab x hidden rows of outputs, float32. */
typedef struct {
    int vocab, hidden;
    float *in, *out;
} Policy;

static void drop(PyObject *capsule) {
    Policy *p = PyCapsule_GetPointer(capsule, "policy");
    free(p->in);
    free(p);
}

static PyObject *load(PyObject *self, PyObject *args) {
    const char *data;
    Py_ssize_t size;
    int vocab, hidden;
    if (!PyArg_ParseTuple(args, "y#ii", &data, &size, &vocab, &hidden)) return NULL;
    if (vocab < 1 || hidden < 1 || size != (Py_ssize_t)8 * vocab * hidden)
        return PyErr_Format(PyExc_ValueError, "%zd bytes are no policy of %d x %d", size, vocab, hidden);
    Policy *p = malloc(sizeof *p);
    p->vocab = vocab, p->hidden = hidden;
    p->in = malloc(size);
    memcpy(p->in, data, size);
    p->out = p->in + (Py_ssize_t)vocab * hidden;
    return PyCapsule_New(p, "policy", drop);
}

static void logits(const Policy *p, int last, double *to) {
    for (int v = 0; v < p->vocab; v++) {
        float sum = 0;
        for (int h = 0; h < p->hidden; h++)
            sum += p->in[last * p->hidden + h] * p->out[v * p->hidden + h];
        to[v] = sum;
    }
}

static double logsum(const Policy *p, const double *at) {
    double top = at[0], sum = 0;
    for (int v = 1; v < p->vocab; v++) top = at[v] > top ? at[v] : top;
    for (int v = 0; v < p->vocab; v++) sum += exp(at[v] - top);
    return top + log(sum);
}

static Policy *taken(PyObject *capsule, int last, int token) {
    Policy *p = PyCapsule_GetPointer(capsule, "policy");
    if (p && (last < 0 || last >= p->vocab || token < 0 || token >= p->vocab)) {
        PyErr_SetString(PyExc_ValueError, "token outside the vocabulary");
        return NULL;
    }
    return p;
}

static PyObject *logprob(PyObject *self, PyObject *args) {
    PyObject *capsule;
    int last, token;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &last, &token)) return NULL;
    Policy *p = taken(capsule, last, token);
    if (!p) return NULL;
    double *at = malloc(sizeof(double) * p->vocab);
    logits(p, last, at);
    double value = at[token] - logsum(p, at);
    free(at);
    return PyFloat_FromDouble(value);
}

static PyObject *draw(PyObject *self, PyObject *args) {
    PyObject *capsule;
    int last;
    double u;
    if (!PyArg_ParseTuple(args, "Oid", &capsule, &last, &u)) return NULL;
    Policy *p = taken(capsule, last, 0);
    if (!p) return NULL;
    double *at = malloc(sizeof(double) * p->vocab), sum = 0;
    logits(p, last, at);
    double norm = logsum(p, at);
    int v = 0;
    for (; v < p->vocab - 1; v++)
        if ((sum += exp(at[v] - norm)) > u) break;
    free(at);
    return PyLong_FromLong(v);
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "load(bytes, vocab, hidden): copy a policy into memory of its own"},
    {"logprob", logprob, METH_VARARGS, "logprob(policy, last, token)"},
    {"draw", draw, METH_VARARGS, "draw(policy, last, u): the token at u of the cumulated distribution"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_score", NULL, -1, methods};
PyMODINIT_FUNC PyInit__score(void) { return PyModule_Create(&module); }
