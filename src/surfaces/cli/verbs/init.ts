import type { VerbHandler } from '../verb.js';
/** x */
export const init: VerbHandler = async () => 0;
