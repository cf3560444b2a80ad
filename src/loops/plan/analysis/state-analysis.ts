/**
 * Checks the states of a plan: that each can be reached, and that each reads only what a state on a path to it captures.
 */
import type { JsonSchema } from '../../../protocol/loop.js';
import type { PlanCallStep, PlanSpec, PlanState } from '../../../protocol/plan.js';
import { type DefinitionIssues, quoteText } from '../../definition/shape.js';
import type { CallAnalysis } from './call-analysis.js';
import { ANY_RESULT, ReadableValues, resultSchema, type SchemaTable } from './readable-values.js';
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
  /** The states that capture a result under each name. */
  private readonly capturingStates = new Map<string, string[]>();

  constructor(spec: PlanSpec, calls: CallAnalysis, check: ReferenceCheck, issues: DefinitionIssues) {
    const { states = [], initial_state: initial = states[0]?.name ?? 'done' } = spec;
    this.calls = calls;
    this.check = check;
    this.issues = issues;
    this.states = states as readonly State[];
    this.initial = initial;
    this.byName = new Map(this.states.map((state) => [state.name, state]));
    const names = new Set([...this.byName.keys(), 'done', 'failed']);
    this.followers = new Map(this.states.map((state) => [state.name, followersOf(state, names)]));
    for (const [name, following] of this.followers)
      for (const next of following) {
        const earlier = this.predecessors.get(next);
        if (earlier === undefined) this.predecessors.set(next, [name]);
        else earlier.push(name);
      }
  }

  /** Checks all states, which are at `path`. */
  checkAll(path: string, start: SchemaTable): void {
    const values = new ReadableValues(start);
    for (const state of this.states) {
      if (state.capture === undefined) continue;
      this.resultTypes.set(state.name, this.calls.resultOf(state as unknown as PlanCallStep, values));
      const others = this.capturingStates.get(state.capture);
      if (others === undefined) this.capturingStates.set(state.capture, [state.name]);
      else others.push(state.name);
    }
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

  private state(state: State, path: string, start: SchemaTable, entered: ReadonlySet<string>): void {
    const before = this.captures(() => this.reach(this.initial, state.name));
    const carried = this.captures(() => [...this.precede(state.name)].filter((name) => entered.has(name)));
    let values = new ReadableValues(joined(start, before), [carried]);
    if (state.name !== this.initial) values = values.withResult(ANY_RESULT);
    if (state.on_entry !== undefined)
      values = values.withResult(resultSchema(this.calls.action(state.on_entry, `${path}/on_entry`, values)));
    if (state.parallel !== undefined) values = values.withResult(parallelResult(state.parallel), state.capture);
    else if (ACTION_KINDS.some((kind) => Object.hasOwn(state, kind)))
      values = this.calls.call(state as unknown as PlanCallStep, path, values);
    for (const [index, { condition }] of (state.transitions ?? []).entries())
      if (condition !== undefined) this.check.condition(condition, `${path}/transitions/${index}/condition`, values);
    if (state.on_exit !== undefined) this.calls.action(state.on_exit, `${path}/on_exit`, values);
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
  private captures(statesOf: () => Iterable<string>): SchemaTable {
    let states: ReadonlySet<string> | undefined;
    const capturing = (name: string): readonly string[] => {
      const candidates = this.capturingStates.get(name) ?? [];
      if (candidates.length === 0) return [];
      states ??= new Set(statesOf());
      return candidates.filter((state) => states?.has(state));
    };
    return {
      get: (name) => {
        const [first, ...others] = capturing(name);
        if (first === undefined) return undefined;
        return others.length === 0 ? (this.resultTypes.get(first) ?? ANY_RESULT) : ANY_RESULT;
      },
      names: () => [...this.capturingStates.keys()].filter((name) => capturing(name).length > 0),
    };
  }
}

function joined(first: SchemaTable, second: SchemaTable): SchemaTable {
  return {
    get: (name) => first.get(name) ?? second.get(name),
    names: () => [...first.names(), ...second.names()],
  };
}

function followersOf(
  { transitions, join, terminal = false, plugin }: State,
  names: ReadonlySet<string>,
): readonly string[] {
  if (terminal) return [];
  if (join !== undefined) return [join];
  if (transitions === undefined) return plugin === 'llm-decide' ? [...names] : [];
  // A misspelt state is reported by itself; it may stand for any of them.
  return transitions.flatMap(({ next }) => (names.has(next) ? [next] : [...names]));
}

function parallelResult(states: readonly string[]): JsonSchema {
  const properties = Object.fromEntries(states.map((name) => [name, {}]));
  return resultSchema({ type: 'object', properties, additionalProperties: false });
}
