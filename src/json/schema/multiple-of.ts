/** Whether a number is a multiple of another, both as they are written in JSON: 0.3 is a multiple of 0.1. */
export function isMultipleOf(value: number, of: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(of)) return value % of === 0;
  if (!Number.isFinite(value)) return false;
  const [a, b] = [toDecimal(value), toDecimal(of)];
  const exponent = Math.min(a.exponent, b.exponent);
  return scaleTo(a, exponent) % scaleTo(b, exponent) === 0n;
}

interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function toDecimal(value: number): Decimal {
  const [mantissa = '0', exponent = '0'] = value.toString().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

function scaleTo({ digits, exponent }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(exponent - to);
}
