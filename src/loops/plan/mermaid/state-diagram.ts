/** Draws the states of a plan as a Mermaid state diagram. */
import type { PlanSpec, PlanState } from '../../../protocol/plan.js';
import { labelOf } from './mermaid-text.js';
import { describeCall } from './step-label.js';

/** Returns the `stateDiagram-v2` of the states of a plan. `failed` is drawn if a transition leads to it. */
export function stateDiagram({ states = [], initial_state: initial = states[0]?.name }: PlanSpec): string {
  const ids = new Map(states.map(({ name }, index) => [name, `s${index + 1}`]));
  const names = [...ids.keys(), 'done'];
  const others = states.flatMap((state) => edgesOf(state, names)).flatMap(({ next }) => (ids.has(next) ? [] : [next]));
  const implicit = [...new Set(others)].filter((name) => name !== 'done');
  for (const name of implicit) ids.set(name, `s${ids.size + 1}`);
  const idOf = (name: string): string => ids.get(name) ?? '[*]';
  const lines = [
    ...states.map((state) => `state "${labelOf(describeCall(state))}" as ${idOf(state.name)}`),
    ...implicit.map((name) => `state "${labelOf(name)}" as ${idOf(name)}`),
    ...(initial === undefined ? [] : [`[*] --> ${idOf(initial)}`]),
    ...states.flatMap((state) =>
      edgesOf(state, names).map(({ next, label }) => edge(idOf(state.name), idOf(next), label)),
    ),
    ...[...states.filter(isTerminal).map(({ name }) => name), ...implicit].map((name) => `${idOf(name)} --> [*]`),
  ];
  return `stateDiagram-v2\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

interface StateEdge {
  readonly next: string;
  readonly label?: string;
}

/** Returns the edges from a state. A model that decides without transitions can name any state. */
function edgesOf(state: PlanState, names: readonly string[]): readonly StateEdge[] {
  if (state.terminal === true) return [];
  const parallel = (state.parallel ?? []).map((next) => ({ next, label: 'parallel' }));
  if (state.join !== undefined) return [...parallel, { next: state.join, label: 'join' }];
  if (state.transitions === undefined && isDecision(state)) return names.map((next) => ({ next }));
  const transitions = (state.transitions ?? []).map(({ condition, next }) =>
    condition === undefined ? { next } : { next, label: condition },
  );
  return [...parallel, ...transitions];
}

function isTerminal(state: PlanState): boolean {
  if (state.terminal === true) return true;
  return state.transitions === undefined && state.join === undefined && !isDecision(state);
}

function isDecision(state: PlanState): boolean {
  return 'plugin' in state && state.plugin === 'llm-decide';
}

function edge(from: string, to: string, label: string | undefined): string {
  return `${from} --> ${to}${label === undefined ? '' : ` : ${labelOf(label)}`}`;
}
