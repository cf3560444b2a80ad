/** Members of values that came over the wire: own properties only, whatever the value is. */

export function isJsonObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of an object; undefined if it has none of its own, or is no object. */
export function member(value: unknown, name: string): unknown {
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
  return (value as { readonly [name: string]: unknown })[name];
}
