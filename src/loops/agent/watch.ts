/**
 * What agents ask of everything below them, found by path: a tool ten calls down is held to all agents above it. Kept
 * beside the run and not in it: bodies that run again set it up again, before anything below them starts.
 */
import type { ApprovalPolicy } from '../../protocol/loop.js';

/** What one agent asks of what runs below it. */
export interface Watch {
  readonly agent: string;
  readonly approvals: { readonly [tool: string]: ApprovalPolicy };
  readonly mode: string | undefined;
  readonly toolTimeoutMs: number;
  /** When the agent has to be done, in milliseconds. */
  readonly deadline: number | undefined;
}

/** One call of a tool that an agent's model asked for. */
export interface Errand {
  readonly agent: string;
  readonly toolCallId: string;
  readonly tool: string;
}

export class Watches {
  private readonly watches = new Map<string, Watch>();
  private readonly errands = new Map<string, Errand>();

  /** Whether nobody watches: then there is nothing to look for. */
  get none(): boolean {
    return this.watches.size === 0;
  }

  watch(key: string, watch: Watch): void {
    this.watches.set(key, watch);
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
    for (const above of pathOf(key)) {
      const errand = this.errands.get(above);
      if (errand !== undefined) return errand;
    }
    return undefined;
  }

  /** All watches above a call, the innermost first. */
  above(key: string): readonly Watch[] {
    return [...pathOf(key)].flatMap((above) => this.watches.get(above) ?? []);
  }

  /** What all agents above say of a tool: of itself, and of what each of them called on the way down to it. */
  policy(key: string, tool: string): ApprovalPolicy {
    if (this.none) return 'always_allow';
    const names = [tool];
    let policy: ApprovalPolicy = 'always_allow';
    for (const above of pathOf(key)) {
      const called = this.errands.get(above)?.tool;
      if (called !== undefined) names.push(called);
      const watch = this.watches.get(above);
      if (watch === undefined) continue;
      for (const name of names) policy = stricter(policy, policyOf(watch, name));
    }
    return policy;
  }
}

/** From what lets pass to what does not. */
const LENIENCE: readonly ApprovalPolicy[] = ['ask', 'always_allow'];

/** The stricter of two policies: authority only narrows, and what is no policy blocks. */
export function stricter(a: ApprovalPolicy, b: ApprovalPolicy): ApprovalPolicy {
  return LENIENCE.indexOf(a) < LENIENCE.indexOf(b) ? a : b;
}

function policyOf({ approvals }: Watch, tool: string): ApprovalPolicy {
  const named = Object.hasOwn(approvals, tool) ? approvals[tool] : undefined;
  return named ?? approvals['*'] ?? 'always_allow';
}

/** A key and all keys above it. */
function* pathOf(key: string): Generator<string> {
  yield key;
  for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) yield key.slice(0, end);
}
