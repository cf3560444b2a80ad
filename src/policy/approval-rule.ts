/** Which approval rule applies to an effect. Authority only narrows: the strictest of all policies on the way to the effect wins. */
import type { Effect } from '../protocol/body.js';
import type { ApprovalPolicy } from '../protocol/loop.js';
import { type RestrictionTable, stricterPolicy } from './restrictions.js';

/** What holds for an effect at its place, of its own definition and of all who watch over it. */
export interface ApprovalRule {
  readonly policy: ApprovalPolicy;
  /** The mode of each rule that asks: of every agent whose rule it is, and of the tool itself. @default without one */
  readonly modes?: readonly (string | undefined)[] | undefined;
  /** When it must be done, whatever its own policy allows: by the monotonic clock of the process. */
  readonly deadlineAt?: number | undefined;
  /** How long a tool may take, and to find words for the person who is asked, in milliseconds. */
  readonly toolTimeoutMs?: number | undefined;
}

/** The rule for an effect: its own policy, and the restrictions of all agents above it. Undefined if nothing restricts it. */
export function approvalRuleFor(
  effect: Effect,
  key: string,
  restrictions: RestrictionTable | undefined,
): ApprovalRule | undefined {
  const { kind, name } = effect;
  const own = ownPolicy(effect, key, restrictions);
  if (restrictions === undefined) return own === 'always_allow' ? undefined : { policy: own, modes: [effect.mode] };
  // Evaluating an approval is not an action that needs one.
  if (kind === 'gate') return undefined;
  // guard: agent-policy-applies-to-tools
  const policy = kind === 'tool' ? stricterPolicy(own, restrictions.approvalPolicy(key, name)) : own;
  const deadline = restrictions.earliestDeadline(key);
  if (policy === 'always_allow') return deadline === undefined ? undefined : { policy, deadlineAt: deadline };
  const modes = own === 'ask' ? ownModes(effect, key, restrictions) : [];
  // guard: enclosing-asks-apply
  const asking = kind === 'tool' ? restrictions.askingModes(key, name) : [];
  return {
    policy,
    deadlineAt: deadline,
    modes: [...modes, ...asking],
    toolTimeoutMs: restrictions.activeToolCall(key)?.timeoutMs,
  };
}

/** The policy of the tool itself. One that can say what to ask is asked about, unless the agent that has it allows it. */
function ownPolicy(effect: Effect, key: string, restrictions: RestrictionTable | undefined): ApprovalPolicy {
  // Own property only: a polluted prototype must not allow every tool.
  const explicit = Object.hasOwn(effect, 'policy') ? effect.policy?.approval : undefined;
  if (explicit !== undefined) return explicit;
  // guard: asking-tool-asked-by-default
  return effect.asksByDefault === true && restrictions?.isExplicitlyAllowed(key, effect.name) !== true
    ? 'ask'
    : 'always_allow';
}

/** The modes for the tool's own policy: its own mode, or those of all enclosing agents, so that none loosens another. */
function ownModes({ mode }: Effect, key: string, restrictions: RestrictionTable): readonly (string | undefined)[] {
  if (mode !== undefined) return [mode];
  const modes = restrictions.enclosingModes(key);
  return modes.length === 0 ? [undefined] : /* guard: every-enclosing-mode-asked */ modes;
}
