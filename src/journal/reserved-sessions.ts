/** The names of sessions that belong to the runtime. No turn runs in them, and no user removes them. */

/** The prefix of these names. */
export const RESERVED_SESSION_PREFIX = 'rondo:';

/** True for the name of a session that belongs to the runtime. */
export function isReservedSession(name: string): boolean {
  return name.startsWith(RESERVED_SESSION_PREFIX);
}
