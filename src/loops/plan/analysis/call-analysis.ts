/** Checks a step or state that is a call, and tells the schema of its output and the loops that it calls. */
import { compileSchema } from '../../../json/schema.js';
import type { JsonSchema, LoopDef } from '../../../protocol/loop.js';
import type { PlanCallStep, PlanMapping, PlanRetry, PlanSpec } from '../../../protocol/plan.js';
import { appendPointer, DefinitionIssues } from '../../definition/shape.js';
import { compileAction } from '../placeholders.js';
import { actionKind, callKindOf, type PluginParameters, pluginParameters } from '../plan-inputs.js';
import { boundLoop, shippedLoop } from '../verbs.js';
import { inputIssues, objectSchema } from './accepted-input.js';
import { ANY, ANY_RESULT, elements, type ReadableValues, resultSchema } from './readable-values.js';
import { ReferenceCheck } from './references.js';

/** A reference of a plan to a loop, and where it is. */
export interface LoopReference {
  readonly loopId: string;
  readonly version: string | undefined;
  /** A JSON pointer in the definition. */
  readonly path: string;
}

/** Returns the definition of a loop; undefined if it is not known. */
export type FindDefinition = (loopId: string, version: string | undefined) => LoopDef | undefined;

/** The members of a call that this analysis reads. */
interface CallMembers {
  readonly action?: string;
  readonly loop?: string;
  readonly workflow?: string;
  readonly version?: string;
  readonly input?: PlanMapping;
  readonly prompt?: string;
  readonly schema?: JsonSchema;
  readonly retry?: PlanRetry;
  readonly on_error?: unknown;
  readonly capture?: string;
  readonly plugin?: string;
}

const TEXT: JsonSchema = { type: 'string' };
/** What the loop of a verb gets. */
const ACTION_INPUT = objectSchema({ verb: TEXT, args: { type: 'array', items: TEXT as never }, raw: TEXT });

/** Checks the calls of one plan. */
export class CallAnalysis {
  /** The loops that the checked calls refer to. */
  readonly references: LoopReference[] = [];
  private readonly spec: PlanSpec;
  private readonly check: ReferenceCheck;
  private readonly find: FindDefinition;

  constructor(spec: PlanSpec, check: ReferenceCheck, find: FindDefinition) {
    this.spec = spec;
    this.check = check;
    this.find = find;
  }

  /** Checks a call, and returns what can be read after it. */
  call(step: PlanCallStep, path: string, values: ReadableValues): ReadableValues {
    const { retry, on_error: onError, capture } = step as CallMembers;
    // A state whose next one a model chooses is no call.
    if (!('action' in step) && (step as CallMembers).plugin !== 'llm-decide')
      this.check.attempt(() => callKindOf(step, path, this.spec));
    const output =
      'plugin' in step ? this.plugin(step as PluginParameters, path, values) : this.plain(step, path, values);
    const isReplaced = this.fallback(retry, `${path}/retry/fallback`, values) || isValue(onError);
    return values.withResult(resultSchema(isReplaced ? ANY : output), capture);
  }

  /** Returns the schema of the result of a call without checking it. */
  resultOf(step: PlanCallStep, values: ReadableValues): JsonSchema {
    const unchecked = new ReferenceCheck(new DefinitionIssues(), new Set());
    const after = new CallAnalysis(this.spec, unchecked, this.find).call(step, '', values);
    return after.get('result') ?? ANY_RESULT;
  }

  /** Checks an action, and returns the schema of its output. */
  action(text: string, path: string, values: ReadableValues): JsonSchema {
    this.check.text(text, path, values);
    if (this.check.attempt(() => actionKind(text, path, this.spec)) === undefined) return ANY;
    const [verb] = compileAction(text).words;
    const loopId = verb === undefined ? undefined : (boundLoop(this.spec.verbs, verb.text) ?? shippedLoop(verb.text));
    return loopId === undefined ? ANY : this.loop(loopId, undefined, path, ACTION_INPUT);
  }

  /** Checks a call that is no plugin, and returns the schema of its output. */
  private plain(step: CallMembers, path: string, values: ReadableValues): JsonSchema {
    const { action, loop, workflow, version, input, prompt, schema } = step;
    if (action !== undefined) return this.action(action, `${path}/action`, values);
    if (prompt !== undefined) {
      this.check.text(prompt, `${path}/prompt`, values);
      if (schema !== undefined) this.check.attempt(() => compileSchema(schema, `${path}/schema`));
      return schema ?? TEXT;
    }
    if (input !== undefined) this.check.mapping(input, `${path}/input`, values);
    const [id, key] = loop === undefined ? [workflow, 'workflow'] : [loop, 'loop'];
    if (id === undefined) return ANY;
    const at = input === undefined ? `${path}/${key}` : `${path}/input`;
    return this.loop(id, version, `${path}/${key}`, this.check.mappedSchema(input ?? '$.input', values), at);
  }

  /** Checks what a loop gets, and returns the schema of its output. Issues are about `at` and the members of the input. */
  private loop(loopId: string, version: string | undefined, path: string, passed: JsonSchema, at = path): JsonSchema {
    this.references.push({ loopId, version, path });
    const callee = this.find(loopId, version);
    if (callee === undefined) return ANY;
    for (const issue of inputIssues(callee.inputSchema, passed)) {
      const isMember = issue.path !== '' && at !== path;
      this.check.add(isMember ? appendPointer(at, issue.path) : at, `the loop "${loopId}" ${issue.reason}`);
    }
    return callee.outputSchema;
  }

  /** Checks a fallback. Returns true if its value may replace the output. */
  private fallback(retry: PlanRetry | undefined, path: string, values: ReadableValues): boolean {
    const fallback = retry?.fallback;
    if (typeof fallback !== 'object') return false;
    if ('loop' in fallback) {
      const { input } = fallback;
      if (input !== undefined) this.check.mapping(input, `${path}/input`, values);
      const at = input === undefined ? `${path}/loop` : `${path}/input`;
      this.loop(fallback.loop, undefined, `${path}/loop`, this.check.mappedSchema(input ?? '$.input', values), at);
    }
    return true;
  }

  private plugin(step: PluginParameters, path: string, values: ReadableValues): JsonSchema {
    const parameters = pluginParameters(step);
    switch (step.plugin) {
      case 'for-each':
      case 'fanout':
        return this.eachItem(parameters, path, values);
      case 'condition':
        this.check.condition(String(parameters.test), `${path}/test`, values);
        return { type: 'object', properties: { ok: { type: 'boolean' } } };
      case 'llm-decide':
        if (typeof parameters.prompt === 'string') this.check.text(parameters.prompt, `${path}/prompt`, values);
        return TEXT;
      case 'transform': {
        const { path: _path, ...texts } = parameters;
        this.parameters(texts, path, values);
        return parameters.format === undefined ? ANY : TEXT;
      }
      case 'capture': {
        const { value = '$.result.output' } = parameters;
        this.parameters({ value }, path, values);
        return typeof value === 'string' && value.startsWith('$') ? this.check.schemaOf(value, values) : ANY;
      }
      default:
        this.parameters(parameters, path, values);
        return this.loop(step.plugin, undefined, `${path}/plugin`, this.parameterSchema(parameters, values));
    }
  }

  /** A text that starts with $ is a path; any other has placeholders. */
  private parameters(parameters: { readonly [name: string]: unknown }, path: string, values: ReadableValues): void {
    for (const [name, value] of Object.entries(parameters)) {
      if (typeof value !== 'string') continue;
      const at = appendPointer(path, name);
      if (value.startsWith('$')) this.check.mapping(value, at, values);
      else this.check.text(value, at, values);
    }
  }

  private parameterSchema(parameters: { readonly [name: string]: unknown }, values: ReadableValues): JsonSchema {
    const schemas = Object.entries(parameters).map(([name, value]): readonly [string, JsonSchema] => {
      if (typeof value !== 'string') return [name, ANY];
      return [name, value.startsWith('$') ? this.check.schemaOf(value, values) : TEXT];
    });
    return objectSchema(Object.fromEntries(schemas));
  }

  private eachItem(parameters: { readonly [name: string]: unknown }, path: string, values: ReadableValues): JsonSchema {
    const { source, items, ...body } = parameters;
    let list: JsonSchema = ANY;
    if (typeof source === 'string')
      list = this.loop(source, undefined, `${path}/source`, this.check.schemaOf('$.input', values));
    else if (typeof items === 'string') {
      this.check.mapping(items, `${path}/items`, values);
      list = this.check.schemaOf(items, values);
    }
    const inner = values.with({ item: elements(list), index: { type: 'integer' } });
    const output = this.plain(body as CallMembers, path, inner);
    return { type: 'array', items: output as never };
  }
}

function isValue(onError: unknown): boolean {
  return typeof onError === 'object' && onError !== null && 'value' in onError;
}
