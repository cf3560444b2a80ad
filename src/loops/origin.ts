/** Where a definition comes from, and whether the operator trusts that place to run code. */
export interface DefinitionOrigin {
  /** The directory that relative paths in the definition start from; undefined for one that came without a file. */
  readonly directory: string | undefined;
  readonly file?: string;
  /** Whether `module:` and `exec:` may run from here. */
  readonly trusted: boolean;
}
