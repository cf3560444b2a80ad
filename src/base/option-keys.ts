/** Checks of option keys. Unknown keys are rejected, because a misspelt key must not silently disable a guard. */

/**
 * Returns the keys of an options interface. The compiler checks the list: a missing or unknown key is a type error.
 *
 * @example optionKeys<{ store: Store; clock?: Clock }>({ store: true, clock: true })
 */
export function optionKeys<T>(keys: { readonly [K in keyof T]-?: true }): ReadonlySet<string> {
  return new Set(Object.keys(keys));
}

/**
 * Throws a TypeError that names the first unknown key, if there is one. `subject` begins the message: `A session has no
 * option`.
 */
export function assertKnownKeys(options: object, known: ReadonlySet<string>, subject: string): void {
  for (const key of Object.keys(options)) {
    // guard: unknown-option-refused
    if (!known.has(key)) throw new TypeError(`${subject} "${key}"; it has ${[...known].join(', ')}.`);
  }
}
