/** The approval check of a tool that runs without Rondo's host, for example in the AI SDK. */
import type { ApprovalPolicy } from './loop.js';
import { isThenable } from './thenable.js';
import type { MaybePromise, ToolContext } from './tool-call.js';

/**
 * Thrown by a tool under the policy `ask` if the call needs an approval. The tool did not run. Under Rondo's host, the
 * turn pauses instead.
 *
 * @example
 * import { ApprovalRequiredError } from 'rondo/tools';
 *
 * try {
 *   await writeFile.withApproval('ask').execute(input, options);
 * } catch (error) {
 *   if (!(error instanceof ApprovalRequiredError)) throw error;
 *   console.log(error.toolName, error.description);
 * }
 */
export class ApprovalRequiredError extends Error {
  override readonly name = 'ApprovalRequiredError';
  readonly toolName: string;
  /** The question for the approver. */
  readonly description: string;
  /** The input of the call. */
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

interface ApprovableTool<INPUT> {
  readonly name: string;
  /** True if, under `ask`, a call needs an approval although the tool has no `requestApproval`. */
  readonly asksEverywhere: boolean;
  requestApproval?(input: INPUT, ctx: ToolContext): MaybePromise<string | null | undefined>;
}

/**
 * Throws if the call must not start: an ApprovalRequiredError, or an error if the policy is `blocked`. Returns
 * undefined if it may start. If `requestApproval` returns a promise, returns one that resolves or rejects instead.
 */
export function checkApproval<INPUT>(
  definition: ApprovableTool<INPUT>,
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
  const assertNotRequired = (question: unknown): undefined => {
    if (question === null) return undefined;
    const description = typeof question === 'string' && question.trim() !== '' ? question : `Run ${name}?`;
    throw new ApprovalRequiredError({ toolName: name, description, input, toolCallId });
  };
  // guard: ask-without-question-asks
  if (definition.requestApproval === undefined)
    return definition.asksEverywhere ? assertNotRequired(undefined) : undefined;
  const question = definition.requestApproval(input, ctx);
  return isThenable(question) ? Promise.resolve(question).then(assertNotRequired) : assertNotRequired(question);
}
