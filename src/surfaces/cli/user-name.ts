/** Determines the name of the user at the command line. */
import { userInfo } from 'node:os';
import { UsageError } from '../settings.js';
import { textOption, type VerbOptions } from './verb.js';

/** Returns the name in `--as`, or else the login name. Throws a UsageError if `--as` is empty. */
export function userNameOf({ as }: VerbOptions): string {
  const name = textOption(as);
  if (name === undefined) return loginName();
  if (name.trim() !== '') return name;
  throw new UsageError('--as must not be empty.');
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown user';
  }
}
