/** How a loop is named: its id and its version. */
import { parseVersion } from '../semver.js';
import { type Check, must, textLike } from './shape.js';

/** Safe as a file name, as one segment of a URL and as the name of a tool. */
export const loopId: Check = textLike(
  '1 to 128 letters, digits, "_", "." or "-", with a letter or digit first and last',
  /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$/,
);

export const version: Check = must(
  'a semantic version such as 1.0.0',
  (value) => typeof value === 'string' && parseVersion(value) !== undefined,
);
