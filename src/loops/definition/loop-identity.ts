/** Checks the identity of a loop: its id and its version. */
import { isVersion } from '../semver.js';
import { checkThat, type DefinitionCheck } from './shape.js';

/**
 * The ids that LSR accepts (the reference runtime of LSEM, the Loop Stack Execution Model), except ambiguous ones: ids
 * that look like another id (invisible characters, "." and ".." between slashes), like an id with a version or like a
 * pattern, and `__proto__`. `protocol/tool.ts` has the same rule for tool names.
 */
const LOOP_ID_PATTERN =
  /^(?! )(?!(?:.*\/)?\.{0,2}(?:\/|$))(?!(?:.*\.)?\*$)(?!__proto__$)(?!.*@\d+\.\d+\.\d+(?:[-+].*)?$)(?: |[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]){1,256}(?<! )$/u;

/** The limit in UTF-16 units. The pattern limits the number of code points to 256. */
const MAX_LOOP_ID_CHARS = 512;

/** True if the value is a valid loop id. */
export function isLoopId(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value.length <= MAX_LOOP_ID_CHARS &&
    LOOP_ID_PATTERN.test(value) &&
    value.normalize('NFC') === value
  );
}

/** Checks a loop id. */
export const checkLoopId: DefinitionCheck = checkThat(
  'an id of 1 to 256 visible characters (Unicode normal form C) without a space at either end, an empty part, "." or ".." ' +
    'between slashes, "*" or ".*" at the end, or "@" and a version at the end',
  { type: 'string', pattern: LOOP_ID_PATTERN.source },
  isLoopId,
);

/** Checks a version. */
export const checkVersion: DefinitionCheck = checkThat(
  'a semantic version such as 1.0.0',
  { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+(?:-[0-9A-Za-z.-]+)?(?:\\+[0-9A-Za-z.-]+)?$' },
  (value) => typeof value === 'string' && isVersion(value),
);
