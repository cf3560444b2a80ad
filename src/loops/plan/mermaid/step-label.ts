/** Describes a step or a state that is a call, for a diagram. */

/** The members that say what a call does, in the order in which they are looked for. */
const KINDS = ['plugin', 'action', 'loop', 'workflow', 'prompt'] as const;

/** Returns the description of a call: its name, and what it calls. */
export function describeCall(step: object): string {
  const members = step as { readonly [name: string]: unknown };
  const kind = KINDS.find((name) => typeof members[name] === 'string');
  const target = kind === undefined ? '' : String(members[kind]);
  const what = kind === 'prompt' ? `ask: ${target}` : target;
  const name = typeof members.name === 'string' ? members.name : '';
  return [name, what].filter((part) => part !== '').join(': ');
}
