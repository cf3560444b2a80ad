/**
 * What agents ask of everything below them, found by path: a tool ten calls down is held to all agents above it, by its
 * own name and by that of every call on the way. Kept beside the run and not in it: bodies that run again set it up
 * again, before anything below them starts.
 */
import type { ApprovalPolicy } from '../protocol/loop.js';

/** What one agent asks of what runs below it. */
export interface AgentRestrictions {
  readonly agentId: string;
  readonly approvals: { readonly [tool: string]: ApprovalPolicy } | undefined;
  readonly mode: string | undefined;
  /** The names of the tools that the agent itself has. */
  readonly tools: { has(name: string): boolean };
  /** When the agent has to be done, by the monotonic clock of the process. */
  readonly deadlineAt: number | undefined;
}

/** One call of a tool that an agent's model asked for. */
export interface ActiveToolCall {
  readonly agentKey: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** How long a tool may take, in milliseconds. */
  readonly timeoutMs: number;
}

/** Whether any agent of a host has ever asked anything of what runs below it: until then nobody need look. */
export class RestrictionFlag {
  isSet = false;
}

export class RestrictionTable {
  private readonly restrictionFlag: RestrictionFlag;
  private readonly restrictions = new Map<string, AgentRestrictions>();
  private readonly activeToolCalls = new Map<string, ActiveToolCall>();
  /** The calls that are open, by name. */
  private readonly openCallNames = new Map<string, string>();
  /** Whether any agent asks about tools, and whether any has a deadline: most do neither, and nobody need look. */
  private hasApprovals = false;
  private hasDeadlines = false;

  constructor(alert: RestrictionFlag) {
    this.restrictionFlag = alert;
  }

  add(key: string, watch: AgentRestrictions): void {
    this.restrictions.set(key, watch);
    this.hasApprovals ||= watch.approvals !== undefined;
    this.hasDeadlines ||= watch.deadlineAt !== undefined;
    this.restrictionFlag.isSet ||= this.hasApprovals || this.hasDeadlines || watch.mode !== undefined;
  }

  /**
   * A call begins now. Names matter only below an agent that guards something, and it says so before anything below it
   * begins.
   */
  callStarted(key: string, name: string): void {
    if (this.hasApprovals) this.earlierCallStarted(key, name);
  }

  /** A call began before anybody could say that it guards something. */
  earlierCallStarted(key: string, name: string): void {
    this.openCallNames.set(key, name);
  }

  callEnded(key: string): void {
    if (this.openCallNames.size > 0) this.openCallNames.delete(key);
  }

  /** Says what a branch of an agent is sent for. */
  toolCallStarted(key: string, errand: ActiveToolCall): void {
    this.activeToolCalls.set(key, errand);
  }

  /** The errand of a branch is done. */
  toolCallEnded(key: string): void {
    this.activeToolCalls.delete(key);
  }

  /** The innermost errand that a call is part of. */
  activeToolCall(key: string): ActiveToolCall | undefined {
    if (this.activeToolCalls.size === 0) return undefined;
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const errand = this.activeToolCalls.get(at);
      if (errand !== undefined) return errand;
    }
    return undefined;
  }

  /** What all agents above say of a tool: of itself, and of every call on the way down to it. */
  approvalPolicy(key: string, tool: string): ApprovalPolicy {
    return this.hasApprovals ? this.strictestPolicy(key, [tool], declaredPolicy) : 'always_allow';
  }

  /** The same of a call by its own name alone, for one whose parts are asked about by themselves. */
  approvalPolicyByName(key: string, name: string): ApprovalPolicy {
    if (!this.hasApprovals) return 'always_allow';
    return this.strictestPolicy(key, [name], ({ approvals }, other) =>
      other === name ? explicitPolicy(approvals, name) : undefined,
    );
  }

  /** The earliest deadline above a call. */
  earliestDeadline(key: string): number | undefined {
    if (!this.hasDeadlines) return undefined;
    return this.enclosingAgents(key).reduce<number | undefined>(
      (first, { deadlineAt }) =>
        deadlineAt === undefined || (first !== undefined && first <= deadlineAt) ? first : deadlineAt,
      undefined,
    );
  }

  /** The modes of all enclosing agents that set one, innermost first. */
  enclosingModes(key: string): readonly string[] {
    return this.enclosingAgents(key).flatMap(({ mode }) => (mode === undefined ? [] : [mode]));
  }

  /** The mode of each enclosing agent that asks about a tool, by its name or that of a call on the way to it. */
  askingModes(key: string, tool: string): readonly (string | undefined)[] {
    const modes: (string | undefined)[] = [];
    if (!this.hasApprovals) return modes;
    this.strictestPolicy(key, [tool], (watch, name) => {
      const policy = declaredPolicy(watch, name);
      if (policy === 'ask') modes.push(watch.mode);
      return policy;
    });
    return modes;
  }

  /** True if the agent that has this tool allows it by its name: the innermost agent, and `*` names no tool. */
  isExplicitlyAllowed(key: string, tool: string): boolean {
    if (!this.hasApprovals) return false;
    const own = this.innermostAgent(key);
    return (
      own?.tools.has(tool) === true &&
      /* guard: tool-allowed-by-name */ explicitPolicy(own.approvals, tool) === 'always_allow'
    );
  }

  private innermostAgent(key: string): AgentRestrictions | undefined {
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const watch = this.restrictions.get(at);
      if (watch !== undefined) return watch;
    }
    return undefined;
  }

  private enclosingAgents(key: string): readonly AgentRestrictions[] {
    const found: AgentRestrictions[] = [];
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const watch = this.restrictions.get(at);
      if (watch !== undefined) found.push(watch);
    }
    return found;
  }

  private strictestPolicy(
    key: string,
    names: string[],
    told: (watch: AgentRestrictions, name: string) => ApprovalPolicy | undefined,
  ): ApprovalPolicy {
    let policy: ApprovalPolicy = 'always_allow';
    for (let at: string | undefined = key; at !== undefined; at = parentKey(at)) {
      const watch = this.restrictions.get(at);
      // An agent says nothing of itself: its own name is for those above it.
      if (watch !== undefined)
        for (const name of names) policy = stricterPolicy(policy, told(watch, name) ?? 'always_allow');
      const name = this.openCallNames.get(at);
      // guard: policy-covers-calls-inside
      if (name !== undefined) names.push(name);
    }
    return policy;
  }
}

/** From what does not let pass to what does; whatever is neither is stricter than both. */
const STRICTNESS_ORDER: readonly ApprovalPolicy[] = ['ask', 'always_allow'];

/** The stricter of two policies: authority only narrows, and what is no policy blocks. */
export function stricterPolicy(a: ApprovalPolicy, b: ApprovalPolicy): ApprovalPolicy {
  // guard: stricter-policy-wins
  return STRICTNESS_ORDER.indexOf(a) < STRICTNESS_ORDER.indexOf(b) ? a : b;
}

function explicitPolicy(approvals: AgentRestrictions['approvals'], tool: string): ApprovalPolicy | undefined {
  return approvals !== undefined && Object.hasOwn(approvals, tool) ? approvals[tool] : undefined;
}

function declaredPolicy({ approvals }: AgentRestrictions, tool: string): ApprovalPolicy {
  return explicitPolicy(approvals, tool) ?? explicitPolicy(approvals, '*') ?? 'always_allow';
}

/** The key above a key; undefined for a root. */
function parentKey(key: string): string | undefined {
  const end = key.lastIndexOf('/');
  return end > 0 ? key.slice(0, end) : undefined;
}
