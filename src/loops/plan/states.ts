/**
 * State machines as jumps. Entering a state runs its `on_entry`, unless it comes from itself; then its action; then the
 * first transition that holds is chosen, `on_exit` runs, and the program jumps to the next state.
 */
import { LoopError } from '../../base/errors.js';
import type { Scope } from '../../protocol/body.js';
import type { PlanCallStep, PlanSpec, PlanState, PlanStep, PlanTransition } from '../../protocol/plan.js';
import { compileEvaluation, type Evaluation, recordChoice } from './chooser.js';
import type { PlanCompiler } from './compiler.js';
import type { Label } from './plan-call.js';
import { pluginParameters } from './plan-inputs.js';
import { type PlanRun, succeeded } from './plan-run.js';

/** The states that exist in every machine. */
export const IMPLICIT_STATES: readonly string[] = ['done', 'failed'];

/** The kinds of actions that a state can have. */
const ACTION_KINDS = ['action', 'loop', 'prompt', 'plugin', 'workflow'] as const;

/** Where a state begins: with or without its `on_entry`. */
interface StateLabels {
  readonly enter: Label;
  readonly again: Label;
}

/** Compiles the states of a plan. */
export function compileStates(compiler: PlanCompiler, spec: PlanSpec): void {
  const { states = [], initial_state: initial = states[0]?.name ?? 'done' } = spec;
  const end: Label = { index: -1 };
  const fail: Label = { index: -1 };
  const labels = new Map<string, StateLabels>(
    states.map(({ name }) => [name, { enter: { index: -1 }, again: { index: -1 } }]),
  );
  if (!labels.has('done')) labels.set('done', { enter: end, again: end });
  if (!labels.has('failed')) labels.set('failed', { enter: fail, again: fail });
  const machine: Machine = { compiler, labels, end, byName: new Map(states.map((state) => [state.name, state])) };
  compiler.emit(() => labelsOf(machine, initial).enter.index);
  for (const [index, state] of states.entries()) compileState(machine, state, `/composite/plan/states/${index}`);
  compiler.place(fail);
  compiler.emit((run) => {
    throw failedStateError(run);
  });
  compiler.place(end);
}

interface Machine {
  readonly compiler: PlanCompiler;
  readonly labels: ReadonlyMap<string, StateLabels>;
  readonly byName: ReadonlyMap<string, PlanState>;
  /** The end of the program. */
  readonly end: Label;
}

function labelsOf({ labels }: Machine, state: string): StateLabels {
  return labels.get(state) as StateLabels;
}

function compileState(machine: Machine, state: PlanState, path: string): void {
  const { compiler } = machine;
  const { enter, again } = labelsOf(machine, state.name);
  compiler.place(enter);
  if (state.on_entry !== undefined)
    compiler.call({ action: state.on_entry }, `${path}/on_entry`, `${state.name}.on_entry`, new Map());
  compiler.place(again);
  if (isDecision(state)) {
    compileDecision(machine, state, path);
    return;
  }
  if (state.parallel !== undefined) compileParallel(machine, state, path);
  else if (hasAction(state))
    compiler.call(withoutStateMembers(state), path, state.name, new Map(), state.transitions ? 'continue' : 'fail');
  const transitions = transitionsOf(state);
  if (transitions.length === 0) compiler.emit(() => machine.end.index);
  else compileTransitions(machine, state, transitions, path);
}

function hasAction(state: PlanState): boolean {
  return ACTION_KINDS.some((kind) => Object.hasOwn(state, kind));
}

/** Returns the step of a state without the members that only states have. */
function withoutStateMembers(state: PlanState): PlanCallStep {
  const {
    transitions: _,
    on_entry: _entry,
    on_exit: _exit,
    terminal: _terminal,
    parallel: _p,
    join: _j,
    ...step
  } = state;
  return step as unknown as PlanCallStep;
}

function transitionsOf({ transitions = [], join, terminal = false }: PlanState): readonly PlanTransition[] {
  if (terminal) return [];
  return join === undefined ? transitions : [{ next: join }];
}

function compileTransitions(
  machine: Machine,
  state: PlanState,
  transitions: readonly PlanTransition[],
  path: string,
): void {
  const compiled = transitions.map(({ condition, next }, index) => ({
    next,
    ...(condition === undefined ? SUCCEEDED : compileEvaluation(condition, `${path}/transitions/${index}/condition`)),
  }));
  if (compiled.every(({ isImmediate }) => isImmediate)) {
    leave(machine, state, path, (run, scope) => () => {
      const chosen = compiled.find(({ holds }) => holds(run, scope) === true);
      if (chosen === undefined) throw noTransitionError(state.name, run);
      return chosen.next;
    });
    return;
  }
  leave(machine, state, path, async (run, scope) => {
    for (const { next, holds } of compiled) if (await holds(run, scope)) return () => next;
    throw noTransitionError(state.name, run);
  });
}

/** The condition of a transition without one: a failure needs a transition that is meant for it. */
const SUCCEEDED: Evaluation = { isImmediate: true, holds: (run) => run.result.status === 'ok' };

/**
 * Records which state follows, runs `on_exit` unless it is the same one, and jumps. `chooserOf` returns the function that
 * chooses it, which is not called if a choice is recorded.
 */
function leave(
  machine: Machine,
  state: PlanState,
  path: string,
  chooserOf: (run: PlanRun, scope: Scope) => (() => string) | Promise<() => string>,
): void {
  const { compiler } = machine;
  const exit: Label = { index: -1 };
  compiler.emit(async (run, scope) => {
    const next = await recordChoice(scope, state.name, await chooserOf(run, scope));
    run.countTransition();
    const target = labelsOf(machine, next);
    if (next === state.name) return target.again.index;
    run.exitTarget = target.enter.index;
    return exit.index;
  });
  compiler.place(exit);
  if (state.on_exit !== undefined)
    compiler.call({ action: state.on_exit }, `${path}/on_exit`, `${state.name}.on_exit`, new Map());
  compiler.emit((run) => run.exitTarget);
}

function isDecision(state: PlanState): boolean {
  return 'plugin' in state && state.plugin === 'llm-decide';
}

/** `llm-decide`: a model names the next state. Without transitions, it can name any state. */
function compileDecision(machine: Machine, state: PlanState, path: string): void {
  const { prompt = 'Given {context}, which state is next?', system } = pluginParameters(
    state as unknown as { plugin: string },
  ) as { readonly prompt?: string; readonly system?: string };
  const names = state.transitions?.map(({ next }) => next) ?? [...machine.labels.keys()];
  const question = `${prompt}\n\nAnswer with exactly one of these words, and nothing else: ${names.join(', ')}`;
  const { plugin: _plugin, ...base } = withoutStateMembers(state) as { plugin?: string };
  const step = { ...base, prompt: question, ...(system !== undefined && { system }) } as unknown as PlanCallStep;
  machine.compiler.call(step, path, state.name, new Map());
  leave(machine, state, path, (run) => () => {
    const reply = String(run.result.output).trim();
    // guard: decision-is-exactly-a-state
    if (names.includes(reply)) return reply;
    const shown = JSON.stringify(reply.slice(0, 200));
    const message = `State "${state.name}": the model answered ${shown}, which is none of ${names.join(', ')}.`;
    throw new LoopError('EXECUTION_FAILED', message, { state: state.name, reply: reply.slice(0, 200) });
  });
}

/** Runs the actions of other states concurrently, each once. The output has one member for each state. */
function compileParallel(machine: Machine, state: PlanState, path: string): void {
  const { compiler, byName } = machine;
  const names = state.parallel ?? [];
  const branches = names.map((name) => {
    const inner = byName.get(name);
    return { name, steps: inner !== undefined && hasAction(inner) ? [withoutStateMembers(inner) as PlanStep] : [] };
  });
  compiler.steps([{ name: state.name, type: 'fanout', fanout: { branches, limit: Math.max(1, names.length) } }], path);
  compiler.update((run) => {
    const outputs = run.result.output as readonly never[];
    const byState = Object.fromEntries(names.map((name, index) => [name, outputs[index] ?? null]));
    run.setResult(succeeded(byState), state.name, (state as { capture?: string }).capture);
  });
}

function noTransitionError(state: string, { result }: PlanRun): LoopError {
  const { error } = result;
  if (error === undefined)
    return new LoopError('EXECUTION_FAILED', `No transition of the state "${state}" holds.`, { state });
  return new LoopError(error.code, `State "${state}" failed, and none of its transitions holds: ${error.message}`, {
    state,
  });
}

function failedStateError({ result }: PlanRun): LoopError {
  const { error } = result;
  const cause = error === undefined ? '' : `: ${error.message}`;
  return new LoopError('EXECUTION_FAILED', `The plan ended in the state "failed"${cause}.`, { state: 'failed' });
}
