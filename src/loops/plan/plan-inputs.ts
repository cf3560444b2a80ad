/** The steps of a plan that are calls: which loop they call, and how its input is built. */
import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import { compileJsonPath } from '../../json/path.js';
import type { Loop } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import type { PlanCallStep, PlanMapping, PlanSpec, PlanStep } from '../../protocol/plan.js';
import { compileMapping } from '../mapping.js';
import { type CompiledText, compileAction, compileText, type PlaceholderLookup } from './placeholders.js';
import type { PlanRun } from './plan-run.js';
import { boundLoop, shippedLoop, verbOf } from './verbs.js';

/** Builds the input of a call from the values of the plan. */
export type BuildInput = (run: PlanRun) => Json;

/** What a call calls: a loop by its id, a loop of the plan itself, or a prompt of the plan. */
type CallTarget =
  | { readonly loopId: string; readonly version: string | undefined }
  | { readonly loop: Loop }
  | { readonly system: string | undefined; readonly schema: JsonSchema | undefined };

/** A step as one call. */
export interface SingleCallKind {
  readonly target: CallTarget;
  readonly buildInput: BuildInput;
  readonly usesContext: boolean;
  /** Counts the call before it starts. May throw BUDGET_EXHAUSTED. */
  readonly count: ((run: PlanRun, input: Json) => void) | undefined;
}

/** A step as a call, as a condition, or as a call for each item of a list. */
export type CallKind =
  | { readonly test: string }
  | SingleCallKind
  | {
      readonly each: {
        readonly source: string | undefined;
        readonly items: string | undefined;
        readonly body: PlanCallStep;
        readonly isConcurrent: boolean;
        readonly limit: number | undefined;
      };
    };

/** Returns the name of a step for messages and choices. */
export function stepNameOf({ name }: Pick<PlanStep, 'name'>, index: number): string {
  return name ?? String(index);
}

/** The placeholders that every plan has. */
export const RESERVED_PLACEHOLDERS: readonly string[] = ['item', 'index', 'iteration', 'context'];

/** Returns the lookup of placeholders: reserved names, captured outputs, and members of the input. */
export function placeholderLookup(run: PlanRun): PlaceholderLookup {
  return (name) => {
    const [first = '', ...members] = name.split('.');
    let value = firstValue(run, first);
    for (const member of members) value = memberOf(value, member);
    return value;
  };
}

function firstValue(run: PlanRun, name: string): Json | undefined {
  const { data } = run;
  if (name === 'context') return run.contextText;
  if (name === 'item' || name === 'index' || name === 'iteration') return data[name];
  const captured = name === 'input' || !Object.hasOwn(data, name) ? undefined : data[name];
  return captured === undefined ? memberOf(data.input, name) : memberOf(captured, 'output');
}

function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (Array.isArray(value)) return /^\d+$/.test(name) ? (value[Number(name)] as Json | undefined) : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Compiles a step that is a call. Throws DEFINITION_INVALID for an invalid text or path, or a verb that is not bound. */
export function callKindOf(step: PlanCallStep, where: string, spec: PlanSpec): CallKind {
  if ('plugin' in step) return pluginKind(step as PluginParameters, where, spec);
  if ('action' in step) return actionKind(step.action as string, `${where}/action`, spec);
  if ('prompt' in step) {
    const { prompt, system, schema } = step as { prompt: string; system?: string; schema?: JsonSchema };
    return promptKind(compileText(prompt, `${where}/prompt`), { system, schema });
  }
  const { loop, version, workflow, input } = step as {
    readonly loop?: string;
    readonly version?: string;
    readonly workflow?: string;
    readonly input?: PlanMapping;
  };
  return callOf({ loopId: (loop ?? workflow) as string, version }, mappedInput(input, `${where}/input`));
}

function callOf(
  target: CallTarget,
  buildInput: BuildInput,
  usesContext = false,
  count?: (run: PlanRun, input: Json) => void,
): CallKind {
  return { target, buildInput, usesContext, count };
}

function mappedInput(input: PlanMapping | undefined, where: string): BuildInput {
  if (input === undefined) return ({ data }) => data.input as Json;
  const mapping = compileMapping(input, where);
  return ({ data }) => mapping(data);
}

/** Compiles an action, which is a call of the loop of its verb. Throws DEFINITION_INVALID like `callKindOf`. */
export function actionKind(text: string, where: string, spec: PlanSpec): CallKind {
  const { words, placeholders, render } = compileAction(text, where);
  const [first] = words;
  if (first === undefined || first.placeholders.length > 0)
    throw invalidStep(where, 'must begin with a verb, such as view, which is not a placeholder');
  const verb = first.text;
  const loopId = boundLoop(spec.verbs, verb) ?? shippedLoop(verb);
  if (loopId === undefined) throw unboundVerbError(verb, where);
  const canonicalVerb = verbOf(verb);
  const buildInput: BuildInput = (run) => {
    const [, ...args] = render(placeholderLookup(run), availableNames(run));
    return { verb: canonicalVerb, args, raw: text };
  };
  const count = (run: PlanRun, input: Json): void => run.countAction(input);
  return callOf({ loopId, version: undefined }, buildInput, placeholders.includes('context'), count);
}

/** Returns the error for a verb that is neither shipped nor bound. */
export function unboundVerbError(verb: string, where: string): LoopError {
  return invalidStep(
    where,
    `has the verb ${JSON.stringify(verb)}, which is not known: bind it to a loop, with ${verb} = "LOOP" in the [verbs] of rondo.toml. Known without a binding: view, analyze, edit (or show, check, fix)`,
  );
}

/** Returns the names that placeholders can use, for messages. */
function availableNames({ data }: PlanRun): readonly string[] {
  const members = isObject(data.input) ? Object.keys(data.input) : [];
  return [...members, ...Object.keys(data).filter((name) => name !== 'input' && name !== 'result')];
}

function promptKind(
  text: CompiledText,
  target: { system: string | undefined; schema: JsonSchema | undefined },
): CallKind {
  const buildInput: BuildInput = (run) => ({ prompt: text.render(placeholderLookup(run), availableNames(run)) });
  return callOf(target, buildInput, text.placeholders.includes('context'), (run) => run.countModelTurn());
}

/** The members of a step with a plugin. */
export interface PluginParameters {
  readonly plugin: string;
  readonly [parameter: string]: unknown;
}

/** The members of a step that are no parameters of its plugin. */
const STEP_MEMBERS: ReadonlySet<string> = new Set([
  'plugin',
  'name',
  'condition',
  'capture',
  'on_error',
  'retry',
  'timeout_ms',
  'transitions',
  'on_entry',
  'on_exit',
  'terminal',
]);

/** Returns the parameters of a plugin. */
export function pluginParameters(step: PluginParameters): { readonly [name: string]: Json } {
  return Object.fromEntries(Object.entries(step).filter(([name]) => !STEP_MEMBERS.has(name))) as {
    [name: string]: Json;
  };
}

function pluginKind(step: PluginParameters, where: string, _spec: PlanSpec): CallKind {
  const { plugin } = step;
  const parameters = pluginParameters(step);
  if (plugin === 'for-each' || plugin === 'fanout') return { each: eachOf(parameters, plugin === 'fanout', where) };
  if (plugin === 'transform') return transformKind(parameters, where);
  if (plugin === 'capture') return captureKind(parameters, where);
  if (plugin === 'condition') {
    if (typeof parameters.test === 'string') return { test: parameters.test };
    throw invalidStep(where, 'needs "test", a condition');
  }
  if (plugin === 'llm-decide')
    throw invalidStep(`${where}/plugin`, 'chooses a state, so it is for states, not for steps');
  const input = parameterInput(parameters, where);
  return callOf({ loopId: plugin, version: undefined }, input.build, input.usesContext);
}

function eachOf(
  parameters: { readonly [name: string]: Json },
  isConcurrent: boolean,
  where: string,
): Extract<CallKind, { each: unknown }>['each'] {
  const { source, items, limit, ...body } = parameters as {
    readonly source?: string;
    readonly items?: string;
    readonly limit?: number;
  };
  if ((source === undefined) === (items === undefined))
    throw invalidStep(where, 'needs either "source", the id of a loop that returns a list, or "items", a path');
  const kinds = ['action', 'loop', 'prompt', 'workflow'].filter((kind) => Object.hasOwn(body, kind));
  if (kinds.length !== 1)
    throw invalidStep(where, 'needs exactly one of action, loop, prompt and workflow, for each item');
  return { source, items, body: body as unknown as PlanCallStep, isConcurrent, limit };
}

/** A string parameter that starts with $ is a path; any other is a text with placeholders. */
function parameterInput(
  parameters: { readonly [name: string]: Json },
  where: string,
): { readonly build: BuildInput; readonly usesContext: boolean } {
  let usesContext = false;
  const builders = Object.entries(parameters).map(([name, value]): readonly [string, BuildInput] => {
    if (typeof value !== 'string') return [name, () => value];
    if (value.startsWith('$')) return [name, mappedInput(value, `${where}/${name}`)];
    const text = compileText(value, `${where}/${name}`);
    usesContext ||= text.placeholders.includes('context');
    return [name, (run) => text.render(placeholderLookup(run), availableNames(run))];
  });
  return { build: (run) => Object.fromEntries(builders.map(([name, build]) => [name, build(run)])), usesContext };
}

/** The value of a result, computed by a body in code. Its input is the value itself. */
const identityLoop = (id: string): Loop => ({
  name: id,
  version: '1.0.0',
  bodyKind: 'code',
  awaitsSteps: true,
  hasFastValidation: true,
  body: (input) => (input as { readonly value: Json }).value,
});
const CAPTURE_LOOP = identityLoop('rondo.capture');
const TRANSFORM_LOOP = identityLoop('rondo.transform');

/** `capture`: the value of a path, for later steps. */
function captureKind(parameters: { readonly [name: string]: Json }, where: string): CallKind {
  const { value = '$.result.output' } = parameters;
  const input = parameterInput({ value }, where);
  return callOf({ loop: CAPTURE_LOOP }, input.build, input.usesContext);
}

/** `transform`: a member of a value (`path`), or a text (`format`). */
function transformKind(parameters: { readonly [name: string]: Json }, where: string): CallKind {
  const { value = '$.result.output', path, format } = parameters;
  if ((path === undefined) === (format === undefined))
    throw invalidStep(where, 'needs either "path", a path in its value, or "format", a text with placeholders');
  if (typeof format === 'string') {
    const input = parameterInput({ value: format }, where);
    return callOf({ loop: TRANSFORM_LOOP }, input.build, input.usesContext);
  }
  const { build } = parameterInput({ value }, where);
  const inner = compileJsonPath(String(path), `${where}/path`);
  return callOf({ loop: TRANSFORM_LOOP }, (run) => {
    const { value: outer } = build(run) as { readonly value: Json };
    const found = inner.findOne(outer);
    if (found !== undefined) return { value: found };
    throw new LoopError('MAPPING_FAILED', `${where}/path: ${String(path)} matches nothing.`, {
      path: String(path),
      where,
    });
  });
}

function invalidStep(where: string, reason: string): LoopError {
  return new LoopError('DEFINITION_INVALID', `${where}: ${reason}.`, { path: where, reason });
}
