/**
 * The path of a failure: the failed steps of a turn, from its root down to the steps that caused the failure. A retry
 * continues at these steps. Errors are recognized by code and message, because the journal does not record which error
 * a body passed on.
 */
import { expandLeaves } from '../journal/leaf-entries.js';
import { isClosingType, isOpeningType, reopenedKeysOf } from '../journal/replay-tree.js';
import { GATE_BOUNDARY } from '../journal/runtime-effects.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import { parentKeyOf } from './conversation/open-calls.js';
import { withoutRetrySuffix } from './turns.js';

/** A step with its first and last entry. A branch of a group has neither. */
interface StepNode {
  readonly key: string;
  openEntry: Entry | undefined;
  closeEntry: Entry | undefined;
  readonly children: Map<number, StepNode>;
}

/** Returns the keys of the failed steps, the root first; empty if the root has not failed. */
export function failurePathOf(root: string, entries: readonly Entry[]): readonly string[] {
  const rootStep = stepsOf(root, entries);
  const error = rootStep.closeEntry?.error;
  const keys: string[] = [];
  if (error !== undefined) addFailedStep(rootStep, error, keys);
  return keys;
}

/** Adds a step that failed with an error, and the steps below it that caused the error. */
function addFailedStep(step: StepNode, error: ErrorRecord, keys: string[]): void {
  const { openEntry, closeEntry } = step;
  if (isAllGroup(step)) {
    addFailedBranches(step, error, keys);
    return;
  }
  keys.push(step.key);
  addGate(step, keys);
  const winner = openEntry?.type === 'group.opened' ? step.children.get(closeEntry?.winnerIndex ?? -1) : step;
  if (winner !== undefined) addFailureIn(winner, error, keys);
}

/** Adds the gate that a failed call passed by an approval, and the attempt in it: the approval was for one run. */
function addGate(call: StepNode, keys: string[]): void {
  const gate = call.children.get(0);
  const { type, boundary, name } = gate?.openEntry ?? {};
  // A question that a plan asks has another name.
  const isGate = type === 'effect.opened' && boundary === GATE_BOUNDARY && name === call.openEntry?.name;
  if (gate === undefined || !isGate || gate.closeEntry?.error !== undefined) return;
  const attempt = childrenOf(gate).findLast(({ openEntry }) => openEntry?.boundary === GATE_BOUNDARY);
  // guard: gate-of-retried-call-reopened
  if (attempt !== undefined) keys.push(gate.key, attempt.key);
}

/**
 * Adds the step of a scope that caused an error: the last one that failed with this error, or else the last step if it
 * failed, because the body may have wrapped the error.
 */
function addFailureIn(scope: StepNode, error: ErrorRecord, keys: string[]): void {
  const steps = childrenOf(scope);
  const cause = steps.findLast((step) => errorsOf(step).some((other) => isSameError(other, error))) ?? steps.at(-1);
  const [causeError] = cause === undefined ? [] : errorsOf(cause);
  if (cause !== undefined && causeError !== undefined)
    addFailedStep(cause, isAllGroup(cause) && hasError(cause, error) ? error : causeError, keys);
  else if (error.code === 'OUTPUT_VALIDATION_FAILED') addRefusedReply(scope, steps, keys);
}

/**
 * Adds the failed branches of `scope.all`: the first one that failed with this error, and all later ones that ended with
 * a failure. Failures in the branches before it were caught.
 */
function addFailedBranches(group: StepNode, error: ErrorRecord, keys: string[]): void {
  const branches = childrenOf(group);
  const isCause = (branch: StepNode): boolean =>
    childrenOf(branch).some((step) => errorsOf(step).some((other) => isSameError(other, error)));
  const exact = branches.findIndex(isCause);
  const first = exact === -1 ? branches.findIndex((branch) => errorAtEndOf(branch) !== undefined) : exact;
  for (const [index, branch] of branches.entries()) {
    const branchError = index === exact ? error : errorAtEndOf(branch);
    if (index >= first && branchError !== undefined) addFailureIn(branch, branchError, keys);
  }
}

/**
 * Adds the last model call of a prompt or agent whose reply does not fit the output schema, with the effect and the
 * attempt in it: the model is asked again.
 */
function addRefusedReply({ openEntry }: StepNode, steps: readonly StepNode[], keys: string[]): void {
  if (openEntry?.bodyKind !== 'prompt' && openEntry?.bodyKind !== 'agent') return;
  let modelCall = steps.findLast(isModelCall);
  while (modelCall !== undefined) {
    keys.push(modelCall.key);
    modelCall = childrenOf(modelCall).findLast(isModelCall);
  }
}

function isModelCall({ openEntry }: StepNode): boolean {
  return openEntry?.kind === 'model' || openEntry?.bodyKind === 'model';
}

/** Returns the errors with which a step failed; empty if it did not. `scope.all` has the errors of its branches. */
function errorsOf(step: StepNode): readonly ErrorRecord[] {
  if (isAllGroup(step)) return childrenOf(step).flatMap((branch) => errorAtEndOf(branch) ?? []);
  const error = step.closeEntry?.error;
  return error === undefined ? [] : [error];
}

function errorAtEndOf(branch: StepNode): ErrorRecord | undefined {
  const last = childrenOf(branch).at(-1);
  return last === undefined ? undefined : errorsOf(last)[0];
}

function hasError(step: StepNode, error: ErrorRecord): boolean {
  return errorsOf(step).some((other) => isSameError(other, error));
}

function isSameError(a: ErrorRecord, b: ErrorRecord): boolean {
  return a.code === b.code && a.message === b.message;
}

function isAllGroup({ openEntry }: StepNode): boolean {
  return openEntry?.type === 'group.opened' && openEntry.name === 'all';
}

function childrenOf(step: StepNode): readonly StepNode[] {
  return [...step.children].sort(([a], [b]) => a - b).map(([, child]) => child);
}

/** Builds the steps of a root with their last ends. */
function stepsOf(root: string, entries: readonly Entry[]): StepNode {
  const rootStep = newStep(root);
  const steps = new Map([[root, rootStep]]);
  const stepAt = (key: string): StepNode | undefined => {
    const existing = steps.get(key);
    const parent = existing === undefined && key.includes('/') ? stepAt(parentKeyOf(key)) : undefined;
    if (parent === undefined) return existing;
    const step = newStep(key);
    parent.children.set(Number(key.slice(key.lastIndexOf('/') + 1)), step);
    steps.set(key, step);
    return step;
  };
  for (const entry of expandLeaves(entries)) {
    const { key, type } = entry;
    if (type === 'call.reopened' && key === root)
      for (const reopened of reopenedKeysOf(entry.value)) endAgain(reopened);
    const isOpening = isOpeningType(type);
    // Of the entries of a retry, only its refusal ends a step: what was refused can be tried again.
    const isOwn = !key.includes('~') || type === 'step.refused';
    const step = isOwn && (isOpening || isClosingType(type)) ? stepAt(withoutRetrySuffix(key)) : undefined;
    if (step === undefined) continue;
    if (isOpening) step.openEntry = entry;
    else step.closeEntry = entry;
  }
  return rootStep;

  function endAgain(key: string): void {
    const step = steps.get(key);
    if (step !== undefined) step.closeEntry = undefined;
  }
}

function newStep(key: string): StepNode {
  return { key, openEntry: undefined, closeEntry: undefined, children: new Map() };
}

/**
 * Returns the entries without the ends of calls, and of effects with layers, that no longer apply because a retry
 * reopened them. The other views fold the result: for them, the turn has never ended before.
 */
export function withoutReopenedEnds(entries: readonly Entry[]): readonly Entry[] {
  const reopenedAt = new Map<string, number>();
  for (const { type, value, seq } of entries)
    if (type === 'call.reopened') for (const key of reopenedKeysOf(value)) reopenedAt.set(key, seq);
  if (reopenedAt.size === 0) return entries;
  return expandLeaves(entries).filter(
    ({ type, key, seq }) =>
      (type !== 'call.errored' && type !== 'call.completed' && type !== 'effect.settled') ||
      seq > (reopenedAt.get(key) ?? Number.NEGATIVE_INFINITY),
  );
}
