/** The keys of roots (top-level calls). A key has no slash, which separates the keys of steps. */

const MAX_ROOT_KEY_CHARS = 128;
/** Found in no root key. A search for one is faster than a match of the whole key. */
const FORBIDDEN_CHAR = /[^A-Za-z0-9_.:-]/;

/** Throws a TypeError if a text is not the key of a root. */
export function assertRootKey(root: string): void {
  if (typeof root === 'string' && root !== '' && root.length <= MAX_ROOT_KEY_CHARS && !FORBIDDEN_CHAR.test(root))
    return;
  throw new TypeError(`A root key is 1 to 128 letters, digits or _ . : - ; not ${JSON.stringify(root)}.`);
}
