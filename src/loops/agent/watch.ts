/**
 * What agents ask of everything below them, found by path: a tool ten calls down is held to all agents above it, by its
 * own name and by that of every call on the way. Kept beside the run and not in it: bodies that run again set it up
 * again, before anything below them starts.
 */
import type { ApprovalPolicy } from '../../protocol/loop.js';

/** What one agent asks of what runs below it. */
export interface Watch {
  readonly agent: string;
  readonly approvals: { readonly [tool: string]: ApprovalPolicy } | undefined;
  readonly mode: string | undefined;
  /** The names of the tools that the agent itself has. */
  readonly tools: { has(name: string): boolean };
  /** When the agent has to be done, by the monotonic clock of the process. */
  readonly deadline: number | undefined;
}

/** One call of a tool that an agent's model asked for. */
export interface Errand {
  readonly agent: string;
  readonly toolCallId: string;
  readonly tool: string;
  /** How long a tool may take, in milliseconds. */
  readonly limitMs: number;
}

/** Whether any agent of a host has ever asked anything of what runs below it: until then nobody need look. */
export class Alert {
  on = false;
}

export class Watches {
  private readonly alert: Alert;
  private readonly watches = new Map<string, Watch>();
  private readonly errands = new Map<string, Errand>();
  /** The calls that are open, by name. */
  private readonly names = new Map<string, string>();
  /** Whether any agent asks about tools, and whether any has a deadline: most do neither, and nobody need look. */
  private guarded = false;
  private timed = false;

  constructor(alert: Alert) {
    this.alert = alert;
  }

  watch(key: string, watch: Watch): void {
    this.watches.set(key, watch);
    this.guarded ||= watch.approvals !== undefined;
    this.timed ||= watch.deadline !== undefined;
    this.alert.on ||= this.guarded || this.timed || watch.mode !== undefined;
  }

  /**
   * A call begins now. Names matter only below an agent that guards something, and it says so before anything below it
   * begins.
   */
  begin(key: string, name: string): void {
    if (this.guarded) this.began(key, name);
  }

  /** A call began before anybody could say that it guards something. */
  began(key: string, name: string): void {
    this.names.set(key, name);
  }

  end(key: string): void {
    if (this.names.size > 0) this.names.delete(key);
  }

  /** Says what a branch of an agent is sent for. */
  send(key: string, errand: Errand): void {
    this.errands.set(key, errand);
  }

  /** The errand of a branch is done. */
  done(key: string): void {
    this.errands.delete(key);
  }

  /** The innermost errand that a call is part of. */
  errand(key: string): Errand | undefined {
    if (this.errands.size === 0) return undefined;
    for (let at: string | undefined = key; at !== undefined; at = above(at)) {
      const errand = this.errands.get(at);
      if (errand !== undefined) return errand;
    }
    return undefined;
  }

  /** What all agents above say of a tool: of itself, and of every call on the way down to it. */
  policy(key: string, tool: string): ApprovalPolicy {
    return this.guarded ? this.strictest(key, [tool], policyOf) : 'always_allow';
  }

  /** The same of a call by its own name alone, for one whose parts are asked about by themselves. */
  namedPolicy(key: string, name: string): ApprovalPolicy {
    if (!this.guarded) return 'always_allow';
    return this.strictest(key, [name], ({ approvals }, other) => (other === name ? ownOf(approvals, name) : undefined));
  }

  /** The earliest deadline above a call. */
  deadline(key: string): number | undefined {
    if (!this.timed) return undefined;
    return this.all(key).reduce<number | undefined>(
      (first, { deadline }) =>
        deadline === undefined || (first !== undefined && first <= deadline) ? first : deadline,
      undefined,
    );
  }

  /** The modes of all enclosing agents that set one, innermost first. */
  modes(key: string): readonly string[] {
    return this.all(key).flatMap(({ mode }) => (mode === undefined ? [] : [mode]));
  }

  /** The mode of each enclosing agent that asks about a tool, by its name or that of a call on the way to it. */
  askingModes(key: string, tool: string): readonly (string | undefined)[] {
    const modes: (string | undefined)[] = [];
    if (!this.guarded) return modes;
    this.strictest(key, [tool], (watch, name) => {
      const policy = policyOf(watch, name);
      if (policy === 'ask') modes.push(watch.mode);
      return policy;
    });
    return modes;
  }

  /** True if the agent that has this tool allows it by its name: the innermost agent, and `*` names no tool. */
  allows(key: string, tool: string): boolean {
    if (!this.guarded) return false;
    const own = this.innermost(key);
    return (
      own?.tools.has(tool) === true && /* guard: tool-allowed-by-name */ ownOf(own.approvals, tool) === 'always_allow'
    );
  }

  private innermost(key: string): Watch | undefined {
    for (let at: string | undefined = key; at !== undefined; at = above(at)) {
      const watch = this.watches.get(at);
      if (watch !== undefined) return watch;
    }
    return undefined;
  }

  private all(key: string): readonly Watch[] {
    const found: Watch[] = [];
    for (let at: string | undefined = key; at !== undefined; at = above(at)) {
      const watch = this.watches.get(at);
      if (watch !== undefined) found.push(watch);
    }
    return found;
  }

  private strictest(
    key: string,
    names: string[],
    told: (watch: Watch, name: string) => ApprovalPolicy | undefined,
  ): ApprovalPolicy {
    let policy: ApprovalPolicy = 'always_allow';
    for (let at: string | undefined = key; at !== undefined; at = above(at)) {
      const watch = this.watches.get(at);
      // An agent says nothing of itself: its own name is for those above it.
      if (watch !== undefined) for (const name of names) policy = stricter(policy, told(watch, name) ?? 'always_allow');
      const name = this.names.get(at);
      // guard: policy-covers-calls-inside
      if (name !== undefined) names.push(name);
    }
    return policy;
  }
}

/** From what does not let pass to what does; whatever is neither is stricter than both. */
const LENIENCE: readonly ApprovalPolicy[] = ['ask', 'always_allow'];

/** The stricter of two policies: authority only narrows, and what is no policy blocks. */
export function stricter(a: ApprovalPolicy, b: ApprovalPolicy): ApprovalPolicy {
  // guard: stricter-policy-wins
  return LENIENCE.indexOf(a) < LENIENCE.indexOf(b) ? a : b;
}

function ownOf(approvals: Watch['approvals'], tool: string): ApprovalPolicy | undefined {
  return approvals !== undefined && Object.hasOwn(approvals, tool) ? approvals[tool] : undefined;
}

function policyOf({ approvals }: Watch, tool: string): ApprovalPolicy {
  return ownOf(approvals, tool) ?? ownOf(approvals, '*') ?? 'always_allow';
}

/** The key above a key; undefined for a root. */
function above(key: string): string | undefined {
  const end = key.lastIndexOf('/');
  return end > 0 ? key.slice(0, end) : undefined;
}
