/** The keys of roots (top-level calls). A key has no slash, which separates the keys of steps. */

const ROOT_KEY_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Throws a TypeError if a text is not the key of a root. */
export function assertRootKey(root: string): void {
  if (ROOT_KEY_PATTERN.test(root)) return;
  throw new TypeError(`A root key is 1 to 128 letters, digits or _ . : - ; not ${JSON.stringify(root)}.`);
}
