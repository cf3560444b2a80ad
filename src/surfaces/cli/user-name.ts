/** Who speaks at the command line: as told, or the login. */
import { userInfo } from 'node:os';
import { UsageError } from '../settings.js';
import { textOption, type VerbOptions } from './verb.js';

export function userNameOf({ as }: VerbOptions): string {
  const named = textOption(as);
  if (named === undefined) return loginName();
  if (named.trim() !== '') return named;
  throw new UsageError('--as must name somebody.');
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'somebody at the command line';
  }
}
