"""Coefficients of elementary functions in f32: errors of a few units in 1e-7.

Approximation of exp: x² times these, plus x + 1, fitted to the least relative error (3e-9) on |x| ≤
ln 2 / 2 by least squares with weights that follow the errors (C. Lawson, 1961). Approximations of
log and, by a polynomial, of tanh: Cephes library by S. Moshier (logf.c, tanhf.c). The quotient for
tanh was fitted like exp, with 1 as the constants of both polynomials: within 1e-8 up to the number
from which it is 1, 5 units in the last place as f32 computes it. Approximation of erf: the rational
one of Eigen and XLA (`generic_fast_erf_float`). The coefficients of sin, cos, atan and asin, and
those in f64, were fitted like exp on 3,000 Chebyshev nodes: (f(x) - x) / x³ by powers of x², (cos x
- 1) / x² and (exp x - 1 - x) / x². The ones in f32 were rounded one after the other, the lowest
power first, each time fitting the rest anew. Relative errors of the functions without rounding: sin
4e-9, cos 1.2e-10, atan 2.6e-9, asin 4.9e-9; in f64 sin 5e-12, cos 6e-11, exp 1.6e-14, log 3e-14. Of
polynomials the coefficient of the highest power comes first.
"""

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
HALF_PI = 1.5707963267948966
LN2_F64 = (6.93147180369123816490e-1, 1.90821492927058770002e-10)
"""Their sum is ln 2; products of the first, in f64, with exponents are exact."""
HALF_PI_F64 = (1.5707963267341256, 6.0771005063039660e-11, 2.0222662487959506e-21)
"""Their sum is π/2; the first two have 33 bits: their multiples by up to 2^20 are exact in f64."""
HALF_PI_REST_F64 = 6.077100506506192e-11
"""π/2 less the first of these, as f64 holds it."""
HALF_PI_F32 = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100059e-15)
"""Their sum is π/2; multiples of the first by up to 2^22 less an f32 near them are exact in f32."""
LOG2_E_LOW = 1.925963033500519e-8
"""log2 e less what f32 holds of it."""
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
"""Their sum is ln 2; the first has few bits, so that its products with exponents are exact."""

EXP_LOWEST = -87.33654475
"""The least x whose exp is not flushed to 0: results below the normal numbers are."""
EXP = (1.381453897e-3, 8.368745226e-3, 4.166839081e-2, 1.666652040e-1, 4.999999343e-1)
LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
TANH = (
    -5.70498872745e-3,
    2.06390887954e-2,
    -5.37397155531e-2,
    1.33314422036e-1,
    -3.33332819422e-1,
)
TANH_NUMERATOR = (1.461652996e-8, 2.149160275e-5, 3.548364451e-3, 1.342526046e-1, 1.0)
TANH_DENOMINATOR = (8.283978008e-7, 3.372484124e-4, 2.607709925e-2, 4.675858780e-1, 1.0)
TANH_IS_ONE_FROM = 8.35
ERF_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
ERF_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
TANH_POLYNOMIAL_BELOW = 0.625
ERF_IS_ONE_FROM = 4.0
SIN = (-1.9518286e-4, 8.33218917e-3, -1.66666552e-1)
COS = (2.44325638e-5, -1.38873106e-3, 4.16666456e-2, -0.5, 1.0)
"""Coefficients for |x| ≤ π/4: sin is odd, x + x³ times a polynomial in x²; cos is one in x²."""
ATAN = (
    -1.7875476e-3,
    1.08873611e-2,
    -3.11270021e-2,
    5.79065457e-2,
    -8.40047523e-2,
    1.09511748e-1,
    -1.42640516e-1,
    1.9998531e-1,
    -3.33332986e-1,
)
"""Coefficients for |x| ≤ 1, of an odd polynomial."""
ASIN = (4.21583056e-2, 2.41847783e-2, 4.54691499e-2, 7.49530941e-2, 1.66667521e-1)
"""Coefficients for |x| ≤ 1/2, of an odd polynomial."""

SIN_F64 = (
    2.7181141135961063e-6,
    -1.9839311484894467e-4,
    8.333329302415336e-3,
    -1.666666664077622e-1,
)
COS_F64 = (
    2.4383482780288098e-5,
    -1.388668075063804e-3,
    4.166662032875688e-2,
    -4.9999999694225017e-1,
    1.0,
)
EXP_F64 = (
    2.763566378520114e-6,
    2.488263411989212e-5,
    1.9841183545268813e-4,
    1.3888806694812225e-3,
    8.333333372214362e-3,
    4.166666699589947e-2,
    1.6666666666608349e-1,
    4.999999999958793e-1,
    1.0,
    1.0,
)
LOG_F64 = (
    1.9586807741643303e-1,
    2.2175983946647085e-1,
    2.85721147413205e-1,
    3.999999555928724e-1,
    6.666666667603598e-1,
)
"""log x is 2 s + s³ times this in s², s = (x - 1) / (x + 1), for x between √½ and √2."""
