/**
 * An agent as a program: repeat { begin a round, ask the model, act on its reply } until it is settled. To ask is a call
 * of a loop of its own, `AGENT.model`, so that the events of a model belong to a loop of kind prompt.
 */

import { LoopError } from '../../base/errors.js';
import { digestOfText } from '../../journal/record.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import { ROUND_BEGUN } from '../../views/history.js';
import { contextReferencesOf, loadContext } from '../context/load-context.js';
import { appendPointer } from '../definition/shape.js';
import { failedDefinitionError } from '../failed-definition.js';
import type { ModelReply } from '../model.js';
import { type Program, runProgram } from '../plan/driver.js';
import { repeatUntil } from '../plan/repeat-until.js';
import { type AgentOptions, AgentRun, type BegunRound } from './agent-run.js';
import { type LinkedTool, ToolTable } from './tools.js';

/** The options of `agentBody`. */
interface AgentBodyOptions extends Omit<AgentOptions, 'systemDigest'> {
  /** True if a loop with this id, or an inline tool of this name, is part of the linked loop. */
  includesLoop(name: string): boolean;
}

const AGENT_PROGRAM: Program<AgentRun> = repeatUntil<AgentRun>(
  [
    {
      kind: 'record',
      type: ROUND_BEGUN,
      make: (run) => run.newRound(),
      accept: (run, _scope, fact) => run.begin(fact as unknown as BegunRound, 1),
    },
    {
      kind: 'call',
      loopOf: (run) => run.modelLoop as Loop,
      inputOf: (run) => run.buildRequest(),
      complete: (run, _scope, reply) => {
        run.receiveReply(reply as ModelReply);
        return 2;
      },
      fail: (_run, _scope, thrown) => {
        throw thrown;
      },
    },
    { kind: 'step', run: (run) => run.act(3) },
  ],
  (run) => run.output !== undefined,
);

/**
 * Returns the body of an agent. Before the first round it throws LOOP_NOT_FOUND if a tool is not linked, and
 * DEFINITION_INVALID if its definition could not be loaded or if an approval policy names a loop that is not linked.
 */
export function agentBody(
  options: AgentBodyOptions,
  tools: readonly LinkedTool[],
): (input: Json, scope: Scope) => Promise<Json> {
  const { id, spec } = options;
  const table = new ToolTable(tools);
  const agent: AgentOptions = { ...options, systemDigest: systemDigestOf(spec.instructions) };
  return (input, scope) => {
    const missing = tools.find(({ loop }) => loop === undefined);
    if (missing !== undefined) throw missingToolError(id, missing);
    const unknown = Object.keys(spec.approvals ?? {}).find((name) => name !== '*' && !options.includesLoop(name));
    if (unknown !== undefined) throw unknownApprovalError(id, unknown);
    const references = contextReferencesOf(scope, spec.contextSkills);
    if (references === undefined) return runAgent(new AgentRun(agent, table, input, scope), scope);
    return loadContext(scope, references, options.contextOrigin).then((context) =>
      runAgent(new AgentRun(agent, table, input, scope, context), scope),
    );
  };
}

async function runAgent(run: AgentRun, scope: Scope): Promise<Json> {
  try {
    await runProgram(AGENT_PROGRAM, run, scope);
    return run.output?.value ?? null;
  } finally {
    // Not reached by a body that is suspended because its turn pauses.
    run.end();
  }
}

function missingToolError(agent: string, { loopId, failure }: LinkedTool): LoopError {
  const subject = `The agent "${agent}" has a tool "${loopId}", which`;
  if (failure !== undefined) return failedDefinitionError(failure, subject);
  return new LoopError('LOOP_NOT_FOUND', `${subject} is not registered here.`, { loopId });
}

/**
 * Returns the error for an approval policy that names an unknown tool. The name is likely misspelt, which would leave
 * the intended tool without a policy.
 */
function unknownApprovalError(agent: string, name: string): LoopError {
  const message = `The approvals of the agent "${agent}" name "${name}", which no loop below it has as a tool.`;
  return new LoopError('DEFINITION_INVALID', message, { path: appendPointer('/composite/agent/approvals', name) });
}

/** How many characters of the digest of the instructions are journaled. */
const SYSTEM_DIGEST_CHARS = 16;

function systemDigestOf(instructions: string | undefined): string | undefined {
  return instructions === undefined ? undefined : digestOfText(instructions).slice(0, SYSTEM_DIGEST_CHARS);
}
