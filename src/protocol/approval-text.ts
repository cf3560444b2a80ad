/** Reads the question of an approval from a message of the AI SDK. Imports no code, so it is safe in a browser. */

/**
 * Returns the question for the approver of a tool part of the AI SDK, which `chatHandler` and `uiMessages` set as
 * `approval.descriptor.description`; undefined for a part without one.
 *
 * @example
 * import { approvalText } from 'rondo/protocol';
 *
 * const part = { type: 'tool-refund', approval: { id: 'a1', descriptor: { description: 'Refund 5?' } } };
 * approvalText(part); // 'Refund 5?'
 */
export function approvalText(part: object): string | undefined {
  const { approval } = part as { readonly approval?: { readonly descriptor?: { readonly description?: unknown } } };
  const description = approval?.descriptor?.description;
  return typeof description === 'string' ? description : undefined;
}
