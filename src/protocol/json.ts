/** A JSON value: the only kind of value that is journaled. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [name: string]: Json };
