/**
 * `tool()` and `loopsTool()` return one object that is both an AI SDK tool and a tool of this runtime, which adds
 * approvals and streamed output. They differ outside of this runtime only: `tool()` requires every approval there too,
 * and `loopsTool()` follows the policy table of the Looops protocol unless `approval` is set. The approval policy is
 * fixed when the object is created: `withApproval` returns a copy, and no copy's policy can be changed afterwards.
 * Imports nothing outside of the protocol.
 */
import type { ApprovalTarget } from './approval.js';
import type { Safety } from './entry.js';
import type { ApprovalPolicy } from './loop.js';
import { isAsyncIterable } from './thenable.js';
import { checkApproval } from './tool-approval.js';
import type {
  LoopsToolOptions,
  MaybePromise,
  ToolCallOptions,
  ToolContext,
  ToolExecuteResult,
  ToolModelOutput,
} from './tool-call.js';
import {
  mayBeSchema,
  SCHEMA_REQUIREMENT,
  type ToolSchema,
  type ToolSchemaInput,
  toStandardSchema,
} from './tool-schema.js';

export type { ApprovalPolicy } from './loop.js';
export { ApprovalRequiredError } from './tool-approval.js';
export type { LoopsToolOptions, ToolCallOptions, ToolContext, ToolMessage, ToolModelOutput } from './tool-call.js';
export type { ToolSchema } from './tool-schema.js';

/** The argument of `tool` and `loopsTool`. */
export interface LoopsToolDefinition<INPUT, OUTPUT> {
  /** The name for the model, and the loop id: 1 to 256 visible characters. */
  readonly name: string;
  /** Describes the tool to the model. */
  readonly description?: string;
  /**
   * True if the tool changes nothing. Each call reports it to front ends.
   * @default true if `safety` is `pure`, else false
   */
  readonly readOnly?: boolean;
  /** The schema of the input: any Standard Schema, or a schema from the AI SDK's `jsonSchema()`. */
  readonly inputSchema: ToolSchemaInput<INPUT>;
  /**
   * Whether calls need an approval. Outside of this runtime, a call that needs one throws `ApprovalRequiredError`. An
   * agent can switch off `ask` by the name of the tool.
   * @default 'ask' if the tool has `requestApproval`, else 'always_allow'; for `loopsTool` outside of this runtime,
   * 'always_allow'
   */
  readonly approval?: ApprovalPolicy;
  /**
   * Decides, under the policy `ask`, whether a call needs an approval. A string is the question for the approver, null
   * permits the call, and any other value asks a default question.
   * @default every call needs an approval under `ask`; for `loopsTool` without `approval`, outside of this runtime, none
   */
  requestApproval?(input: INPUT, ctx: ToolContext): MaybePromise<string | null | undefined>;
  /**
   * Resolves the file or directory that the call would act on. The runtime binds an approval to it, resolves it again
   * before each attempt, and refuses the call if it has changed.
   */
  approvalTarget?(input: INPUT): MaybePromise<ApprovalTarget | undefined>;
  /** Runs the tool. An async generator streams preliminary results; its last value is the result. */
  execute(input: INPUT, options: LoopsToolOptions): ToolExecuteResult<OUTPUT>;
  /**
   * What may happen to a call after a crash.
   * @default 'once'
   */
  readonly safety?: Safety;
  /** Converts a result to the form that the model gets. */
  toModelOutput?(call: { toolCallId: string; input: INPUT; output: OUTPUT }): MaybePromise<ToolModelOutput>;
}

/** A tool for one turn: the part of a tool that the AI SDK uses. */
export interface TurnTool<INPUT, OUTPUT> {
  readonly description?: string;
  readonly inputSchema: ToolSchema<INPUT>;
  /** Checks the approval policy, then runs the tool. Throws or rejects if the policy does not permit the call. */
  execute(input: INPUT, options: ToolCallOptions): ToolExecuteResult<OUTPUT>;
  toModelOutput?(call: { toolCallId: string; input: INPUT; output: OUTPUT }): MaybePromise<ToolModelOutput>;
}

/** A tool for the AI SDK and for this runtime. */
export interface LoopsTool<INPUT, OUTPUT> extends TurnTool<INPUT, OUTPUT> {
  readonly name: string;
  readonly readOnly: boolean;
  readonly policy: ApprovalPolicy;
  /**
   * True if `withApproval` set the policy, or the option `approval` is `always_allow` or `blocked`. Otherwise this
   * runtime applies `ask` to a tool that has `approval: 'ask'` or `requestApproval`, unless its agent allows it by name.
   */
  readonly hasExplicitPolicy: boolean;
  /** The mode that `withApproval` set. */
  readonly mode?: string;
  readonly safety?: Safety;
  /** The source text of its functions. It is no part of the identity of the tool. */
  readonly source: string;
  requestApproval?(input: INPUT, ctx: ToolContext): MaybePromise<string | null | undefined>;
  approvalTarget?(input: INPUT): MaybePromise<ApprovalTarget | undefined>;
  /**
   * Returns a copy with this policy. `modeName` is the mode that `requestApproval` gets, whatever the mode of the turn.
   * Throws a TypeError for an unknown policy.
   */
  withApproval(policy: ApprovalPolicy, modeName?: string): LoopsTool<INPUT, OUTPUT>;
  /** Returns the tool for one turn, with its streamed output connected to the subscribers of that turn. */
  makeTool(ctx: ToolContext): TurnTool<INPUT, OUTPUT>;
}

/** Tools of any types, by name. Members are methods, so a tool with narrower types is assignable. */
export type LoopsToolSet = Record<string, LoopsTool<unknown, unknown>>;

const POLICIES: readonly unknown[] = ['always_allow', 'ask', 'blocked'] satisfies ApprovalPolicy[];
const SAFETIES: readonly unknown[] = ['pure', 'idempotent', 'keyed', 'once'] satisfies Safety[];
/** The rule for loop ids of `loops/definition/loop-identity.ts`, repeated because the protocol imports nothing else. */
const TOOL_NAME_PATTERN =
  /^(?! )(?!(?:.*\/)?\.{0,2}(?:\/|$))(?!(?:.*\.)?\*$)(?!__proto__$)(?!.*@\d+\.\d+\.\d+(?:[-+].*)?$)(?: |[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]){1,256}(?<! )$/u;

type AnyToolDefinition = LoopsToolDefinition<unknown, unknown>;

const isFunction = (value: unknown): boolean => typeof value === 'function';

/** The members of a tool definition: the requirement for the error message, and the check. */
const DEFINITION_MEMBERS: {
  readonly [member in keyof AnyToolDefinition]-?: readonly [requirement: string, isValid: (value: unknown) => boolean];
} = {
  name: [
    'must be an id of 1 to 256 visible characters, such as "write_file"',
    (value) =>
      typeof value === 'string' &&
      value.length <= 512 &&
      TOOL_NAME_PATTERN.test(value) &&
      value.normalize('NFC') === value,
  ],
  inputSchema: [SCHEMA_REQUIREMENT, mayBeSchema],
  execute: ['must be a function', isFunction],
  description: ['must be a string', (value) => value === undefined || typeof value === 'string'],
  approval: [`must be one of ${POLICIES.join(', ')}`, (value) => value === undefined || POLICIES.includes(value)],
  readOnly: ['must be true or false', (value) => value === undefined || typeof value === 'boolean'],
  requestApproval: ['must be a function', (value) => value === undefined || isFunction(value)],
  approvalTarget: ['must be a function', (value) => value === undefined || isFunction(value)],
  safety: [`must be one of ${SAFETIES.join(', ')}`, (value) => value === undefined || SAFETIES.includes(value)],
  toModelOutput: ['must be a function', (value) => value === undefined || isFunction(value)],
};

/**
 * Creates a tool. `approval: 'ask'` or `requestApproval` is sufficient to require an approval: this runtime pauses the
 * turn, and `execute` throws `ApprovalRequiredError` anywhere else. Throws a TypeError if the definition is invalid.
 *
 * @example
 * import { tool } from 'rondo';
 * import { z } from 'zod';
 *
 * const refund = tool({
 *   name: 'refund',
 *   description: 'Refunds an order',
 *   inputSchema: z.object({ order: z.string(), amount: z.number() }),
 *   approval: 'ask',
 *   execute: ({ order }) => ({ refunded: order }),
 * });
 */
export function tool<INPUT, OUTPUT>(definition: LoopsToolDefinition<INPUT, OUTPUT>): LoopsTool<INPUT, OUTPUT> {
  return createTool(definition, 'tool', true);
}

/**
 * Creates a tool as the Looops protocol defines it. With `approval` it equals `tool`. Without, the AI SDK runs the tool
 * without approval until `withApproval` sets a policy, and under `ask` it also runs a tool without `requestApproval`;
 * this runtime asks in both cases. Throws a TypeError if the definition is invalid.
 *
 * @example
 * import { loopsTool } from 'rondo/tools';
 * import { z } from 'zod';
 *
 * const refund = loopsTool({
 *   name: 'refund',
 *   description: 'Refunds an order',
 *   inputSchema: z.object({ order: z.string(), amount: z.number() }),
 *   requestApproval: ({ amount }) => (amount < 10 ? null : `Refund ${amount}?`),
 *   execute: ({ order }) => ({ refunded: order }),
 * });
 */
export function loopsTool<INPUT, OUTPUT>(definition: LoopsToolDefinition<INPUT, OUTPUT>): LoopsTool<INPUT, OUTPUT> {
  return createTool(definition, 'loopsTool', definition.approval !== undefined);
}

function createTool<INPUT, OUTPUT>(
  definition: LoopsToolDefinition<INPUT, OUTPUT>,
  factory: string,
  asksEverywhere: boolean,
): LoopsTool<INPUT, OUTPUT> {
  const members = { ...definition };
  const subject = `${factory}(${typeof members.name === 'string' ? `"${members.name}"` : ''})`;
  const unknown = Object.keys(members).find((key) => !Object.hasOwn(DEFINITION_MEMBERS, key));
  if (unknown !== undefined) {
    throw new TypeError(`${subject} has no member "${unknown}"; it has ${Object.keys(DEFINITION_MEMBERS).join(', ')}.`);
  }
  for (const [member, [requirement, isValid]] of Object.entries(DEFINITION_MEMBERS)) {
    if (!isValid(members[member as keyof AnyToolDefinition]))
      throw new TypeError(`${subject}: ${member} ${requirement}.`);
  }
  const inputSchema = toStandardSchema(members.inputSchema, subject);
  return toolWithPolicy({ ...members, inputSchema, asksEverywhere }, undefined, undefined);
}

/** A tool definition whose schema has the Standard Schema interface. */
interface NormalizedDefinition<INPUT, OUTPUT> extends LoopsToolDefinition<INPUT, OUTPUT> {
  readonly inputSchema: ToolSchema<INPUT>;
  /** True if the tool requires its approvals outside of this runtime too. */
  readonly asksEverywhere: boolean;
}

/** Returns the policy of a tool for which `withApproval` has set none. */
function defaultPolicy<INPUT, OUTPUT>(definition: NormalizedDefinition<INPUT, OUTPUT>): ApprovalPolicy {
  const { approval, requestApproval, asksEverywhere } = definition;
  // guard: asking-tool-asks-everywhere
  if (!asksEverywhere) return 'always_allow';
  return approval ?? (requestApproval === undefined ? 'always_allow' : 'ask');
}

/** Creates a tool. `explicitPolicy` and `mode` are undefined if `withApproval` has not set them. */
function toolWithPolicy<INPUT, OUTPUT>(
  definition: NormalizedDefinition<INPUT, OUTPUT>,
  explicitPolicy: ApprovalPolicy | undefined,
  mode: string | undefined,
): LoopsTool<INPUT, OUTPUT> {
  const {
    name,
    safety,
    readOnly = safety === 'pure',
    approval,
    execute,
    requestApproval,
    toModelOutput,
    approvalTarget,
  } = definition;
  const policy = explicitPolicy ?? defaultPolicy(definition);
  const functions = [execute, requestApproval, toModelOutput, ...(approvalTarget ? [approvalTarget] : [])];
  const makeTool = (ctx: ToolContext): TurnTool<INPUT, OUTPUT> =>
    createTurnTool(definition, policy, { ...ctx, ...(mode !== undefined && { mode }) });
  return Object.freeze({
    ...makeTool({}),
    name,
    readOnly,
    policy,
    hasExplicitPolicy: explicitPolicy !== undefined || (approval !== undefined && approval !== 'ask'),
    ...(mode !== undefined && { mode }),
    ...(safety !== undefined && { safety }),
    source: functions.map(String).join('\n'),
    ...(requestApproval && { requestApproval: requestApproval.bind(definition) }),
    ...(approvalTarget && { approvalTarget: approvalTarget.bind(definition) }),
    withApproval(newPolicy: ApprovalPolicy, modeName?: string) {
      if (!POLICIES.includes(newPolicy)) {
        throw new TypeError(`"${name}": unknown policy "${String(newPolicy)}"; use one of ${POLICIES.join(', ')}.`);
      }
      if (modeName !== undefined && typeof modeName !== 'string') {
        throw new TypeError(`"${name}": the name of a mode must be a string.`);
      }
      return toolWithPolicy(definition, newPolicy, modeName);
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
  const isGenerator = Object.prototype.toString.call(definition.execute) === '[object AsyncGeneratorFunction]';
  return {
    ...(description !== undefined && { description }),
    inputSchema,
    execute(input, options) {
      const start = (): ToolExecuteResult<OUTPUT> => definition.execute(input, withOutputStream(options, ctx));
      const check = checkApproval(definition, policy, ctx, input, options.toolCallId);
      if (check === undefined) return start();
      const permitted = check.then(() => options.abortSignal?.throwIfAborted());
      return isGenerator ? streamAfter(permitted, start) : permitted.then(start).then(lastValueOf);
    },
    ...(toModelOutput && { toModelOutput: toModelOutput.bind(definition) }),
  };
}

/** Returns the options for `execute`, with streamed output connected to the subscriber of the turn or of the call. */
function withOutputStream(options: ToolCallOptions, { onToolOutputDelta }: ToolContext): LoopsToolOptions {
  // Options that have a subscriber are passed on uncopied: a copy would read `abortSignal`, which is created on first
  // read.
  if (onToolOutputDelta === undefined && options.onToolOutputDelta !== undefined) return options as LoopsToolOptions;
  const { toolCallId } = options;
  return {
    ...options,
    onToolOutputDelta: onToolOutputDelta
      ? (delta) => onToolOutputDelta(delta, toolCallId)
      : (delta) => options.onToolOutputDelta?.(delta),
  };
}

/** Yields the values of a tool once the call is permitted. */
function streamAfter<OUTPUT>(permitted: Promise<void>, start: () => ToolExecuteResult<OUTPUT>): AsyncIterable<OUTPUT> {
  // The rejection reaches the consumer below. Without a consumer, it must not become an unhandled rejection.
  permitted.catch(() => {});
  return (async function* () {
    await permitted;
    yield* start() as AsyncIterable<OUTPUT>;
  })();
}

/**
 * Returns a result or, of an async iterable, the last value. An async iterable from a function that is not a generator
 * is recognized too late to stream it.
 */
async function lastValueOf<OUTPUT>(result: AsyncIterable<OUTPUT> | OUTPUT): Promise<OUTPUT> {
  if (!isAsyncIterable(result)) return result;
  let last: OUTPUT | undefined;
  for await (const value of result) last = value;
  return last as OUTPUT;
}
