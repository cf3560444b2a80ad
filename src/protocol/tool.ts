/**
 * Tools: `loopsTool()` makes one object that the AI SDK takes as it is and that this runtime gates and watches. The AI
 * SDK's shapes are written out here in types of our own (src/protocol/tool.test.ts holds both to each other), so nothing
 * is loaded. A policy is baked in by copying: no copy can be talked into another policy afterwards.
 */
import type { ApprovalTarget } from './approval.js';
import type { Safety } from './entry.js';
import type { ApprovalPolicy } from './loop.js';
import type { ModelReasoning, ModelText, PromptToolCall, ProviderJson } from './model.js';

export type { ApprovalPolicy } from './loop.js';

/** What a tool is told about the turn that it runs in. */
export interface ToolContext {
  /** How the turn is watched, as in `unsupervised`. */
  readonly mode?: string;
  readonly onToolOutputDelta?: (delta: string, toolCallId: string) => void;
}

interface ImagePart {
  type: 'image';
  image: string | Uint8Array | ArrayBuffer | URL;
}

interface FilePart {
  type: 'file';
  data: string | Uint8Array | ArrayBuffer | URL;
  mediaType: string;
}

type ToolOutputPart =
  | ModelText
  | { type: 'media' | 'file-data' | 'image-data'; data: string; mediaType: string }
  | { type: 'file-url' | 'image-url'; url: string }
  | { type: 'file-id' | 'image-file-id'; fileId: string | Record<string, string> }
  | { type: 'custom' };

/** What a model is shown of what a tool gave back. */
export type ToolModelOutput =
  | { type: 'text' | 'error-text'; value: string }
  | { type: 'json' | 'error-json'; value: ProviderJson }
  | { type: 'execution-denied'; reason?: string }
  | { type: 'content'; value: ToolOutputPart[] };

interface ToolResultPart {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  output: ToolModelOutput;
}

interface ApprovalRequestPart {
  type: 'tool-approval-request';
  approvalId: string;
  toolCallId: string;
}

interface ApprovalResponsePart {
  type: 'tool-approval-response';
  approvalId: string;
  approved: boolean;
}

type AssistantPart = ModelText | FilePart | ModelReasoning | PromptToolCall | ToolResultPart | ApprovalRequestPart;

/** A message that led to the call, as the AI SDK has it. */
export type ToolMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string | (ModelText | ImagePart | FilePart)[] }
  | { role: 'assistant'; content: string | AssistantPart[] }
  | { role: 'tool'; content: (ToolResultPart | ApprovalResponsePart)[] };

/** What the AI SDK says of a call; a runtime that watches adds where the output goes. */
export interface ToolCallOptions {
  toolCallId: string;
  messages: ToolMessage[];
  abortSignal?: AbortSignal;
  experimental_context?: unknown;
  onToolOutputDelta?(delta: string): void;
}

/** What `execute` gets beside its input. */
export interface LoopsToolOptions extends ToolCallOptions {
  /** What a person approved. Act on nothing else; absent for a call that needed no approval. */
  readonly approvedTarget?: ApprovalTarget | undefined;
  /** Streams a piece of output to whoever watches; does nothing when nobody does. */
  onToolOutputDelta(delta: string): void;
}

type StandardValidationResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** A schema that speaks Standard Schema (zod, valibot, arktype, …). */
export interface ToolSchema<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    readonly validate: (value: unknown) => StandardValidationResult<T> | Promise<StandardValidationResult<T>>;
  };
}

type AiSdkValidationResult<T> = { success: true; value: T } | { success: false; error: Error };

/** What the AI SDK's `jsonSchema()` makes. */
interface AiSdkSchema<T> {
  _type: T;
  readonly validate?: (value: unknown) => AiSdkValidationResult<T> | PromiseLike<AiSdkValidationResult<T>>;
  readonly jsonSchema: object;
}

type ToolSchemaInput<T> = ToolSchema<T> | AiSdkSchema<T> | (() => AiSdkSchema<T>);

type MaybePromise<T> = T | PromiseLike<T>;

/** Several values, each instead of the one before; one value, now or later. */
type ToolExecuteResult<OUTPUT> = AsyncIterable<OUTPUT> | PromiseLike<OUTPUT> | OUTPUT;

/** What a tool is made of. */
export interface LoopsToolDefinition<INPUT, OUTPUT> {
  /** Safe as the id of a loop. */
  readonly name: string;
  readonly description?: string;
  /**
   * Whether it changes nothing; each call of it reports this to front ends.
   * @default true if `safety` is `pure`, else false
   */
  readonly readOnly?: boolean;
  readonly inputSchema: ToolSchemaInput<INPUT>;
  /** Under the policy `ask`: a text asks a person with it, null lets the call run, and anything else asks plainly. */
  requestApproval?(input: INPUT, ctx: ToolContext): MaybePromise<string | null | undefined>;
  /**
   * What the call would act on right now: the runtime asks for it when an approval is requested, binds the approval to
   * it, and asks again before each attempt. A call whose target has changed is refused.
   */
  approvalTarget?(input: INPUT): MaybePromise<ApprovalTarget | undefined>;
  execute(input: INPUT, options: LoopsToolOptions): ToolExecuteResult<OUTPUT>;
  /** How it may be treated after a crash. */
  readonly safety?: Safety;
  toModelOutput?(call: { toolCallId: string; input: INPUT; output: OUTPUT }): MaybePromise<ToolModelOutput>;
}

/** A tool for one turn: what the AI SDK calls a tool. */
export interface TurnTool<INPUT, OUTPUT> {
  readonly description?: string;
  readonly inputSchema: ToolSchema<INPUT>;
  /** Passes the gate first: what the gate throws, or rejects with, keeps the tool from running. */
  execute(input: INPUT, options: ToolCallOptions): ToolExecuteResult<OUTPUT>;
  toModelOutput?(call: { toolCallId: string; input: INPUT; output: OUTPUT }): MaybePromise<ToolModelOutput>;
}

/** A tool for the AI SDK and for this runtime. */
export interface LoopsTool<INPUT, OUTPUT> extends TurnTool<INPUT, OUTPUT> {
  readonly name: string;
  readonly readOnly: boolean;
  readonly policy: ApprovalPolicy;
  /** True if `withApproval` set the policy. Without one, this runtime asks about a tool that has `requestApproval`. */
  readonly hasExplicitPolicy: boolean;
  readonly mode?: string;
  readonly safety?: Safety;
  /** The text of its functions: what tells two states of the same tool apart. */
  readonly source: string;
  requestApproval?(input: INPUT, ctx: ToolContext): MaybePromise<string | null | undefined>;
  approvalTarget?(input: INPUT): MaybePromise<ApprovalTarget | undefined>;
  /** A copy with the policy baked in; the name of a mode is what `requestApproval` is told, whatever the turn says. */
  withApproval(policy: ApprovalPolicy, modeName?: string): LoopsTool<INPUT, OUTPUT>;
  /** The tool for one turn, with its output bound to who watches that turn. */
  makeTool(ctx: ToolContext): TurnTool<INPUT, OUTPUT>;
}

/** Tools of any types. Members are methods, so a tool of narrower types is one of these. */
export type LoopsToolSet = Record<string, LoopsTool<unknown, unknown>>;

/** A call that a person must approve before it runs. */
export class ApprovalRequiredError extends Error {
  override readonly name = 'ApprovalRequiredError';
  readonly toolName: string;
  /** What the person is asked. */
  readonly description: string;
  readonly input: unknown;
  readonly toolCallId?: string;

  constructor(call: { toolName: string; description: string; input: unknown; toolCallId?: string | undefined }) {
    super(`The tool "${call.toolName}" did not run: it needs an approval (${call.description}).`);
    this.toolName = call.toolName;
    this.description = call.description;
    this.input = call.input;
    if (call.toolCallId !== undefined) this.toolCallId = call.toolCallId;
  }
}

const POLICIES: readonly unknown[] = ['always_allow', 'ask', 'blocked'] satisfies ApprovalPolicy[];
const SAFETIES: readonly unknown[] = ['pure', 'idempotent', 'keyed', 'once'] satisfies Safety[];
/** What may be the id of a loop, as `loops/definition/identity.ts` says it; nothing is imported here. */
const TOOL_NAME_PATTERN =
  /^(?! )(?!(?:.*\/)?\.{0,2}(?:\/|$))(?!(?:.*\.)?\*$)(?!__proto__$)(?!.*@\d+\.\d+\.\d+(?:[-+].*)?$)(?: |[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]){1,256}(?<! )$/u;

type AnyToolDefinition = LoopsToolDefinition<unknown, unknown>;

const isFunction = (value: unknown): boolean => typeof value === 'function';

const DEFINITION_MEMBERS: {
  readonly [member in keyof AnyToolDefinition]-?: readonly [must: string, fits: (value: unknown) => boolean];
} = {
  name: [
    'must be an id of 1 to 256 visible characters, such as "write_file"',
    (value) =>
      typeof value === 'string' &&
      value.length <= 512 &&
      TOOL_NAME_PATTERN.test(value) &&
      value.normalize('NFC') === value,
  ],
  inputSchema: [
    'must speak Standard Schema (zod, valibot, …) or come from jsonSchema() of the AI SDK',
    (value) => isStandardSchema(value) || isAiSdkSchema(value) || isFunction(value),
  ],
  execute: ['must be a function', isFunction],
  description: ['must be a text', (value) => value === undefined || typeof value === 'string'],
  readOnly: ['must be true or false', (value) => value === undefined || typeof value === 'boolean'],
  requestApproval: ['must be a function', (value) => value === undefined || isFunction(value)],
  approvalTarget: ['must be a function', (value) => value === undefined || isFunction(value)],
  safety: [`must be one of ${SAFETIES.join(', ')}`, (value) => value === undefined || SAFETIES.includes(value)],
  toModelOutput: ['must be a function', (value) => value === undefined || isFunction(value)],
};

/**
 * Makes a tool; a TypeError says what is wrong with it. On its own it runs without a question until `withApproval` says
 * otherwise. In this runtime a tool with `requestApproval` is asked about until `withApproval` says otherwise.
 */
export function loopsTool<INPUT, OUTPUT>(definition: LoopsToolDefinition<INPUT, OUTPUT>): LoopsTool<INPUT, OUTPUT> {
  const given = { ...definition };
  const where = `loopsTool(${typeof given.name === 'string' ? `"${given.name}"` : ''})`;
  const unknown = Object.keys(given).find((key) => !Object.hasOwn(DEFINITION_MEMBERS, key));
  if (unknown !== undefined) {
    throw new TypeError(`${where} has no member "${unknown}"; it has ${Object.keys(DEFINITION_MEMBERS).join(', ')}.`);
  }
  for (const [member, [must, fits]] of Object.entries(DEFINITION_MEMBERS)) {
    if (!fits(given[member as keyof AnyToolDefinition])) throw new TypeError(`${where}: ${member} ${must}.`);
  }
  const inputSchema = toStandardSchema(given.inputSchema, where);
  return toolWithPolicy({ ...given, inputSchema }, undefined, undefined);
}

interface NormalizedDefinition<INPUT, OUTPUT> extends LoopsToolDefinition<INPUT, OUTPUT> {
  readonly inputSchema: ToolSchema<INPUT>;
}

function toolWithPolicy<INPUT, OUTPUT>(
  definition: NormalizedDefinition<INPUT, OUTPUT>,
  explicit: ApprovalPolicy | undefined,
  mode: string | undefined,
): LoopsTool<INPUT, OUTPUT> {
  const {
    name,
    safety,
    readOnly = safety === 'pure',
    execute,
    requestApproval,
    toModelOutput,
    approvalTarget,
  } = definition;
  const policy = explicit ?? 'always_allow';
  const functions = [execute, requestApproval, toModelOutput, ...(approvalTarget ? [approvalTarget] : [])];
  const makeTool = (ctx: ToolContext): TurnTool<INPUT, OUTPUT> =>
    createTurnTool(definition, policy, { ...ctx, ...(mode !== undefined && { mode }) });
  return Object.freeze({
    ...makeTool({}),
    name,
    readOnly,
    policy,
    hasExplicitPolicy: explicit !== undefined,
    ...(mode !== undefined && { mode }),
    ...(safety !== undefined && { safety }),
    source: functions.map(String).join('\n'),
    ...(requestApproval && { requestApproval: requestApproval.bind(definition) }),
    ...(approvalTarget && { approvalTarget: approvalTarget.bind(definition) }),
    withApproval(next: ApprovalPolicy, modeName?: string) {
      if (!POLICIES.includes(next)) {
        throw new TypeError(`"${name}": there is no policy "${String(next)}"; take one of ${POLICIES.join(', ')}.`);
      }
      if (modeName !== undefined && typeof modeName !== 'string') {
        throw new TypeError(`"${name}": the name of a mode must be a text.`);
      }
      return toolWithPolicy(definition, next, modeName);
    },
    makeTool,
  });
}

function createTurnTool<INPUT, OUTPUT>(
  definition: NormalizedDefinition<INPUT, OUTPUT>,
  policy: ApprovalPolicy,
  ctx: ToolContext,
): TurnTool<INPUT, OUTPUT> {
  const { description, inputSchema, toModelOutput } = definition;
  const streams = Object.prototype.toString.call(definition.execute) === '[object AsyncGeneratorFunction]';
  return {
    ...(description !== undefined && { description }),
    inputSchema,
    execute(input, options) {
      const start = (): ToolExecuteResult<OUTPUT> => definition.execute(input, withOutputStream(options, ctx));
      const passed = checkApproval(definition, policy, ctx, input, options.toolCallId);
      if (passed === undefined) return start();
      const begun = passed.then(() => options.abortSignal?.throwIfAborted());
      return streams ? streamAfter(begun, start) : begun.then(start).then(lastValueOf);
    },
    ...(toModelOutput && { toModelOutput: toModelOutput.bind(definition) }),
  };
}

function withOutputStream(options: ToolCallOptions, { onToolOutputDelta }: ToolContext): LoopsToolOptions {
  // Who watches already is passed on as it is: looking at an abort signal is what makes one.
  if (onToolOutputDelta === undefined && options.onToolOutputDelta !== undefined) return options as LoopsToolOptions;
  const { toolCallId } = options;
  return {
    ...options,
    onToolOutputDelta: onToolOutputDelta
      ? (delta) => onToolOutputDelta(delta, toolCallId)
      : (delta) => options.onToolOutputDelta?.(delta),
  };
}

/** Throws if the call may not start; a promise, if that takes a while to tell. */
function checkApproval<INPUT>(
  definition: Pick<LoopsToolDefinition<INPUT, unknown>, 'name' | 'requestApproval'>,
  policy: ApprovalPolicy,
  ctx: ToolContext,
  input: INPUT,
  toolCallId: string,
): Promise<void> | undefined {
  if (policy === 'always_allow') return undefined;
  const { name } = definition;
  if (policy === 'blocked') {
    const message = `The tool "${name}" did not run: it is blocked here.`;
    throw Object.assign(new Error(message), { name: 'ToolBlockedError' });
  }
  if (definition.requestApproval === undefined) return undefined;
  const judge = (told: unknown): undefined => {
    if (told === null) return undefined;
    const description = typeof told === 'string' && told.trim() !== '' ? told : `Run ${name}?`;
    throw new ApprovalRequiredError({ toolName: name, description, input, toolCallId });
  };
  const told = definition.requestApproval(input, ctx);
  return isThenable(told) ? Promise.resolve(told).then(judge) : judge(told);
}

/** The values of a tool that yields them, none before the gate has opened. */
function streamAfter<OUTPUT>(begun: Promise<void>, start: () => ToolExecuteResult<OUTPUT>): AsyncIterable<OUTPUT> {
  // Whoever iterates hears of it; a call that nobody iterates must not end the process.
  begun.catch(() => {});
  return (async function* () {
    await begun;
    yield* start() as AsyncIterable<OUTPUT>;
  })();
}

/** The last value is the result: a plain function that returns several is found out too late to stream them. */
async function lastValueOf<OUTPUT>(produced: AsyncIterable<OUTPUT> | OUTPUT): Promise<OUTPUT> {
  if (!isAsyncIterable(produced)) return produced;
  let last: OUTPUT | undefined;
  for await (const value of produced) last = value;
  return last as OUTPUT;
}

/** What `jsonSchema()` made, taught to speak Standard Schema; to the AI SDK it is still what it was. */
function toStandardSchema<T>(given: ToolSchemaInput<T>, where: string): ToolSchema<T> {
  if (isStandardSchema(given)) return given;
  const schema = typeof given === 'function' ? given() : given;
  if (!isAiSdkSchema(schema)) throw new TypeError(`${where}: inputSchema ${DEFINITION_MEMBERS.inputSchema[0]}.`);
  const settled = (judged: AiSdkValidationResult<T>): StandardValidationResult<T> =>
    judged.success ? { value: judged.value } : { issues: [{ message: judged.error.message }] };
  const shown = (): object => {
    if (isThenable(schema.jsonSchema)) throw new TypeError(`${where}: inputSchema is not known yet.`);
    return schema.jsonSchema;
  };
  const validate = (value: unknown): StandardValidationResult<T> | Promise<StandardValidationResult<T>> => {
    if (schema.validate === undefined) return { value: value as T };
    const judged = schema.validate(value);
    return isThenable(judged) ? Promise.resolve(judged).then(settled) : settled(judged);
  };
  const spoken = { version: 1, vendor: 'rondo', validate, jsonSchema: { input: shown, output: shown } } as const;
  return Object.create(schema, { '~standard': { value: spoken } });
}

const isObjectOrFunction = (value: unknown): value is object | ((...args: never) => unknown) =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

function isStandardSchema<T>(schema: ToolSchemaInput<T> | unknown): schema is ToolSchema<T> {
  return isObjectOrFunction(schema) && '~standard' in schema;
}

function isAiSdkSchema(schema: unknown): boolean {
  return isObjectOrFunction(schema) && 'jsonSchema' in schema && '_type' in schema;
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return isObjectOrFunction(value) && typeof (value as Partial<PromiseLike<T>>).then === 'function';
}

function isAsyncIterable<T>(value: AsyncIterable<T> | T): value is AsyncIterable<T> {
  return isObjectOrFunction(value) && Symbol.asyncIterator in value;
}
