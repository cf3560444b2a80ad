/** `rondo demo`: kills a running turn and finishes it in another process. */
import type { VerbHandler } from '../verb.js';

/** Handles `rondo demo`. */
export const demo: VerbHandler = async ({ terminal }) => {
  const { runDemo } = await import('../../demo/run.js');
  return runDemo((line) => terminal.printToStderr(line), terminal.displayOf(terminal.streams.stderr).color);
};
