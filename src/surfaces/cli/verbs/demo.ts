/** `demo`: kills a run in the middle and finishes it, before your eyes. */
import type { Act } from '../verb.js';

export const demo: Act = async () => (await import('../../demo/run.js')).demo();
