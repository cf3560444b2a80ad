/** Who speaks at the command line: as told, or the login. */
import { userInfo } from 'node:os';
import { UsageError } from '../settings.js';
import { type Options, textOf } from './verb.js';

export function whoOf({ as }: Options): string {
  const named = textOf(as);
  if (named === undefined) return login();
  if (named.trim() !== '') return named;
  throw new UsageError('--as must name somebody.');
}

function login(): string {
  try {
    return userInfo().username;
  } catch {
    return 'somebody at the command line';
  }
}
