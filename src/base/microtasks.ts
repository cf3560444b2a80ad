/** Waiting for the next microtask, or forever. A body that awaits a step continues one microtask after the step ends. */

/** Resolved already: what awaits it continues one microtask later. */
export const NEXT_MICROTASK: Promise<void> = Promise.resolve();

/** Returns a promise that never settles. It suspends a body without an error that the body could catch. */
export function neverSettles(): Promise<never> {
  return new Promise(() => {});
}

interface RunningStep {
  endStep(): void;
}

/** The scopes whose step ends with the next microtask, and their number. The list is reused, which is faster. */
const endingScopes: (RunningStep | undefined)[] = [];
let endingCount = 0;

function endSteps(): void {
  for (let i = 0; i < endingCount; i++) {
    endingScopes[i]?.endStep();
    endingScopes[i] = undefined;
  }
  endingCount = 0;
}

/**
 * Ends the step of a scope one microtask later. Steps that end in consecutive microtasks share one, which still runs
 * before any body that awaits one of them continues.
 */
export function endStepLater(scope: RunningStep): void {
  endingScopes[endingCount++] = scope;
  if (endingCount === 1) void NEXT_MICROTASK.then(endSteps);
}
