/** Defines the tools of the toolbox. Every tool validates its input, and asks for approval unless it only reads. */
import { markConfined } from '../../base/confined-tools.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import { type LoopsTool, type LoopsToolOptions, loopsTool } from '../../protocol/tool.js';
import { type InputSchema, validateInput } from './input-schema.js';

/** The output of a tool: a JSON object. */
export type ToolOutput = { readonly [name: string]: Json };

/** A tool of the toolbox with input `I`. */
export type ToolboxTool<I> = LoopsTool<I, ToolOutput>;

interface ReadToolOptions<I> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema<I>;
  execute(input: I, options: LoopsToolOptions): Promise<ToolOutput>;
}

/** Defines a tool that changes nothing. It runs without approval and is repeated after a crash. */
export function defineReadTool<I>(tool: ReadToolOptions<I>): ToolboxTool<I> {
  const { name, description, inputSchema } = tool;
  markConfined(inputSchema);
  return loopsTool<I, ToolOutput>({
    name,
    description,
    inputSchema,
    readOnly: true,
    safety: 'pure',
    execute: async (input, options) => tool.execute(validateInput(name, inputSchema, input), options),
  });
}

interface ActionToolOptions<I> extends ReadToolOptions<I> {
  readonly safety: 'once' | 'idempotent';
  /** Returns the question that a person answers. Throws if the call would fail, so that no question is asked. */
  approvalMessage(input: I): Promise<string> | string;
  /**
   * Returns the file or directory that the call acts on; undefined for a tool without one. `execute` acts on no other.
   */
  approvalTarget(input: I): Promise<ApprovalTarget> | undefined;
}

/** Defines a tool with side effects. By default, a person approves each call, except in the mode `unsupervised`. */
export function defineActionTool<I>(tool: ActionToolOptions<I>): ToolboxTool<I> {
  const { name, description, inputSchema, safety } = tool;
  markConfined(inputSchema);
  const actionTool = loopsTool<I, ToolOutput>({
    name,
    description,
    inputSchema,
    readOnly: false,
    safety,
    requestApproval: async (input, { mode }) =>
      mode === 'unsupervised' ? null : tool.approvalMessage(validateInput(name, inputSchema, input)),
    approvalTarget: async (input) => tool.approvalTarget(validateInput(name, inputSchema, input)),
    execute: async (input, options) => tool.execute(validateInput(name, inputSchema, input), options),
  });
  return actionTool.withApproval('ask');
}
