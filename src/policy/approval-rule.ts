/** Which approval rule applies to an effect: the strictest policy of the tool and of all enclosing agents. */
import type { Effect } from '../protocol/body.js';
import type { ApprovalPolicy } from '../protocol/loop.js';
import { type RestrictionTable, stricterPolicy } from './restrictions.js';

/** The rule for one effect, from its own definition and from the restrictions of all enclosing agents. */
export interface ApprovalRule {
  readonly policy: ApprovalPolicy;
  /**
   * The modes of the policies that ask: of the tool and of the agents. An undefined item stands for a policy without a
   * mode.
   */
  readonly modes?: readonly (string | undefined)[] | undefined;
  /** True if the grant of the turn demands the review `ask`: then neither the tool nor a mode can waive it. */
  readonly isReviewed?: boolean | undefined;
  /** The earliest deadline of the enclosing agents, by the monotonic clock of the process. */
  readonly deadlineAt?: number | undefined;
  /**
   * The time limit of the tool call, in milliseconds. It also applies to the description for the approver and to the
   * resolution of the target.
   */
  readonly toolTimeoutMs?: number | undefined;
}

/** Returns the rule for an effect; undefined if neither its policy nor an enclosing agent restricts it. */
export function approvalRuleFor(
  effect: Effect,
  key: string,
  restrictions: RestrictionTable | undefined,
): ApprovalRule | undefined {
  const { kind, name } = effect;
  const toolPolicy = ownPolicy(effect, key, restrictions);
  if (restrictions === undefined)
    return toolPolicy === 'always_allow' ? undefined : { policy: toolPolicy, modes: [effect.mode] };
  // Evaluating an approval is not an action that needs one.
  if (kind === 'gate') return undefined;
  // guard: agent-policy-applies-to-tools
  const policy = kind === 'tool' ? stricterPolicy(toolPolicy, restrictions.approvalPolicy(key, name)) : toolPolicy;
  const deadlineAt = restrictions.earliestDeadline(key);
  if (policy === 'always_allow') return deadlineAt === undefined ? undefined : { policy, deadlineAt };
  const toolModes = toolPolicy === 'ask' ? ownModes(effect, key, restrictions) : [];
  // guard: enclosing-asks-apply
  const agentModes = kind === 'tool' ? restrictions.askingModes(key, name) : [];
  return {
    policy,
    deadlineAt,
    modes: [...toolModes, ...agentModes],
    toolTimeoutMs: restrictions.activeToolCall(key)?.timeoutMs,
  };
}

/**
 * Returns the policy of the tool itself. A tool without a policy that asks by default does so unless its agent allows
 * it by name.
 */
function ownPolicy(effect: Effect, key: string, restrictions: RestrictionTable | undefined): ApprovalPolicy {
  // Own property only: a polluted prototype must not allow every tool.
  const explicit = Object.hasOwn(effect, 'policy') ? effect.policy?.approval : undefined;
  if (explicit !== undefined) return explicit;
  // guard: asking-tool-asked-by-default
  return effect.asksByDefault === true && restrictions?.isExplicitlyAllowed(key, effect.name) !== true
    ? 'ask'
    : 'always_allow';
}

/** Returns the mode of the tool, or those of all enclosing agents, so that none loosens another. */
function ownModes({ mode }: Effect, key: string, restrictions: RestrictionTable): readonly (string | undefined)[] {
  if (mode !== undefined) return [mode];
  const modes = restrictions.enclosingModes(key);
  return modes.length === 0 ? [undefined] : /* guard: every-enclosing-mode-asked */ modes;
}
