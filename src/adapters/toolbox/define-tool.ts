/** A tool of the toolbox: checks its input itself, whoever calls it, and asks unless it only reads. */
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import { type LoopsTool, type LoopsToolOptions, loopsTool } from '../../protocol/tool.js';
import { type InputSchema, validateInput } from './input-schema.js';

/** What a tool answers: a JSON object. */
export type ToolOutput = { readonly [name: string]: Json };

/** A tool of the toolbox, whatever it takes. */
export type ToolboxTool<I> = LoopsTool<I, ToolOutput>;

interface ReadToolOptions<I> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema<I>;
  execute(input: I, options: LoopsToolOptions): Promise<ToolOutput>;
}

/** A tool that changes nothing: it runs without a question, and again after a crash. */
export function defineReadTool<I>(parts: ReadToolOptions<I>): ToolboxTool<I> {
  const { name, description, inputSchema } = parts;
  return loopsTool<I, ToolOutput>({
    name,
    description,
    inputSchema,
    readOnly: true,
    safety: 'pure',
    execute: async (input, options) => parts.execute(validateInput(name, inputSchema, input), options),
  });
}

interface ActionToolOptions<I> extends ReadToolOptions<I> {
  readonly safety: 'once' | 'idempotent';
  /** What a person is asked; throws where there is nothing to ask, as it could not be done. */
  approvalMessage(input: I): Promise<string> | string;
  /** What a call acts on right now; undefined for a tool that touches no file. `execute` acts on nothing else. */
  approvalTarget(input: I): Promise<ApprovalTarget> | undefined;
}

/** A tool that does something: a person sees what, unless the mode says that nobody watches. */
export function defineActionTool<I>(parts: ActionToolOptions<I>): ToolboxTool<I> {
  const { name, description, inputSchema, safety } = parts;
  const acting = loopsTool<I, ToolOutput>({
    name,
    description,
    inputSchema,
    readOnly: false,
    safety,
    requestApproval: async (input, { mode }) =>
      mode === 'unsupervised' ? null : parts.approvalMessage(validateInput(name, inputSchema, input)),
    approvalTarget: async (input) => parts.approvalTarget(validateInput(name, inputSchema, input)),
    execute: async (input, options) => parts.execute(validateInput(name, inputSchema, input), options),
  });
  return acting.withApproval('ask');
}
