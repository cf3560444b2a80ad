/** Draws the states of a plan as a Mermaid state diagram. */
import type { PlanSpec, PlanState } from '../../../protocol/plan.js';
import { labelOf } from './mermaid-text.js';
import { describeCall } from './step-label.js';

/** Returns the `stateDiagram-v2` of the states of a plan. `failed` is drawn if a transition leads to it. */
export function stateDiagram({ states = [], initial_state: initial = states[0]?.name }: PlanSpec): string {
  const ids = new Map(states.map(({ name }, index) => [name, `s${index + 1}`]));
  const others = states.flatMap(edgesOf).flatMap(({ next }) => (ids.has(next) ? [] : [next]));
  const implicit = [...new Set(others)].filter((name) => name !== 'done');
  for (const name of implicit) ids.set(name, `s${ids.size + 1}`);
  const idOf = (name: string): string => ids.get(name) ?? '[*]';
  const lines = [
    ...states.map((state) => `state "${labelOf(describeCall(state))}" as ${idOf(state.name)}`),
    ...implicit.map((name) => `state "${labelOf(name)}" as ${idOf(name)}`),
    ...(initial === undefined ? [] : [`[*] --> ${idOf(initial)}`]),
    ...states.flatMap((state) => edgesOf(state).map(({ next, label }) => edge(idOf(state.name), idOf(next), label))),
    ...[...states.filter(isTerminal).map(({ name }) => name), ...implicit].map((name) => `${idOf(name)} --> [*]`),
  ];
  return `stateDiagram-v2\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

interface StateEdge {
  readonly next: string;
  readonly label?: string;
}

function edgesOf(state: PlanState): readonly StateEdge[] {
  if (state.terminal === true) return [];
  const parallel = (state.parallel ?? []).map((next) => ({ next, label: 'parallel' }));
  if (state.join !== undefined) return [...parallel, { next: state.join, label: 'join' }];
  const transitions = (state.transitions ?? []).map(({ condition, next }) =>
    condition === undefined ? { next } : { next, label: condition },
  );
  return [...parallel, ...transitions];
}

function isTerminal(state: PlanState): boolean {
  const isDecision = 'plugin' in state && state.plugin === 'llm-decide';
  return state.terminal === true || (state.transitions === undefined && state.join === undefined && !isDecision);
}

function edge(from: string, to: string, label: string | undefined): string {
  return `${from} --> ${to}${label === undefined ? '' : ` : ${labelOf(label)}`}`;
}
