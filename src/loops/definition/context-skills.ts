/** Checks `contextSkills`: the shape of the list and of each reference. The files are read when a turn uses them. */
import { MAX_CONTEXT_REFERENCES, parseReference, referenceKey } from '../context/reference.js';
import { appendPointer, checkThat, type DefinitionCheck, listOf, quoteText, withSchema } from './shape.js';

const checkText = checkThat('text', { type: 'string', minLength: 1 }, (value) => typeof value === 'string');
const checkList = listOf(checkText, /* guard: context-references-bounded */ MAX_CONTEXT_REFERENCES);

/** Returns a check of references to context. `isReserved` accepts texts that are no reference in a definition. */
export function contextSkillsCheck(isReserved: (text: string) => boolean): DefinitionCheck {
  return withSchema(checkList.schema, (value, path, issues) => {
    checkList(value, path, issues);
    if (!Array.isArray(value) || value.length > MAX_CONTEXT_REFERENCES) return;
    const seen = new Map<string, string>();
    for (const [index, text] of value.entries()) {
      if (typeof text !== 'string') continue;
      const itemPath = appendPointer(path, index);
      const reference = isReserved(text) ? undefined : parseReference(text);
      if (reference?.kind === 'invalid') {
        issues.add(itemPath, `${quoteText(text)} ${reference.reason}`);
        continue;
      }
      const key = reference === undefined ? text : referenceKey(reference);
      const other = seen.get(key);
      // guard: duplicate-context-references-refused
      if (other !== undefined) issues.add(itemPath, `${quoteText(text)} repeats ${quoteText(other)}`);
      seen.set(key, text);
    }
  });
}

/** Checks the references of a prompt or an agent to its context. */
export const checkContextSkills: DefinitionCheck = contextSkillsCheck(() => false);
