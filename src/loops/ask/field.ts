/** Reading what nobody has checked. */

/** An own field of anything; what cannot be read is none. Each is read once: a getter might say something else then. */
export function field(value: unknown, name: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    return Object.hasOwn(value, name) ? (value as { readonly [name: string | number]: unknown })[name] : undefined;
  } catch {
    return undefined;
  }
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}
