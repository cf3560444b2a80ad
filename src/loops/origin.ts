/** The origin of a definition, and whether the operator trusts it to run code. */
export interface DefinitionOrigin {
  /** The base directory of relative paths in the definition; undefined for a definition without a file. */
  readonly directory: string | undefined;
  /** The file that contains the definition. */
  readonly file?: string;
  /** True if `module:` and `exec:` tools of the definition may run. */
  readonly trusted: boolean;
  /** The `rondo.toml` that decides a part of the definition: the loop of a verb, its model, or the server of a model. */
  readonly config?: ConfigOrigin;
  /**
   * True if the definition must not decide what trusted code does.
   * @default true for a definition of a directory that is not trusted
   */
  readonly isForeign?: boolean;
}

/** A `rondo.toml`, and whether the operator trusts its directory. */
export interface ConfigOrigin {
  readonly directory: string;
  readonly file: string;
  readonly trusted: boolean;
}

/** The origin of loops in code. */
export const CODE_ORIGIN: DefinitionOrigin = { directory: undefined, trusted: true };
