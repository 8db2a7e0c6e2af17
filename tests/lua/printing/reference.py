# SPDX-License-Identifier: Apache-2.0
# Writes reference.lua: what numpy prints for many arrays. `python3 reference.py > reference.lua`, with numpy.
import numpy as np

DEFAULTS = dict(precision=4, threshold=1000, edgeitems=3, linewidth=80, suppress=False)
rng = np.random.RandomState(7)
rows = []
f = np.float32


def pattern(*shape):
    """Too many elements to list: made by the same formula on the other side."""
    i = np.arange(int(np.prod(shape)))
    return (((i * 7919) % 1009) / 64.0 - 5).reshape(shape)


def literal(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, float):
        return "0/0" if v != v else "1/0" if v == float("inf") else "-1/0" if v == -float("inf") else repr(v)
    return str(v) + ("LL" if abs(v) > 2**53 else "")


def case(name, array, **options):
    a = np.asarray(array)
    o = dict(DEFAULTS, **options)
    text = np.array2string(a, separator=", ", prefix="tensor(", suffix=")", floatmode="maxprec_equal",
                           precision=o["precision"], threshold=o["threshold"], edgeitems=o["edgeitems"],
                           max_line_width=o["linewidth"], suppress_small=o["suppress"])
    if a.dtype == bool:
        text = text.replace("True", "true").replace("False", "false")
    flat = a.astype(np.float64).ravel() if a.dtype.kind == "f" else a.ravel()
    data = [literal(v) for v in flat.tolist()]
    if a.size > 600:
        assert (flat == pattern(a.size)).all()
        data = None
    rows.append((name, str(a.dtype), a.shape, data, options, "tensor(" + text + ")"))


def show():
    print("-- SPDX-License-Identifier: Apache-2.0")
    print("-- What numpy %s prints: name, dtype, shape, elements (false: a formula's), options, text." % np.__version__)
    print("-- Made by reference.py.")
    print("return {")
    for name, dtype, shape, data, options, text in rows:
        print('  { "%s", "%s", { %s },' % (name, dtype, ", ".join(map(str, shape))))
        if data is None:
            print("    false,")
        else:
            line = "    { "
            for i, d in enumerate(data):
                piece = d + (", " if i < len(data) - 1 else "")
                if len(line) + len(piece) > 117:
                    print(line.rstrip())
                    line = "      "
                line += piece
            print(line + " },")
        print("    { %s }, [==[%s]==] }," % (", ".join("%s = %s" % (k, literal(v)) for k, v in options.items()), text))
    print("}")


case('zero_dim',f(1.5))
case('zero_dim_whole',f(3))
case('zero_dim_small',f(1e-7))
case('zero_dim_neg',f(-0.1))
case('whole',f([1,2,3]))
case('whole_large',f([1,2,3000]))
case('halves',f([0.5,1.25,3]))
case('negative',f([[1.5,-2.25],[100,0.125]]))
case('tenths',f([0.1,0.2,0.3]))
case('thirds',f([1/3,2/3,1]))
case('tiny',f([1e-5,2e-5]))
case('ratio',f([0.001,10]))
case('ratio_below',f([0.01,9.99]))
case('huge',f([1e8,1]))
case('below_huge',f([99999999/2,1e5]))
case('nan',f([np.nan,1]))
case('inf',f([np.inf,1,-np.inf]))
case('only_nan',f([np.nan,np.nan]))
case('only_inf',f([np.inf,-np.inf]))
case('nan_and_whole',f([[np.nan,12],[3,4]]))
case('inf_exp',f([np.inf,1e-9,np.nan]))
case('minus_zero',f([-0.0,0.0,1]))
case('zeros',np.zeros((2,3),f))
case('ones64',np.ones(3))
case('exp3',np.array([1e-300,1e5]))
case('exp2',np.array([1e100,1e5,-2.5e-3]))
case('pi64',np.array([np.pi,np.e]))
case('pi64p8',np.array([np.pi,np.e]),precision=8)
case('pi32p8',f([np.pi,0.1,0.3]),precision=8)
case('pi16p8',np.float16([np.pi,0.1,0.3]),precision=8)
case('half',np.float16([0.1,1.1,65504.0,6e-8]))
case('half2',np.float16([0.1,1.1,2.3]))
case('precision0',f([1.5,2.5,3.25]),precision=0)
case('precision2',f([1.005,2.675,1e-3*3]),precision=2)
case('precision10',f([0.1,1e-3]),precision=10)
case('suppress',f([1e-6,1,100.5]),suppress=True)
case('suppress_large',f([1e-6,1e9]),suppress=True)
case('tie',f([0.03125,0.09375]),precision=4)
case('rand',rng.randn(3,4).astype(f))
case('rand_wide',rng.randn(2,20).astype(f))
case('rand3',rng.randn(2,3,4).astype(f))
case('rand4',rng.randn(2,1,2,3).astype(f))
case('rand_big',pattern(40,40))
case('rand_big3',pattern(8,20,10))
case('rand_long',pattern(2000))
case('big_thin',pattern(2,2000))
case('big_tall',pattern(2000,2))
case('big_rest',pattern(7,7,7,7))
case('edge1',pattern(40,40),edgeitems=1)
case('threshold',np.arange(12).reshape(3,4),threshold=5,edgeitems=1)
case('width40',rng.rand(3,9).astype(f),linewidth=40)
case('width20',np.arange(30)*1000,linewidth=20)
case('ints',[1,-20,300])
case('ints_wide',np.arange(60))
case('int_matrix',np.arange(-6,6).reshape(3,4))
case('int_large',[2**62,-2**63,0])
case('int32',np.int32([[1,2],[3,400]]))
case('uint8',np.uint8([0,255,3]))
case('int8',np.int8([-128,5]))
case('bools',np.array([[True,False],[False,False]]))
case('ones_column',np.ones((5,1),f))
case('one_row',rng.rand(1,3).astype(f))
case('one_element',f([7]))
case('nested_ones',np.ones((1,1,1,1),f))
case('mixed_scale',f([123.456,0.5,0.0625]))
case('powers',2.0**np.arange(-10,10))
case('near_one',f([0.99999,1.00001]))
case('rounds_up',f([0.99996,0.5]))
case('exp_round',f([9.99999e-6,1e3]))
case('thousand',f([1,1000]))
case('thousand_and',f([1,1001]))
for i in range(12):
    shape=tuple(rng.randint(1,6,size=rng.randint(1,4)))
    scale=10.0**rng.randint(-6,7)
    case('random_%d'%i,(rng.randn(*shape)*scale).astype(f if i%2 else np.float64),precision=int(rng.choice([2,4,4,6,8])))
for i in range(6):
    shape=tuple(rng.randint(1,9,size=rng.randint(1,4)))
    case('random_int_%d'%i,rng.randint(-10**rng.randint(1,6),10**rng.randint(1,6),size=shape).astype(np.int64),edgeitems=int(rng.choice([1,2])),threshold=int(rng.choice([20,1000])))

show()
