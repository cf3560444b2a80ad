/** What is wrong with options that `defineLoop` and `defineAgent` do not have, with the option that is probably meant. */
import { nearestWord } from '../base/nearest-word.js';

/** The options that other libraries, and definitions in JSON, call by another name. */
const OPTION_SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['system', 'instructions'],
  ['systemPrompt', 'instructions'],
  ['body', 'run'],
  ['execute', 'run'],
  ['handler', 'run'],
  ['backend', 'model'],
  ['inputSchema', 'input'],
  ['parameters', 'input'],
  ['outputSchema', 'output'],
  ['name', 'id'],
]);

/** Returns the reason that names the unknown options, what is probably meant by each, and all options. */
export function unknownOptionsReason(unknown: readonly string[], known: readonly string[]): string {
  const named = unknown.map((key) => {
    const synonym = OPTION_SYNONYMS.get(key);
    const meant = synonym !== undefined && known.includes(synonym) ? synonym : nearestWord(key, known);
    return meant === undefined ? `"${key}"` : `"${key}" (did you mean "${meant}"?)`;
  });
  return `unknown option ${named.join(', ')}; the options are ${known.join(', ')}`;
}
