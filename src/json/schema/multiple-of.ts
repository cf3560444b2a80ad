/** Returns true if a number is a multiple of another in decimal notation: 0.3 is a multiple of 0.1. */
export function isMultipleOf(value: number, divisor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0;
  if (!Number.isFinite(value)) return false;
  const [a, b] = [toDecimal(value), toDecimal(divisor)];
  const exponent = Math.min(a.exponent, b.exponent);
  return scaleTo(a, exponent) % scaleTo(b, exponent) === 0n;
}

interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function toDecimal(value: number): Decimal {
  const [mantissa = '0', exponent = '0'] = value.toString().split('e');
  const [integer = '0', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(integer + fraction), exponent: Number(exponent) - fraction.length };
}

function scaleTo({ digits, exponent }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(exponent - to);
}
