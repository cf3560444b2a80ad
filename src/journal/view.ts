/**
 * Views and invariants: pure functions over entries. A view folds entries into a state and is the only way to
 * read a session; an invariant looks at a view's state and a draft and may refuse the draft before it is written.
 */

import { LoopError } from '../base/errors.js';
import type { Entry, EntryDraft } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

/** A fold over entries. `name` and `version` tell whether a snapshot still fits; the state must be JSON to be kept in one. */
export interface View<S> {
  readonly name: string;
  readonly version: number;
  readonly initial: S;
  apply(state: S, entry: Entry): S;
}

export interface Violation {
  readonly rule: string;
  readonly message: string;
}

/** A rule over one view's state, asked before an entry that somebody proposes is written. Facts that already happened are not asked. */
export interface Invariant<S> {
  readonly view: View<S>;
  check(state: S, draft: EntryDraft): Violation | undefined;
}

interface ViewState {
  readonly view: View<unknown>;
  state: unknown;
}

/** The states of a session without views: most have none. */
const NO_VIEWS: ReadonlyMap<string, ViewState> = new Map();

/** The states of the views of one session, kept up to date entry by entry. */
export class ViewStates {
  private readonly states: ReadonlyMap<string, ViewState>;
  private readonly invariants: readonly Invariant<unknown>[];
  /** Whether there is nothing to fold, and whether there is anything to obey: asked at every entry. */
  readonly isEmpty: boolean;
  readonly hasInvariants: boolean;

  constructor(views: readonly View<unknown>[], invariants: readonly Invariant<unknown>[]) {
    this.invariants = invariants;
    this.hasInvariants = invariants.length > 0;
    this.isEmpty = views.length === 0 && !this.hasInvariants;
    this.states = this.isEmpty ? NO_VIEWS : initialStates([...views, ...invariants.map((invariant) => invariant.view)]);
  }

  apply(entry: Entry): void {
    for (const fold of this.states.values()) fold.state = fold.view.apply(fold.state, entry);
  }

  checkInvariants(draft: EntryDraft): void {
    for (const invariant of this.invariants) {
      const violation = invariant.check(this.stateOf(invariant.view), draft);
      if (violation === undefined) continue;
      const { rule, message } = violation;
      throw new LoopError('INVARIANT_VIOLATED', `${draft.type} at ${draft.key} breaks ${rule}: ${message}`, { rule });
    }
  }

  stateOf<S>(view: View<S>): S {
    const fold = this.states.get(view.name);
    if (fold === undefined) throw new TypeError(`The view "${view.name}" was not given when the session was opened.`);
    return fold.state as S;
  }

  save(): { [view: string]: Json } {
    const saved: { [view: string]: Json } = {};
    for (const { view, state } of this.states.values()) saved[`${view.name}@${view.version}`] = state as Json;
    return saved;
  }

  /** Takes over a saved state; false, and nothing changed, unless it holds every view at its present version. */
  restore(saved: { readonly [view: string]: Json }): boolean {
    const folds = [...this.states.values()];
    if (!folds.every(({ view }) => Object.hasOwn(saved, `${view.name}@${view.version}`))) return false;
    for (const fold of folds) fold.state = saved[`${fold.view.name}@${fold.view.version}`];
    return true;
  }
}

function initialStates(views: readonly View<unknown>[]): ReadonlyMap<string, ViewState> {
  const states = new Map<string, ViewState>();
  for (const view of views) {
    const known = states.get(view.name);
    if (known !== undefined && known.view !== view) throw new TypeError(`Two views are named "${view.name}".`);
    states.set(view.name, { view, state: view.initial });
  }
  return states;
}
