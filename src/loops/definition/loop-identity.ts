/** How a loop is named: its id and its version. */
import { parseVersion } from '../semver.js';
import { checkThat, type DefinitionCheck } from './shape.js';

/**
 * Any id that LSR, the reference runtime of LSEM, takes, but for those that would be mistaken for something else: for another
 * id (characters that cannot be seen, "." and ".." between slashes), for an id with a version, for a pattern, or for a
 * member that JavaScript gives a meaning. `protocol/tool.ts` has the same rule for names of tools.
 */
const LOOP_ID_PATTERN =
  /^(?! )(?!(?:.*\/)?\.{0,2}(?:\/|$))(?!(?:.*\.)?\*$)(?!__proto__$)(?!.*@\d+\.\d+\.\d+(?:[-+].*)?$)(?: |[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]){1,256}(?<! )$/u;

const MAX_LOOP_ID_CHARS = 512;

export function isLoopId(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value.length <= MAX_LOOP_ID_CHARS &&
    LOOP_ID_PATTERN.test(value) &&
    value.normalize('NFC') === value
  );
}

export const checkLoopId: DefinitionCheck = checkThat(
  'an id of 1 to 256 visible characters (Unicode normal form C) without a space at either end, an empty part, "." or ".." ' +
    'between slashes, "*" or ".*" at the end, or "@" and a version at the end',
  isLoopId,
);

export const checkVersion: DefinitionCheck = checkThat(
  'a semantic version such as 1.0.0',
  (value) => typeof value === 'string' && parseVersion(value) !== undefined,
);
