/** The origin of a definition, and whether the operator trusts it to run code. */
export interface DefinitionOrigin {
  /** The base directory of relative paths in the definition; undefined for a definition without a file. */
  readonly directory: string | undefined;
  /** The file that contains the definition. */
  readonly file?: string;
  /** True if `module:` and `exec:` tools of the definition may run. */
  readonly trusted: boolean;
}

/** The origin of loops in code. */
export const CODE_ORIGIN: DefinitionOrigin = { directory: undefined, trusted: true };
