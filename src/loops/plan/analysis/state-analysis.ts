/**
 * Checks the states of a plan: that each can be reached, and that each reads only what a state on a path to it captures.
 */
import type { JsonSchema } from '../../../protocol/loop.js';
import type { PlanCallStep, PlanSpec, PlanState } from '../../../protocol/plan.js';
import { type DefinitionIssues, quoteText } from '../../definition/shape.js';
import type { CallAnalysis } from './call-analysis.js';
import { ANY_RESULT, type PlanTypes, resultSchema, type Schemas, withResult } from './readable-values.js';
import type { ReferenceCheck } from './references.js';

const ACTION_KINDS = ['action', 'loop', 'prompt', 'plugin', 'workflow'];

/** The members of a state that this analysis reads. */
type State = PlanState & { readonly capture?: string; readonly plugin?: string };

/** Checks the states of one plan. */
export class StateAnalysis {
  private readonly calls: CallAnalysis;
  private readonly check: ReferenceCheck;
  private readonly issues: DefinitionIssues;
  private readonly states: readonly State[];
  private readonly initial: string;
  private readonly byName: ReadonlyMap<string, State>;
  /** The states that can follow each state. */
  private readonly followers: ReadonlyMap<string, readonly string[]>;
  private readonly predecessors = new Map<string, string[]>();
  /** The schema of the result of each state that captures one. */
  private readonly resultTypes = new Map<string, JsonSchema>();

  constructor(spec: PlanSpec, calls: CallAnalysis, check: ReferenceCheck, issues: DefinitionIssues) {
    const { states = [], initial_state: initial = states[0]?.name ?? 'done' } = spec;
    this.calls = calls;
    this.check = check;
    this.issues = issues;
    this.states = states as readonly State[];
    this.initial = initial;
    this.byName = new Map(this.states.map((state) => [state.name, state]));
    const names = [...this.byName.keys(), 'done', 'failed'];
    this.followers = new Map(this.states.map((state) => [state.name, followersOf(state, names)]));
    for (const [name, following] of this.followers)
      for (const next of following) {
        const earlier = this.predecessors.get(next);
        if (earlier === undefined) this.predecessors.set(next, [name]);
        else earlier.push(name);
      }
  }

  /** Checks all states, which are at `path`. */
  checkAll(path: string, start: PlanTypes): void {
    for (const state of this.states)
      if (state.capture !== undefined)
        this.resultTypes.set(state.name, this.calls.resultOf(state as unknown as PlanCallStep, start));
    const entered = this.reach(this.initial);
    const parallel = new Set(this.states.flatMap((state) => (entered.has(state.name) ? (state.parallel ?? []) : [])));
    for (const [index, state] of this.states.entries()) {
      const at = `${path}/${index}`;
      if (!entered.has(state.name) && !parallel.has(state.name))
        this.issues.add(
          `${at}/name`,
          `is ${quoteText(state.name)}, which no transition reaches from "${this.initial}"`,
        );
      else this.state(state, at, start, entered);
    }
  }

  private state(state: State, path: string, start: PlanTypes, entered: ReadonlySet<string>): void {
    const before = this.reach(this.initial, state.name);
    const values = {
      ...start.values,
      ...this.captures(before),
      ...(state.name !== this.initial && { result: ANY_RESULT }),
    };
    const carried = this.captures([...this.precede(state.name)].filter((name) => entered.has(name)));
    let types: PlanTypes = { values, carried };
    if (state.on_entry !== undefined)
      types = withResult(types, resultSchema(this.calls.action(state.on_entry, `${path}/on_entry`, types)));
    if (state.parallel !== undefined) types = withResult(types, parallelResult(state.parallel), state.capture);
    else if (ACTION_KINDS.some((kind) => Object.hasOwn(state, kind)))
      types = this.calls.call(state as unknown as PlanCallStep, path, withResult(types, ANY_RESULT));
    for (const [index, { condition }] of (state.transitions ?? []).entries())
      if (condition !== undefined) this.check.condition(condition, `${path}/transitions/${index}/condition`, types);
    if (state.on_exit !== undefined) this.calls.action(state.on_exit, `${path}/on_exit`, types);
  }

  /** Returns the states that can be entered from one of them, itself included, without passing through `last`. */
  private reach(from: string, last?: string): ReadonlySet<string> {
    const reached = new Set([from]);
    for (const name of reached) if (name !== last) for (const next of this.followers.get(name) ?? []) reached.add(next);
    if (last !== undefined) reached.delete(last);
    return reached;
  }

  /** Returns the states from which one of them can be entered, itself included. */
  private precede(state: string): ReadonlySet<string> {
    const found = new Set([state]);
    for (const name of found) for (const earlier of this.predecessors.get(name) ?? []) found.add(earlier);
    return found;
  }

  /** Returns what states capture: the schema of a name that only one of them captures, and any result otherwise. */
  private captures(names: Iterable<string>): Schemas {
    const captured: { [name: string]: JsonSchema } = {};
    for (const name of names) {
      const capture = this.byName.get(name)?.capture;
      if (capture === undefined) continue;
      captured[capture] = Object.hasOwn(captured, capture) ? ANY_RESULT : (this.resultTypes.get(name) ?? ANY_RESULT);
    }
    return captured;
  }
}

function followersOf(
  { transitions, join, terminal = false, plugin }: State,
  names: readonly string[],
): readonly string[] {
  if (terminal) return [];
  if (join !== undefined) return [join];
  if (transitions === undefined) return plugin === 'llm-decide' ? names : [];
  return transitions.map(({ next }) => next);
}

function parallelResult(states: readonly string[]): JsonSchema {
  const properties = Object.fromEntries(states.map((name) => [name, {}]));
  return resultSchema({ type: 'object', properties, additionalProperties: false });
}
