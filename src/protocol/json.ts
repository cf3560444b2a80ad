/** A JSON value: the only kind of value that crosses the journal. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
