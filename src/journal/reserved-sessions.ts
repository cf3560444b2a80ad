/** The names of sessions that belong to the runtime. No turn runs in them. */

/** The prefix of these names. */
export const RESERVED_SESSION_PREFIX = 'rondo:';
