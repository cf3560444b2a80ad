/** Options reject unknown keys: a misspelt key must never switch a guard off silently. */

/**
 * The keys of an options interface. The compiler checks the list: a key that is missing or unknown is a type error.
 *
 * @example optionKeys<{ store: Store; clock?: Clock }>({ store: true, clock: true })
 */
export function optionKeys<T>(keys: { readonly [K in keyof T]-?: true }): ReadonlySet<string> {
  return new Set(Object.keys(keys));
}

/** Throws a TypeError that names the first unknown key. `subject` begins the message: `A session has no option`. */
export function assertKnownKeys(options: object, known: ReadonlySet<string>, subject: string): void {
  for (const key of Object.keys(options)) {
    // guard: unknown-option-refused
    if (!known.has(key)) throw new TypeError(`${subject} "${key}"; it has ${[...known].join(', ')}.`);
  }
}
