import type { VerbHandler } from '../verb.js';
/** x */
export const dev: VerbHandler = async () => 0;
