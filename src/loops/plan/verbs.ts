/** The verbs of actions, and the loops that they stand for. */

/** Other words for the shipped verbs. */
const VERB_ALIASES: { readonly [alias: string]: string } = { show: 'view', check: 'analyze', fix: 'edit' };

/** The verbs that exist without a binding. */
export const SHIPPED_VERBS: readonly string[] = ['view', 'analyze', 'edit'];

/** Returns the verb that a word stands for. */
export function verbOf(word: string): string {
  return Object.hasOwn(VERB_ALIASES, word) ? (VERB_ALIASES[word] as string) : word;
}

/** Returns the loop that a word is bound to: by itself, or through the verb that it stands for. */
export function boundLoop(verbs: { readonly [verb: string]: string } | undefined, word: string): string | undefined {
  for (const name of [word, verbOf(word)])
    if (verbs !== undefined && Object.hasOwn(verbs, name)) return verbs[name] as string;
  return undefined;
}

/** Returns the id of the loop that a shipped verb stands for; undefined for any other word. */
export function shippedLoop(word: string): string | undefined {
  const verb = verbOf(word);
  return SHIPPED_VERBS.includes(verb) ? `rondo.${verb}` : undefined;
}

/** Returns the shipped verb whose loop has this id; undefined for any other loop. */
export function shippedVerbOf(loopId: string): string | undefined {
  return SHIPPED_VERBS.find((verb) => `rondo.${verb}` === loopId);
}
