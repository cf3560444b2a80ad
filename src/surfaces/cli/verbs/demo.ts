/** `demo`: kills a run in the middle and finishes it, before your eyes. */
import type { VerbHandler } from '../verb.js';

export const demo: VerbHandler = async ({ terminal }) => {
  const { runDemo: play } = await import('../../demo/run.js');
  return play((line) => terminal.printToStderr(line), terminal.displayOf(terminal.streams.stderr).color);
};
