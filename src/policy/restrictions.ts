/**
 * Restrictions of agents on everything that runs below them, found by the path of a call. All enclosing agents restrict
 * a tool, by its own name and by the name of every call on the path to it. The table is not journaled: a replayed body
 * adds its restrictions again before anything below it starts.
 */
import type { ApprovalPolicy } from '../protocol/loop.js';

/** What one agent demands of everything that runs below it. */
interface AgentRestrictions {
  readonly agentId: string;
  readonly approvals: { readonly [tool: string]: ApprovalPolicy } | undefined;
  readonly mode: string | undefined;
  /** The names of the tools that the agent itself has. */
  readonly tools: { has(name: string): boolean };
  /** When the agent must have ended, by the monotonic clock of the process. */
  readonly deadlineAt: number | undefined;
}

/** A tool call that the model of an agent requested and that has not ended. */
export interface ActiveToolCall {
  readonly agentKey: string;
  readonly toolCallId: string;
  /** The id of the loop that it calls. */
  readonly loopId: string;
  /** The name of the tool, which for a tool that is defined inline in its agent is not the id of its loop. */
  readonly toolName: string;
  /** The time limit of the tool, in milliseconds. */
  readonly timeoutMs: number;
}

/** Shared by the tables of a host. Until it is set, no table needs to be searched. */
export class RestrictionFlag {
  /** True once any agent of the host has restricted anything. */
  isSet = false;
}

/** The restrictions of one turn, by the key of the agent. */
export class RestrictionTable {
  private readonly restrictionFlag: RestrictionFlag;
  private readonly restrictions = new Map<string, AgentRestrictions>();
  private readonly activeToolCalls = new Map<string, ActiveToolCall>();
  /** The names of the open calls, by key. */
  private readonly openCallNames = new Map<string, string>();
  /** True if any agent has a policy for tools. Most have none, and then no search is needed. */
  private hasApprovals = false;
  /** True if any agent has a deadline. */
  private hasDeadlines = false;

  constructor(flag: RestrictionFlag) {
    this.restrictionFlag = flag;
  }

  /** Adds the restrictions of the agent at a key. */
  add(key: string, restrictions: AgentRestrictions): void {
    this.restrictions.set(key, restrictions);
    this.hasApprovals ||= restrictions.approvals !== undefined;
    this.hasDeadlines ||= restrictions.deadlineAt !== undefined;
    this.restrictionFlag.isSet ||= this.hasApprovals || this.hasDeadlines || restrictions.mode !== undefined;
  }

  /** Records the start of a call. Its name matters only below an agent with policies, so it is otherwise ignored. */
  callStarted(key: string, name: string): void {
    if (this.hasApprovals) this.earlierCallStarted(key, name);
  }

  /**
   * Records a call that started before the table existed. Its agents may add policies later, so it is never ignored.
   */
  earlierCallStarted(key: string, name: string): void {
    this.openCallNames.set(key, name);
  }

  /** Removes a call that has ended. */
  callEnded(key: string): void {
    if (this.openCallNames.size > 0) this.openCallNames.delete(key);
  }

  /** Records the tool call that runs at a key below an agent. */
  toolCallStarted(key: string, toolCall: ActiveToolCall): void {
    this.activeToolCalls.set(key, toolCall);
  }

  /** Removes the tool call at a key. */
  toolCallEnded(key: string): void {
    this.activeToolCalls.delete(key);
  }

  /** Returns the innermost tool call that contains a key; undefined if there is none. */
  activeToolCall(key: string): ActiveToolCall | undefined {
    if (this.activeToolCalls.size === 0) return undefined;
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const toolCall = this.activeToolCalls.get(at);
      if (toolCall !== undefined) return toolCall;
    }
    return undefined;
  }

  /**
   * Returns the strictest policy of the enclosing agents for a tool and for every call on the path to it. `toolName` is
   * another name of the tool.
   */
  approvalPolicy(key: string, tool: string, toolName = this.toolNameAt(key, tool)): ApprovalPolicy {
    if (!this.hasApprovals) return 'always_allow';
    return this.strictestPolicy(key, [tool], (restrictions, name) =>
      declaredPolicy(restrictions, name, name === tool ? toolName : name),
    );
  }

  /** Returns the name of the tool whose loop runs at a key: that of an inline tool, or else the id of the loop. */
  private toolNameAt(key: string, tool: string): string {
    const toolCall = this.activeToolCall(key);
    // Not for other loops inside of the tool call, which the policy of its name must not loosen.
    // guard: inline-name-only-for-its-tool
    if (toolCall?.loopId !== tool) return tool;
    return toolCall.toolName;
  }

  /**
   * Returns the strictest policy that the enclosing agents declare for exactly this name. The wildcard `*` and the
   * calls on the path do not count, because the steps inside of the call need approvals of their own.
   */
  approvalPolicyByName(key: string, name: string): ApprovalPolicy {
    if (!this.hasApprovals) return 'always_allow';
    return this.strictestPolicy(key, [name], ({ approvals }, other) =>
      other === name ? explicitPolicy(approvals, name) : undefined,
    );
  }

  /** Returns the earliest deadline of the enclosing agents, by the monotonic clock; undefined if there is none. */
  earliestDeadline(key: string): number | undefined {
    if (!this.hasDeadlines) return undefined;
    return this.enclosingAgents(key).reduce<number | undefined>(
      (earliest, { deadlineAt }) =>
        deadlineAt === undefined || (earliest !== undefined && earliest <= deadlineAt) ? earliest : deadlineAt,
      undefined,
    );
  }

  /** Returns the modes of all enclosing agents that set one, innermost first. */
  enclosingModes(key: string): readonly string[] {
    return this.enclosingAgents(key).flatMap(({ mode }) => (mode === undefined ? [] : [mode]));
  }

  /** Returns the mode of each enclosing agent whose policy for a tool, or for a call on the path to it, is `ask`. */
  askingModes(key: string, tool: string): readonly (string | undefined)[] {
    const modes: (string | undefined)[] = [];
    if (!this.hasApprovals) return modes;
    const toolName = this.toolNameAt(key, tool);
    this.strictestPolicy(key, [tool], (restrictions, name) => {
      const policy = declaredPolicy(restrictions, name, name === tool ? toolName : name);
      if (policy === 'ask') modes.push(restrictions.mode);
      return policy;
    });
    return modes;
  }

  /** True if the innermost agent has this tool and allows it by name. The wildcard `*` does not count. */
  isExplicitlyAllowed(key: string, tool: string): boolean {
    if (!this.hasApprovals) return false;
    const agent = this.innermostAgent(key);
    return (
      agent?.tools.has(tool) === true &&
      /* guard: tool-allowed-by-name */ namedPolicy(agent, tool, this.toolNameAt(key, tool)) === 'always_allow'
    );
  }

  private innermostAgent(key: string): AgentRestrictions | undefined {
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const restrictions = this.restrictions.get(at);
      if (restrictions !== undefined) return restrictions;
    }
    return undefined;
  }

  private enclosingAgents(key: string): readonly AgentRestrictions[] {
    const agents: AgentRestrictions[] = [];
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const restrictions = this.restrictions.get(at);
      if (restrictions !== undefined) agents.push(restrictions);
    }
    return agents;
  }

  private strictestPolicy(
    key: string,
    names: string[],
    policyOf: (restrictions: AgentRestrictions, name: string) => ApprovalPolicy | undefined,
  ): ApprovalPolicy {
    let policy: ApprovalPolicy = 'always_allow';
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const restrictions = this.restrictions.get(at);
      // An agent does not restrict itself: its own name is added below, for the agents that enclose it.
      if (restrictions !== undefined)
        for (const name of names) policy = stricterPolicy(policy, policyOf(restrictions, name) ?? 'always_allow');
      const name = this.openCallNames.get(at);
      // guard: policy-covers-calls-inside
      if (name !== undefined) names.push(name);
    }
    return policy;
  }
}

/** From strict to loose. Any other value, such as `blocked`, has the index -1 and is stricter than both. */
const STRICTNESS_ORDER: readonly ApprovalPolicy[] = ['ask', 'always_allow'];

/** Returns the stricter of two policies. `blocked` and unknown policies are the strictest. */
export function stricterPolicy(a: ApprovalPolicy, b: ApprovalPolicy): ApprovalPolicy {
  // guard: stricter-policy-wins
  return STRICTNESS_ORDER.indexOf(a) < STRICTNESS_ORDER.indexOf(b) ? a : b;
}

function explicitPolicy(approvals: AgentRestrictions['approvals'], tool: string): ApprovalPolicy | undefined {
  return approvals !== undefined && Object.hasOwn(approvals, tool) ? approvals[tool] : undefined;
}

/** Returns the policy that an agent declares for a tool by its id or by its name, the stricter one if by both. */
function namedPolicy({ approvals }: AgentRestrictions, tool: string, toolName: string): ApprovalPolicy | undefined {
  const [byId, byName] = [explicitPolicy(approvals, tool), explicitPolicy(approvals, toolName)];
  return byId === undefined || byName === undefined ? (byId ?? byName) : stricterPolicy(byId, byName);
}

function declaredPolicy(agent: AgentRestrictions, tool: string, toolName: string): ApprovalPolicy {
  return namedPolicy(agent, tool, toolName) ?? explicitPolicy(agent.approvals, '*') ?? 'always_allow';
}

/** Returns the key of the enclosing call; undefined for a root. */
function parentKey(key: string): string | undefined {
  const end = key.lastIndexOf('/');
  return end > 0 ? key.slice(0, end) : undefined;
}
