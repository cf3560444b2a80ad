/**
 * Views and invariants: pure functions over entries. A view folds the entries of a session into a state. An invariant
 * checks a proposed entry against the state of a view and may refuse it before it is written.
 */

import { LoopError } from '../base/errors.js';
import type { Entry, EntryDraft } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { expandLeaf } from './leaf-entries.js';

/**
 * A fold over entries. It gets a leaf call, which is stored as two entries, as the four entries of a call and its
 * effect. A snapshot restores its state only if `name` and `version` are the same. The state must be JSON
 * to be saved in a snapshot.
 *
 * @example
 * const effectCount: View<number> = {
 *   name: 'effect-count',
 *   version: 1,
 *   initial: 0,
 *   apply: (count, { type }) => (type === 'effect.requested' ? count + 1 : count),
 * };
 */
export interface View<S> {
  readonly name: string;
  readonly version: number;
  readonly initial: S;
  /** The types of the entries that it gets. @default all types */
  readonly types?: readonly string[];
  /** Returns the state after an entry. Must not change `state`. */
  apply(state: S, entry: Entry): S;
}

/** Why an invariant refuses an entry. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
}

/** A rule over the state of one view. It applies to proposed entries, not to facts that have happened already. */
export interface Invariant<S> {
  readonly view: View<S>;
  /** Returns why the entry is refused; undefined if it may be written. */
  check(state: S, draft: EntryDraft): Violation | undefined;
}

interface ViewState {
  readonly view: View<unknown>;
  state: unknown;
}

/** Shared by all sessions without views, which is most of them. */
const NO_VIEWS: ReadonlyMap<string, ViewState> = new Map();

/** The states of the views of one session, kept up to date entry by entry. */
export class ViewStates {
  private readonly states: ReadonlyMap<string, ViewState>;
  private readonly invariants: readonly Invariant<unknown>[];
  // Both are computed once, because they are read for every entry.
  /** True if the session has neither views nor invariants. */
  readonly isEmpty: boolean;
  /** The types of stored entries that a view gets; undefined if there may be others. */
  private readonly types: ReadonlySet<string> | undefined;
  readonly hasInvariants: boolean;

  constructor(views: readonly View<unknown>[], invariants: readonly Invariant<unknown>[]) {
    this.invariants = invariants;
    this.hasInvariants = invariants.length > 0;
    this.isEmpty = views.length === 0 && !this.hasInvariants;
    const all = [...views, ...invariants.map((invariant) => invariant.view)];
    this.states = this.isEmpty ? NO_VIEWS : initialStates(all);
    this.types = storedTypesOf(all);
  }

  /** Applies the next entry to every view. */
  apply(entry: Entry): void {
    if (this.types !== undefined && !this.types.has(entry.type)) return;
    const parts = expandLeaf(entry) ?? [entry];
    for (const each of this.states.values()) for (const part of parts) applyTo(each, part);
  }

  /** Throws INVARIANT_VIOLATED if an invariant refuses the entry. */
  checkInvariants(draft: EntryDraft): void {
    for (const invariant of this.invariants) {
      const violation = invariant.check(this.stateOf(invariant.view), draft);
      if (violation === undefined) continue;
      const { rule, message } = violation;
      throw new LoopError('INVARIANT_VIOLATED', `${draft.type} at ${draft.key} breaks ${rule}: ${message}`, { rule });
    }
  }

  /** Returns the current state of a view. Throws a TypeError if the session has no view of this name. */
  stateOf<S>(view: View<S>): S {
    const viewState = this.states.get(view.name);
    if (viewState === undefined) throw new TypeError(`The session was opened without the view "${view.name}".`);
    return viewState.state as S;
  }

  /** Returns the states by name and version, for a snapshot. */
  save(): { [view: string]: Json } {
    const saved: { [view: string]: Json } = {};
    for (const { view, state } of this.states.values()) saved[`${view.name}@${view.version}`] = state as Json;
    return saved;
  }

  /** Restores saved states. Returns false and changes nothing unless every view is saved in its current version. */
  restore(saved: { readonly [view: string]: Json }): boolean {
    const viewStates = [...this.states.values()];
    if (!viewStates.every(({ view }) => Object.hasOwn(saved, `${view.name}@${view.version}`))) return false;
    for (const each of viewStates) each.state = saved[`${each.view.name}@${each.view.version}`];
    return true;
  }
}

function applyTo(viewState: ViewState, entry: Entry): void {
  const { view, state } = viewState;
  if (view.types === undefined || view.types.includes(entry.type)) viewState.state = view.apply(state, entry);
}

/** The effect of a leaf call is stored in the entries of the call, so its types are those of other entries there. */
function storedTypesOf(views: readonly View<unknown>[]): ReadonlySet<string> | undefined {
  const types = new Set<string>();
  for (const view of views) {
    if (view.types === undefined || view.types.some((type) => type.startsWith('effect.'))) return undefined;
    for (const type of view.types) types.add(type);
  }
  return types;
}

/** Returns the initial states by name. Throws a TypeError if two different views have the same name. */
function initialStates(views: readonly View<unknown>[]): ReadonlyMap<string, ViewState> {
  const states = new Map<string, ViewState>();
  for (const view of views) {
    const existing = states.get(view.name);
    if (existing !== undefined && existing.view !== view) throw new TypeError(`Two views are named "${view.name}".`);
    states.set(view.name, { view, state: view.initial });
  }
  return states;
}
