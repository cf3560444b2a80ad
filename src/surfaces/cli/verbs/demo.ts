/** `demo`: kills a run in the middle and finishes it, before your eyes. */
import type { Act } from '../verb.js';

export const demo: Act = async ({ terminal }) => {
  const { demo: play } = await import('../../demo/run.js');
  return play((line) => terminal.say(line), terminal.look(terminal.streams.stderr).color);
};
