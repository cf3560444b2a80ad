/** Detects code that runs inside of a loop, from the stack: it costs nothing until it is asked. */
import { runCall } from '../kernel/call.js';
import { runBranch } from '../kernel/group.js';

/** More frames than a loop usually has between its body and the kernel. */
const MAX_FRAMES = 200;

/**
 * True if the caller runs inside of a call of the kernel, synchronously or after an `await`: V8 records the async
 * functions that wait for the current one. Code that was started without being awaited is not detected.
 */
export function isInsideCall(): boolean {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = MAX_FRAMES;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return [runCall.name, runBranch.name].some(
    (name) => stack.includes(`at ${name} (`) || stack.includes(`at async ${name} (`),
  );
}
