/** Refuses a grant under which no approval could be answered: its approvers and those of the turn have no one in common. */
import { LoopError } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Grant } from '../protocol/grant.js';
import { TURN_OPENED } from '../views/turns.js';
import { principalsIn } from './turn-opening.js';

/** Returns the error of a grant that excludes every approver of its turn; undefined if someone can answer. */
export function unanswerableGrant(
  grant: Grant | undefined,
  approvers: readonly string[] | undefined,
): LoopError | undefined {
  const granted: unknown = grant?.approvers;
  // An empty list permits no answers, deliberately. A value that is no list is refused with the grant.
  if (!Array.isArray(granted) || granted.length === 0 || approvers === undefined || approvers.length === 0)
    return undefined;
  // guard: someone-can-answer
  if (approvers.some((name) => granted.includes(name))) return undefined;
  const message =
    'No approval could be answered: no approver of the turn is an approver of the grant. ' +
    'Name at least one principal in both lists, or leave one of them out.';
  return new LoopError('GRANT_INVALID', message, { path: '/approvers' });
}

/** Returns the approvers that a turn was opened with; undefined if it names none. */
export function recordedApprovers(turnId: string, entries: readonly Entry[]): readonly string[] | undefined {
  const opened = entries.find(({ type, key }) => type === TURN_OPENED && key === `#${turnId}`);
  return opened && principalsIn(opened).approvers;
}
