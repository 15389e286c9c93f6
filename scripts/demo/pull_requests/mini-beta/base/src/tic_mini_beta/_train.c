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
        for (int h = p->hidden - 1; h >= 0; h--)
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

/* Adds the gradient of one log-probability with respect to the outputs, then steps along it. */
static PyObject *step(PyObject *self, PyObject *args) {
    PyObject *capsule;
    int last, token;
    double rate;
    if (!PyArg_ParseTuple(args, "Oiid", &capsule, &last, &token, &rate)) return NULL;
    Policy *p = taken(capsule, last, token);
    if (!p) return NULL;
    double *at = malloc(sizeof(double) * p->vocab);
    logits(p, last, at);
    double norm = logsum(p, at);
    for (int v = 0; v < p->vocab; v++) {
        double slope = rate * ((v == token) - exp(at[v] - norm));
        for (int h = 0; h < p->hidden; h++)
            p->out[v * p->hidden + h] += (float)(slope * p->in[last * p->hidden + h]);
    }
    free(at);
    Py_RETURN_NONE;
}

static PyObject *dump(PyObject *self, PyObject *capsule) {
    Policy *p = PyCapsule_GetPointer(capsule, "policy");
    return p ? PyBytes_FromStringAndSize((char *)p->in, (Py_ssize_t)8 * p->vocab * p->hidden) : NULL;
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "load(bytes, vocab, hidden): copy a policy into memory of its own"},
    {"logprob", logprob, METH_VARARGS, "logprob(policy, last, token)"},
    {"step", step, METH_VARARGS, "step(policy, last, token, rate): make a token more likely"},
    {"dump", dump, METH_O, "dump(policy): its bytes as they are now"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_train", NULL, -1, methods};
PyMODINIT_FUNC PyInit__train(void) { return PyModule_Create(&module); }
