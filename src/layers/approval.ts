/** The gate before everything else: what a policy blocks is refused, and what it cannot yet ask for is refused too. */
import { LoopError } from '../journal/errors.js';
import type { Layer } from '../kernel/layer.js';

/** Refuses the effect; made for every value of `policy.approval` other than `always_allow`. */
export function approvalLayer(approval: string): Layer {
  return async ({ name }) => {
    if (approval === 'blocked')
      throw new LoopError('TOOL_NOT_ADMITTED', `The policy of "${name}" blocks it.`, { name });
    const message =
      `"${name}" needs an approval, and approvals are not available in this version. ` +
      'Set its policy to "always_allow" to run it without one.';
    throw new LoopError('APPROVAL_DENIED', message, { name });
  };
}
